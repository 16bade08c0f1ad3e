"""A killed run goes on as if it had not been killed; training teaches."""

from pathlib import Path

import pytest
import torch

from specviz.train.batches import collate
from specviz.train.build import Builder
from specviz.train.loop import Report, Trainer
from specviz.train.recipe import SCHEMES
from tests.train.tiny_corpus import Bench, bench, tiny_recipe


@pytest.fixture(scope="module")
def world() -> Bench:
    return bench()


def trainer(world: Bench, scheme: str, folder: Path, **changes: object) -> Trainer:
    recipe = tiny_recipe(scheme, **changes)
    course = Builder(world.target, world.source, recipe).course()
    return Trainer(course, world.source, recipe, folder)


@pytest.mark.parametrize(
    ("scheme", "optimizer"), [*((scheme, "adamw") for scheme in SCHEMES), ("dspark", "muon")]
)
def test_a_run_that_is_killed_and_resumed_ends_in_the_same_bits(
    world: Bench, scheme: str, optimizer: str, tmp_path: Path
) -> None:
    whole = trainer(world, scheme, tmp_path / "whole", optimizer=optimizer)
    assert whole.run(lambda report: None)

    cut = trainer(world, scheme, tmp_path / "cut", optimizer=optimizer)
    assert not cut.run(lambda report: None, until=3)
    torch.manual_seed(999)  # nothing depends on a global generator
    resumed = trainer(world, scheme, tmp_path / "cut", optimizer=optimizer)
    assert resumed.state.step == 3
    resumed.run(lambda report: None)

    for (name, a), (_, b) in zip(
        whole.module.named_parameters(), resumed.module.named_parameters(), strict=True
    ):
        assert torch.equal(a, b), name
    assert [m.loss for m in whole.state.marks] == [m.loss for m in resumed.state.marks]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_training_teaches_and_reports_as_it_goes(world: Bench, scheme: str, tmp_path: Path) -> None:
    seen: list[Report] = []
    run = trainer(world, scheme, tmp_path, steps=30, measure_every=30, rate=2e-3)
    batch = collate(world.source, range(1, 6), torch.device("cpu"))
    before = float(run.course.loss(batch, seed=0).total.detach())
    assert run.run(seen.append)
    assert float(run.course.loss(batch, seed=0).total.detach()) < before
    assert seen[-1].acceptance_length == run.state.marks[-1].acceptance_length
    assert seen[-1].acceptance_length is not None
    assert seen[-1].acceptance_length >= 1
    assert all(report.tokens_per_second > 0 for report in seen)
    assert set(run.state.best_counts) >= {"all"}
    assert (tmp_path / "best" / "config.json").is_file()
