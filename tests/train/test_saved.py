"""Saved heads are measured as they were while they were trained, packed ones too."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from specviz import cli
from specviz.heads.packing import pack
from specviz.models.load import Loaded
from specviz.train.build import Builder
from specviz.train.corpus import to_row
from specviz.train.loop import BEST, Trainer
from specviz.train.recipe import SCHEMES
from specviz.train.saved import Extent, measure_saved, read_course
from tests.train.test_command import tiny_tokenizer
from tests.train.tiny_corpus import Bench, bench, tiny_recipe

EXTENT = Extent(texts=4, depth=4, autocast=False)


@pytest.fixture(scope="module")
def world() -> Bench:
    return bench()


def trained(world: Bench, scheme: str, folder: Path) -> Trainer:
    recipe = tiny_recipe(scheme, steps=14, measure_every=14, rate=4e-3, measure_on=4)
    course = Builder(world.target, world.source, recipe).course()
    trainer = Trainer(course, world.source, recipe, folder)
    trainer.run(lambda report: None)
    return trainer


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_saved_head_has_the_acceptance_length_it_was_kept_for(
    world: Bench, scheme: str, tmp_path: Path
) -> None:
    trainer = trained(world, scheme, tmp_path)
    course = read_course(tmp_path / BEST, world.target, trainer.course.depth)
    assert (course.scheme, course.depth) == (scheme, trainer.course.depth)
    found = measure_saved(course, world.source, EXTENT)
    assert {kind: counts.length for kind, counts in found.items()} == pytest.approx(
        {kind: counts.length for kind, counts in trainer.measure().items()}, rel=0.05
    )
    assert found["all"].length > 1


@pytest.fixture
def files(world: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trained head, its packed copy and the corpus, and a command line with this target."""
    loaded = Loaded(world.target, tiny_tokenizer(), "tiny")
    monkeypatch.setattr("specviz.models.load.load", lambda *args, **kwargs: loaded)
    trained(world, "eagle3", tmp_path)
    lines = [json.dumps(to_row(example)) for example in world.source.examples]
    (tmp_path / "corpus.jsonl").write_text("\n".join(lines) + "\n")
    pack(tmp_path / BEST, tmp_path / "small", world.target)
    return tmp_path


def test_the_command_says_how_far_a_packed_copy_moves(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    heads, data = [str(files / BEST), str(files / "small")], str(files / "corpus.jsonl")
    assert cli.main(["measure", *heads, "--data", data, "--no-autocast"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("all ")
    assert last.endswith("%)")
    assert cli.main(["measure", *heads, "--data", data, "--no-autocast", "--json"]) == 0
    whole, small = json.loads(capsys.readouterr().out).values()
    assert set(whole) == {"all", "even"}
    assert small["all"]["acceptance_length"] == pytest.approx(
        whole["all"]["acceptance_length"], rel=0.05
    )
    assert len(whole["all"]["accepted_by_position"]) == 4


def test_a_head_that_lost_its_weights_is_measured_as_worthless(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = files / BEST / "model.safetensors"
    tensors = load_file(path)
    noise = torch.Generator().manual_seed(0)
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and "norm" not in name:
            tensors[name] = torch.randn(tensor.shape, generator=noise).to(tensor.dtype)
    save_file(tensors, path)
    heads, data = [str(files / "small"), str(files / BEST)], str(files / "corpus.jsonl")
    cli.main(["measure", *heads, "--data", data, "--no-autocast", "--json"])
    good, bad = json.loads(capsys.readouterr().out).values()
    assert bad["all"]["acceptance_length"] < 0.9 * good["all"]["acceptance_length"]


def test_a_head_is_packed_on_the_command_line(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--head", str(files / BEST), "--format", "packed", "--out", str(files / "again"))
    assert cli.main(["export", *flags]) == 0
    assert "int8" in capsys.readouterr().out
    again = load_file(files / "again" / "model.safetensors")
    once = load_file(files / "small" / "model.safetensors")
    assert again.keys() == once.keys()


def test_no_texts_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["measure", "x", "--data", "y", "--texts", "0"]) == cli.REFUSED
    assert "texts is 0" in capsys.readouterr().err
