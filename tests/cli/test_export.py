"""`export`: serving configurations and heads in other layouts."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from specviz.heads.packing import pack
from specviz.models.load import load
from tests.cli.conftest import Call
from tests.cli.folders import write_model
from tests.heads_on_disk import LAYERS, write_head, write_small_llama


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "deep", layers=LAYERS)


def test_a_configuration_goes_to_standard_output_and_its_notes_beside_it(call: Call):
    shown = call("export", "--engine", "sglang", "--scheme", "dflash", "-D", "15", "--draft", "h")
    assert "--speculative-num-draft-tokens 16" in shown.out
    assert "D + 1 = 16" in shown.err
    known = call("export", "--engine", "vllm", "--scheme", "mtp", "-D", "1", "--json").json
    assert known["draft_length"] == 1
    assert '"num_speculative_tokens": 1' in known["text"]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ((), "give either --engine"),
        (("--engine", "vllm", "--head", "x"), "give either --engine"),
        (("--engine", "vllm"), "no scheme was given"),
        (("--engine", "ollama", "--scheme", "ngram"), "'ollama'; known are"),
        (("--engine", "vllm", "--scheme", "medusa"), "'medusa'; engines serve"),
        (("--engine", "llama.cpp", "--scheme", "suffix"), "the nearest it does"),
        (("--engine", "vllm", "--scheme", "eagle3", "--tree", "4,16"), "a chain of D = 5"),
        (("--engine", "sglang", "--scheme", "eagle3", "--tree", "x"), "K,NODES"),
        (("--head", "x"), "both --format and --out"),
        (("--head", "/nowhere", "--format", "zlab", "--out", "/tmp/x"), "/nowhere"),
    ],
)
def test_bad_requests_are_refused_in_one_line(call: Call, deep: Path, flags, said):
    extra = ("--model", str(deep)) if "--format" in flags else ()
    shown = call("export", *flags, *extra)
    assert shown.status == 2
    assert said in shown.err
    assert "Traceback" not in shown.err


@pytest.mark.parametrize(
    ("scheme", "name", "layout"),
    [
        ("dflash", "speculators", "speculators-block"),
        ("dflash", "zlab", "z-lab"),
        ("eagle3", "speculators", "speculators-eagle3"),
        ("dspark", "deepspec", "deepspec"),
        ("mtp", "speculators", "speculators-mtp"),
    ],
)
def test_a_head_is_written_in_bf16_and_read_back(
    call: Call, deep: Path, tmp_path: Path, scheme: str, name: str, layout: str
):
    source, out = write_head(scheme, tmp_path / "in"), tmp_path / "out"
    flags = ("--head", str(source), "--model", str(deep), "--format", name, "--out", str(out))
    shown = call("export", *flags, "--json")
    assert shown.status == 0, shown.err
    assert shown.json["format"] == layout
    tensors = load_file(out / "model.safetensors")
    floats = {t.dtype for t in tensors.values() if t.is_floating_point()}
    assert floats == {torch.bfloat16}
    assert json.loads((out / "config.json").read_text())


def test_a_layout_that_does_not_hold_such_a_head_is_refused(call: Call, deep: Path, tmp_path: Path):
    source = write_head("eagle3", tmp_path / "in")
    flags = ("--head", str(source), "--model", str(deep), "--out", str(tmp_path / "out"))
    shown = call("export", *flags, "--format", "zlab")
    assert shown.status == 2
    assert "Traceback" not in shown.err


def test_a_packed_head_takes_its_rows_from_the_target(call: Call, deep: Path, tmp_path: Path):
    target = load(str(deep), device="cpu", dtype="bfloat16").target
    made = write_head("eagle3", tmp_path / "made")
    pack(made, tmp_path / "packed", target)
    flags = ("--head", str(tmp_path / "packed"), "--model", str(deep), "--format", "speculators")
    shown = call("export", *flags, "--out", str(tmp_path / "out"), "--json")
    assert shown.status == 0, shown.err
    whole, back = (load_file(tmp_path / f / "model.safetensors") for f in ("made", "out"))
    assert back.keys() >= {"lm_head.weight", "d2t"}
    assert torch.allclose(back["lm_head.weight"].float(), whole["lm_head.weight"], atol=0.05)


def test_a_draft_model_gets_its_tables_and_tokenizer_back(call: Call, deep: Path, tmp_path: Path):
    source, out = write_small_llama(deep, tmp_path / "small"), tmp_path / "out"
    flags = ("--head", str(source), "--model", str(deep), "--out", str(out))
    assert "draft models that share" in call("export", *flags, "--format", "zlab").err
    shown = call("export", *flags, "--format", "huggingface", "--json")
    assert shown.status == 0, shown.err
    assert load(str(out), device="cpu", dtype="bfloat16").target.config.layers == 1
