"""Held-out E[L] without decoding is what decoding finds."""

from pathlib import Path

import pytest
import torch

from specviz.config import DrafterOptions, SamplingParams, SessionConfig
from specviz.drafters.base import Drafter
from specviz.drafters.dflash import DFlashDrafter
from specviz.drafters.draft_model import DraftModelDrafter
from specviz.drafters.dspark import DSparkDrafter
from specviz.drafters.eagle3 import Eagle3Drafter
from specviz.drafters.mtp import MtpDrafter
from specviz.errors import ConfigError
from specviz.heads import load as heads
from specviz.heads.base import Head
from specviz.heads.dflash import DFlashHead
from specviz.heads.dspark import DSparkHead
from specviz.heads.eagle3 import Eagle3Head
from specviz.heads.mtp import MtpHead
from specviz.heads.small_llama import is_small_llama, load_small_llama
from specviz.models.llama import LlamaTarget
from specviz.session import DecodeSession
from specviz.train.batches import collate
from specviz.train.build import Builder
from specviz.train.corpus import Example
from specviz.train.evaluate import held_out, walk
from specviz.train.loop import Trainer
from specviz.train.recipe import SCHEMES
from specviz.train.run import begin_with
from tests.train.tiny_corpus import Bench, bench, tiny_recipe

OPTIONS = DrafterOptions()


def hits(text: str, depth: int = 3) -> torch.Tensor:
    """One row per position: how many drafts after it are right, of `depth`."""
    return torch.tensor([[j < int(a) for j in range(depth)] for a in text])


def test_a_walk_commits_the_accepted_drafts_and_one_token_of_the_target() -> None:
    found = walk(hits("0010200000"), prompt_length=3, length=10)
    # from 2: one accepted, so 3 and 4; from 4: two, so 5, 6 and 7; from 7 one by one
    assert (found.rounds, found.tokens) == (4, 7)
    assert found.by_position == [2, 1, 0]
    assert found.length == pytest.approx(7 / 4)


def test_a_walk_ends_with_the_text_however_much_is_right() -> None:
    found = walk(hits("3333"), prompt_length=1, length=4)
    assert (found.rounds, found.tokens) == (1, 3)


def test_a_hit_after_a_miss_is_never_accepted() -> None:
    after_miss = torch.tensor([[False, True, True]] * 5)
    assert walk(after_miss, prompt_length=1, length=5).length == 1.0


def test_only_held_out_greedy_texts_are_measured_spread_over_the_corpus() -> None:
    def example(row: int) -> Example:
        return Example(
            tokens=(1, 2, 3, 4),
            prompt_length=1,
            greedy=row % 2 == 0,
            kind="x",
            held_out=row % 4 < 3,
        )

    examples = [example(row) for row in range(40)]
    assert held_out(examples, 100) == [row for row in range(40) if row % 4 in (0, 2)]
    assert held_out(examples, 4) == [0, 10, 20, 30]


@pytest.fixture(scope="module")
def world() -> Bench:
    return bench()


def drafter(scheme: str, folder: Path, target: LlamaTarget) -> tuple[Drafter, LlamaTarget]:
    """The drafter that reads what training wrote, and a target that keeps what it reads."""
    if scheme == "draft_model":
        assert is_small_llama(folder)
        model = load_small_llama(folder, target)
        return DraftModelDrafter(model, target.config.vocab, OPTIONS), target
    head: Head = heads.load(folder, target.config)
    tapped = target.with_taps(head.taps)
    match head:
        case Eagle3Head():
            return Eagle3Drafter(head, tapped, OPTIONS), tapped
        case MtpHead():
            return MtpDrafter(head, tapped, OPTIONS), tapped
        case DSparkHead():
            return DSparkDrafter(head, tapped, OPTIONS), tapped
        case DFlashHead():
            return DFlashDrafter(head, tapped, OPTIONS), tapped
    raise AssertionError(head)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_teacher_forced_rounds_are_those_of_a_session(
    world: Bench, scheme: str, tmp_path: Path
) -> None:
    recipe = tiny_recipe(scheme, steps=14, measure_every=14, rate=4e-3)
    trainer = Trainer(
        Builder(world.target, world.source, recipe).course(), world.source, recipe, tmp_path
    )
    trainer.run(lambda report: None)
    course = trainer.course
    course.save(tmp_path / "now")
    with torch.no_grad():
        found = course.hits(collate(world.source, range(8), torch.device("cpu")))

    accepted = []
    for row, example in enumerate(world.source.examples[:8]):
        target = world.target.with_taps(())
        draft, tapped = drafter(scheme, tmp_path / "now", target)
        session = DecodeSession(
            tapped,
            draft,
            example.tokens[: example.prompt_length],
            SamplingParams(max_tokens=len(example.response) + 2 * course.depth),
            SessionConfig(draft_length=course.depth),
        )
        at = example.prompt_length - 1
        while at + course.depth + 1 < len(example):
            expected = int(found[row, at].int().cumprod(0).sum())
            assert len(session.step().path) == expected, (row, at)
            accepted.append(expected)
            at += expected + 1
    assert len(set(accepted)) > 1  # the test saw rounds of several lengths


def test_dspark_begun_with_a_trained_dflash_drafts_what_that_drafts(
    world: Bench, tmp_path: Path
) -> None:
    recipe = tiny_recipe("dflash", steps=6, measure_every=6, rate=4e-3)
    trainer = Trainer(
        Builder(world.target, world.source, recipe).course(), world.source, recipe, tmp_path
    )
    trainer.run(lambda report: None)
    fresh = Builder(world.target, world.source, tiny_recipe("dspark", first_row=1)).course()
    batch = collate(world.source, range(8), torch.device("cpu"))
    before, wanted = fresh.hits(batch), trainer.course.hits(batch)
    begin_with(fresh.module, trainer.module)
    assert torch.equal(fresh.hits(batch), wanted)
    assert not torch.equal(before, wanted)
    with pytest.raises(ConfigError, match="no weight of this one's names"):
        begin_with(torch.nn.Linear(3, 3), trainer.module)
