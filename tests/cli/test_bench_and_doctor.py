import json
from pathlib import Path

import pytest

from specviz.models.store import cache_dir
from tests.cli.conftest import Call


def test_bench_prints_one_json_object(call: Call, model: Path) -> None:
    flags = ("--model", str(model), "--device", "cpu", "--dtype", "float32")
    small = ("--classes", "maths", "--schemes", "ngram", "--max-tokens", "4", "--repeats", "1")
    outcome = call("bench", *flags, *small, "-D", "2", "--no-overhead", "--json")
    assert [row["scheme"] for row in outcome.json["schemes"]] == ["none", "ngram"]
    assert outcome.json["peers"] == []


def test_bench_measures_a_draft_model(call: Call, model: Path) -> None:
    flags = ("--model", str(model), "--device", "cpu", "--dtype", "float32", "-D", "2")
    small = ("--classes", "maths", "--max-tokens", "4", "--repeats", "1", "--no-overhead")
    draft = ("--schemes", "draft_model", "--draft-model", str(model))
    plain, row = call("bench", *flags, *small, *draft, "--json").json["schemes"]
    assert (plain["scheme"], row["scheme"]) == ("none", "draft_model")


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (("--repeats", "0"), "repeats"),
        (("--max-tokens", "-3"), "max_tokens"),
        (("-D", "0"), "draft_length"),
        (("--classes", "poems"), "poems"),
        (("--classes", ""), "no prompt class"),
        (("--classes", " ,"), "no prompt class"),
        (("--schemes", "draft_model"), "--draft-model"),
        (("--schemes", "draft_model", "--draft-model", ""), "draft_model"),
        (("--schemes", "gram"), "gram"),
        (("--against", "magic"), "magic"),
    ],
)
def test_bench_refuses_what_it_cannot_measure(
    call: Call, flags: tuple[str, ...], word: str
) -> None:
    outcome = call("bench", "--model", "/no/such/folder", *flags)
    assert outcome.status == 2
    assert word in outcome.err


def test_bench_finds_the_best_length_of_every_scheme(
    call: Call, model: Path, tmp_path: Path
) -> None:
    flags = ("--model", str(model), "--device", "cpu", "--dtype", "float32", "--repeats", "1")
    small = ("--classes", "maths,chat", "--max-tokens", "4", "--schemes", "ngram,draft_model")
    file = tmp_path / "new" / "results.jsonl"
    lengths = ("--draft-lengths", "1", "--draft-lengths", "draft_model=1,2", "--probes", "1")
    more = (*lengths, "--head", f"draft_model={model}", "--results", str(file), "--json")
    known = call("bench", *flags, *small, *more).json
    assert {row["label"] for row in known["rows"]} == {"plain", "ngram", "draft_model"}
    assert {row["kind"] for row in known["rows"]} == {"all", "maths", "chat"}
    assert set(known["probe_rates"]) == {"draft_model"}
    lines = file.read_text().splitlines()
    assert len(lines) == 1 + 1 + 2  # what is measured, a probe, and both prompts
    again = call("bench", *flags, *small, *more).json
    assert [row["per_position"] for row in again["rows"]] == [
        row["per_position"] for row in known["rows"]
    ]
    assert file.read_text().splitlines() == lines


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (("--draft-lengths", "x"), "draft_lengths is 'x'"),
        (("--draft-lengths", "0"), "draft_lengths"),
        (("--draft-lengths", "mtp=2"), "draft_lengths is 'mtp=2'"),
        (("--draft-lengths", "2", "--head", "eagle3"), "head is 'eagle3'"),
        (("--draft-lengths", "2", "--schemes", "none"), "leave out 'none'"),
        (("--draft-lengths", "2", "--probes", "0"), "probes is 0"),
        (("--draft-lengths", "2", "--temperature", "-1"), "temperature is -1"),
        (("--draft-lengths", "2", "--spec-bench"), "name it with --prompts"),
        (("--prompts", "/no/such.jsonl"), "/no/such.jsonl"),
        (("--tree", "x", "--schemes", "eagle3"), "tree is 'x'"),
    ],
)
def test_bench_of_schemes_refuses_what_it_cannot_measure(
    call: Call, flags: tuple[str, ...], word: str
) -> None:
    outcome = call("bench", "--model", "/no/such/folder", *flags)
    assert outcome.status == 2
    assert word in outcome.err


def test_doctor_names_what_is_here_and_what_is_not(call: Call) -> None:
    outcome = call("doctor")
    for word in ("torch", "device", "dtype", "cache", str(cache_dir()), "triton", "embedded"):
        assert word in outcome.out


def test_doctor_gives_advice_for_everything_that_is_missing(call: Call) -> None:
    outcome = call("doctor", "--json")
    findings = json.loads(outcome.out)["findings"]
    assert all(f["advice"] for f in findings if f["state"] == "problem")
    assert outcome.status == (0 if outcome.json["healthy"] else 1)


def test_doctor_says_when_the_cache_cannot_be_used(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder", encoding="utf-8")
    monkeypatch.setenv("SPECVIZ_CACHE", str(file))
    outcome = call("doctor", "--json")
    cache = next(f for f in outcome.json["findings"] if f["name"] == "cache")
    assert cache["state"] == "problem"
    assert "SPECVIZ_CACHE" in cache["advice"]
    assert outcome.status == 1
