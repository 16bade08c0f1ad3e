"""`advise` on the command line: its JSON, its reasons, its refusals."""

import io
import json
import subprocess
import sys

import pytest

from specviz import recordings
from specviz.bench import machine
from specviz.cost.hardware import GPUS, Gpu, to_json
from tests.cli.conftest import Call

QWEN = {
    "model_type": "qwen3",
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 151936,
}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_the_json_has_every_promised_key(call: Call, cache):
    shown = call("advise", "--model", "Llama-3.1-70B", "--gpu", "b200", "--json").json
    assert shown["group_size"] == 8
    assert (shown["tile"], shown["d_star"]) == (128, 15)
    assert {"scheme", "draft_length", "speedup"} <= set(shown["optimum"])
    assert {"name", "blocks", "rows", "utilisation"} <= set(shown["kernels"][0])
    assert {"weights", "experts", "attention"} <= set(shown["free_rows"])
    assert shown["free_rows"]["experts"] is None
    assert all(isinstance(reason, str) and reason for reason in shown["reasons"])
    assert set(shown["how"].values()) <= {"measured", "published", "modelled"}


def test_a_config_file_a_folder_and_the_hub_name_agree(call: Call, cache, monkeypatch):
    (cache / "Mine").mkdir()
    file = cache / "Mine" / "config.json"
    file.write_text(json.dumps(QWEN))
    answers = [
        call("advise", "--config", str(file), "--json").json,
        call("advise", "--model", str(file.parent), "--json").json,
        call("advise", "--model", "Qwen/Qwen3-8B", "--json").json,
    ]
    assert [a["optimum"] for a in answers[:2]] == [answers[2]["optimum"]] * 2
    assert answers[0]["model"] == "Mine"
    monkeypatch.setattr(sys, "stdin", io.StringIO(file.read_text()))
    assert call("advise", "--config", "-", "--json").json["optimum"] == answers[0]["optimum"]


def test_the_text_names_the_winner_the_rule_and_where_numbers_come_from(call: Call, cache):
    said = call("advise", "--model", "Qwen3-8B").out
    for words in ("G, query heads per KV head: 4", "The rule D = 128/G - 1 says 31", "published"):
        assert words in said


def test_a_trace_is_a_measured_profile(call: Call, cache):
    trace = str(recordings.path("ngram-copy"))
    shown = call("advise", "--model", "Qwen3-8B", "--profile", trace, "--json").json
    assert [scheme["scheme"] for scheme in shown["schemes"]] == ["ngram"]
    assert shown["how"]["acceptance"] == "measured"


def test_one_rate_for_all_is_called_a_special_case(call: Call, cache):
    flags = ("--acceptance", "0.8", "--scheme", "mtp", "--json")
    shown = call("advise", "--model", "Qwen3-8B", *flags).json
    assert shown["schemes"][0]["acceptance"]["iid"] is True
    assert "special case" in shown["schemes"][0]["acceptance"]["source"]


def test_a_measured_machine_is_used_by_name(call: Call, cache):
    refused = call("advise", "--gpu", "this")
    assert refused.status == 2
    assert "advise --measure" in refused.err
    mine = Gpu(
        name="this",
        title="My machine",
        family="cpu",
        bf16=2e11,
        bandwidth=2e10,
        memory=8e9,
        how="measured",
    )
    machine.path().parent.mkdir(parents=True)
    machine.path().write_text(to_json(mine))
    shown = call("advise", "--gpu", "this", "--json").json
    assert shown["gpu"] == "this"
    assert (shown["how"]["hardware"], shown["how"]["times"]) == ("measured", "modelled")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--gpu", "tpu"), "'tpu'; known are a100"),
        (("--model", "nobody/knows"), "no built-in model"),
        (("--config", "/nowhere.json"), "/nowhere.json cannot be read"),
        (("--batch", "0"), "batch is 0"),
        (("--kernel", "fa9"), "'fa9'; known are"),
        (("--acceptance", "1.5"), "each 0 to 1"),
        (("--scheme", "medusa"), "no acceptance profile for medusa"),
        (("--profile", "/nowhere"), "cannot be read"),
        (("--config", "x", "--model", "y"), "not allowed with"),
    ],
)
def test_bad_requests_are_refused_in_one_line(call: Call, cache, flags, said):
    shown = call("advise", *flags)
    assert shown.status == 2
    assert said in shown.err
    assert "Traceback" not in shown.err
    assert shown.out == ""


def test_advice_needs_no_torch(cache):
    code = (
        "import sys; from specviz.cli import main\n"
        "assert main(['advise', '--model', 'DeepSeek-V3', '--tp', '8', '--json']) == 0\n"
        "assert not {'torch', 'transformers', 'streamlit'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_measuring_keeps_figures_that_are_plausible(cache, monkeypatch):
    monkeypatch.setattr(machine, "SECONDS", 0.0)
    monkeypatch.setattr(machine, "COPY_BYTES", {"cpu": 1 << 20})
    monkeypatch.setattr(machine, "SIDE", {"cpu": 64})
    monkeypatch.setattr(machine, "EXPS", {"cpu": 1024})
    found = machine.measure("cpu")
    assert machine.saved() == found
    assert (found.name, found.how, found.family) == ("this", "measured", "cpu")
    for figure in (found.bf16, found.fp32, found.bandwidth, found.exps, found.memory):
        assert figure > 1e5
    assert 0 < found.op_seconds < 1
    assert "measured" in found.sources["bandwidth"]
    assert found.name not in GPUS


def test_a_damaged_file_of_figures_counts_as_none(cache):
    machine.path().parent.mkdir(parents=True)
    machine.path().write_bytes(b"\xff{")
    assert machine.saved() is None
