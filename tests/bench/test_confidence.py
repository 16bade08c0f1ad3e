"""The confidence of a DSpark head, fitted on decodes and read where drafts are made."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from specviz.bench.confidence import check_confident, fit, observe
from specviz.bench.drafts import load_draft
from specviz.bench.runner import Request, run
from specviz.config import DrafterOptions, SamplingParams, SessionConfig
from specviz.errors import ConfigError
from specviz.heads.dspark import DSparkHead
from specviz.models.load import Loaded, load
from specviz.train.corpus import Example, to_row
from tests.cli.conftest import Call, call  # noqa: F401
from tests.cli.folders import write_model
from tests.heads_on_disk import LAYERS, write_head

PROMPTS = tuple(tuple(range(3 + row, 9 + row)) for row in range(4))


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    folder = write_model(tmp_path_factory.mktemp("models") / "deep", layers=LAYERS)
    return load(str(folder), device="cpu", dtype="float32")


def config(folder: Path) -> SessionConfig:
    return SessionConfig(
        scheme="dspark", draft_length=9, options=DrafterOptions(head=str(folder)), detail="off"
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_head("dspark", tmp_path / "dspark")


def test_blocks_are_observed_whole_and_a_worthless_head_is_told_so(
    deep: Loaded, folder: Path
) -> None:
    head = check_confident(load_draft(deep, config(folder)))
    logits, accepted = observe(deep, head, PROMPTS, tokens=12)
    assert logits.shape == (len(accepted), head.config.most)
    assert len(accepted) > 10
    assert accepted.float().mean() < 0.5
    found = fit(logits, accepted)
    assert found.survived[0] == float((accepted > 0).double().mean())
    assert found.error_after[0] <= found.error_before[0]


def test_what_is_written_is_read_where_drafts_are_made(deep: Loaded, folder: Path) -> None:
    request = Request(
        prompt="abc", params=SamplingParams(max_tokens=4, ignore_eos=True), config=config(folder)
    )
    before = run(deep, request, limit=0).rounds[0].evidence.confidence
    slots = len(before)
    logits = torch.randn(40, slots, generator=torch.Generator().manual_seed(0))
    found = replace(fit(logits, torch.zeros(40)), temperatures=(2.0,) * slots)
    assert json.loads(found.write(folder).read_text())["blocks"] == 40
    after = run(deep, request, limit=0).rounds[0].evidence.confidence
    halved = (torch.tensor(before).logit() / 2).sigmoid()
    assert torch.tensor(after) == pytest.approx(halved, abs=1e-5)
    head = load_draft(deep, config(folder))
    assert isinstance(head, DSparkHead)
    assert head.temperatures == (2.0,) * slots


def test_heads_without_confidence_and_texts_without_whole_blocks_are_refused(
    deep: Loaded, folder: Path
) -> None:
    with pytest.raises(ConfigError, match="no confidence head"):
        check_confident(None)
    head = check_confident(load_draft(deep, config(folder)))
    with pytest.raises(ConfigError, match="no whole block"):
        observe(deep, head, PROMPTS, tokens=2)


def test_the_command_writes_beside_the_head(
    deep: Loaded,
    folder: Path,
    tmp_path: Path,
    call: Call,  # noqa: F811
) -> None:
    rows = [
        to_row(Example(tokens=(*prompt, 1, 2), prompt_length=len(prompt), greedy=True, kind="x"))
        for prompt in PROMPTS
    ]
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    where = ("--target", deep.spec, "--device", "cpu", "--dtype", "float32")
    flags = ("--head", str(folder), "--data", str(data), "--max-tokens", "10")
    shown = call("calibrate", *flags, *where)
    assert shown.status == 0, shown.err
    assert "slot 1: temperature" in shown.out
    known = json.loads((folder / "calibration.json").read_text())
    assert call("calibrate", *flags, *where, "--json").json["temperatures"] == known["temperatures"]
    assert call("calibrate", *flags, "--texts", "0").status == 2
