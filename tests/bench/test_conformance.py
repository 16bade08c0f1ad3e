"""The comparison with vLLM: folders both can read, counts as vLLM makes them, honest tables."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from specviz.bench.conformance.folders import draft_length, export
from specviz.bench.conformance.job import Counts, Job, acceptance_length, read_counts
from specviz.bench.conformance.ours import Ours, count
from specviz.bench.conformance.table import Row, as_text
from specviz.bench.conformance.theirs import decode, reason
from specviz.errors import ConfigError, ModelCorrupt, UnsupportedModel
from specviz.events import EMPTY, Draft, Round
from specviz.heads.base import Head
from specviz.heads.load import load as load_head
from specviz.heads.packing import pack
from specviz.heads.small_llama import D2T, SHARED, load_small_llama, write_whole
from specviz.models.load import load
from tests.cli.folders import write_model
from tests.heads_on_disk import write_head, write_small_llama

PROMPTS = ((5, 9, 2, 5, 9), (7, 3, 7, 3))


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return write_model(tmp_path_factory.mktemp("model") / "tiny", layers=2)


def job(model: Path, scheme: str, drafter: Path | None = None, length: int = 3) -> Job:
    return Job(
        scheme=scheme,
        target=model,
        drafter=drafter,
        draft_length=length,
        tokens=12,
        prompts=PROMPTS,
    )


@pytest.mark.parametrize("scheme", ["eagle3", "mtp", "dflash", "dspark"])
def test_an_exported_head_packed_before_drafts_as_before(
    scheme: str, model: Path, tmp_path: Path
) -> None:
    target = load(str(model), device="cpu", dtype="bfloat16").target
    made = write_head(scheme, tmp_path / "made")
    pack(made, tmp_path / "packed", target)
    out = export(tmp_path / "packed", tmp_path / "out", target, model)
    config = json.loads((out / "config.json").read_text())
    assert config["speculators_model_type"] == scheme
    tensors = load_file(out / "model.safetensors")
    assert {t.dtype for t in tensors.values() if t.is_floating_point()} == {torch.bfloat16}
    here, there = (load_head(f, target) for f in (tmp_path / "packed", out))
    assert isinstance(here, Head)
    assert here.taps == there.taps
    for name, tensor in there.state_dict().items():
        if name in here.state_dict():
            assert torch.equal(tensor, here.state_dict()[name].to(torch.bfloat16)), name


def test_blocks_are_drafted_whole(model: Path, tmp_path: Path) -> None:
    target = load(str(model), device="cpu", dtype="bfloat16").target
    assert draft_length(write_head("dflash", tmp_path / "a"), target, 2) == 4
    assert draft_length(write_head("eagle3", tmp_path / "b"), target, 2) == 2


def test_a_draft_model_without_tables_becomes_a_whole_folder(model: Path, tmp_path: Path) -> None:
    loaded = load(str(model), device="cpu", dtype="bfloat16")
    made = write_small_llama(model, tmp_path / "made")
    write_whole(made, tmp_path / "whole", loaded.target, model)
    whole = load(str(tmp_path / "whole"), device="cpu", dtype="bfloat16")
    part = load_small_llama(made, loaded.target)
    for target in (whole.target, part):
        target.prefill(PROMPTS[0])
    logits = [t.score(1, EMPTY) for t in (whole.target, part)]
    assert torch.equal(*logits)
    assert not {SHARED, D2T} & json.loads((tmp_path / "whole" / "config.json").read_text()).keys()
    assert whole.tokenizer.vocab_size == loaded.tokenizer.vocab_size


def test_ours_counts_what_vllm_counts(model: Path) -> None:
    loaded = load(str(model), device="cpu", dtype="float32")
    plain = Ours(loaded, job(model, "none", length=0)).decode()
    found = Ours(loaded, job(model, "ngram")).decode()
    assert [c.output for c in found] == [c.output for c in plain]
    for counts in found:
        assert counts.drafted <= 3 * counts.rounds
        assert counts.accepted == sum(counts.by_position)
        assert list(counts.by_position) == sorted(counts.by_position, reverse=True)
    assert sum(c.rounds for c in found) > 0
    assert all(c.rounds == 0 and acceptance_length([c]) is None for c in plain)


def test_what_was_accepted_beyond_the_end_is_counted() -> None:
    ended = Round(
        index=0,
        start=4,
        scheme="ngram",
        budget=3,
        draft=Draft.chain((1, 2, 3)),
        path=(0,),
        last_token=None,
        last_kind="bonus",
        past_end=(1,),
    )
    silent = replace(ended, draft=EMPTY, path=(), past_end=(), last_token=7)
    counts = count((1,), [ended, silent])
    assert (counts.rounds, counts.drafted, counts.accepted) == (1, 3, 2)
    assert counts.by_position == (1, 1, 0)


def test_the_share_of_equal_prefixes_and_the_distance_are_of_both_sides() -> None:
    ours = (Counts(output=(1, 2, 3, 4), rounds=2, drafted=6, accepted=2), Counts(output=(5, 6)))
    theirs = (Counts(output=(1, 2, 9, 4), rounds=3, drafted=9, accepted=1), Counts(output=(5, 6)))
    row = Row(scheme="ngram", draft_length=3, ours=ours, theirs=theirs)
    assert row.same_prefix == 4 / 6
    assert row.apart == pytest.approx(2 / (4 / 3) - 1)
    assert row.same == [(ours[1], theirs[1])]
    assert "| ngram | 3 | 2.000 | 1.333 | +50.0% | 2 / 3 | 66.7% | 1 of 2 | n/a / n/a |" in as_text(
        [row]
    )


def test_what_vllm_refuses_is_said_in_its_own_words(model: Path, tmp_path: Path) -> None:
    python = Path(sys.executable)  # it has no vLLM
    with pytest.raises(UnsupportedModel, match="No module named 'vllm'"):
        decode(job(model, "ngram"), python, tmp_path, 64)
    asked = json.loads((tmp_path / "job.json").read_text())
    assert asked["speculative"] == {
        "method": "ngram",
        "num_speculative_tokens": 3,
        "prompt_lookup_min": 1,
        "prompt_lookup_max": 3,
    }
    with pytest.raises(ConfigError, match="make conformance"):
        decode(job(model, "ngram"), tmp_path / "nothing", tmp_path, 64)


def test_the_reason_is_the_last_error_of_a_log_without_its_trimmings() -> None:
    log = (
        "KeyError: 'a'\n"
        "pydantic_core.ValidationError: 1 validation error for VllmConfig\n"
        "  Value error, Model Runner V1 does not support: dspark [type=value_error, input=1]\n"
        "    For further information visit a page\n"
    )
    assert reason(log) == "Value error, Model Runner V1 does not support: dspark"
    assert reason("[rank0]: AttributeError: x\n[rank0]: done") == "AttributeError: x"
    assert reason("killed\n") == "killed"
    assert reason("") == "nothing"


def test_a_file_without_counters_is_refused(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text("{}")
    with pytest.raises(ModelCorrupt, match="holds no counters of vLLM"):
        read_counts(tmp_path / "result.json")
