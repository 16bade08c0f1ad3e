import gzip
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Call, Outcome


@pytest.fixture
def trace(decode: Call, tmp_path: Path) -> Path:
    file = tmp_path / "run.json"
    decode("--json", "--ignore-eos", "--trace", str(file))
    return file


def test_show_gives_the_numbers_the_run_gave(decode: Call, call: Call, tmp_path: Path) -> None:
    file = str(tmp_path / "run.json.gz")
    live = decode("--json", "--trace", file).json
    shown = call("trace", "show", file, "--json").json
    assert shown["output_ids"] == live["output_ids"]
    assert shown["lossless"] == live["lossless"]


def test_show_writes_every_round(call: Call, trace: Path) -> None:
    facts = call("trace", "show", str(trace), "--json").json
    out = call("trace", "show", str(trace)).out
    assert out.count(" ms  ") == facts["rounds"]


def test_show_opens_the_recordings_by_name(call: Call) -> None:
    from specviz import recordings

    assert len(recordings.names()) >= 3
    for name in recordings.names():
        assert call("trace", "show", name, "--json").json["rounds"] > 0


def test_c4_export_and_import_keep_every_token_id(call: Call, trace: Path, tmp_path: Path) -> None:
    exported, taken = tmp_path / "out.json", tmp_path / "in.json.gz"
    assert call("trace", "export", str(trace), "-o", str(exported)).status == 0
    assert call("trace", "import", str(exported), "-o", str(taken)).status == 0
    before = call("trace", "show", str(trace), "--json").json
    after = call("trace", "show", str(taken), "--json").json
    assert after["output_ids"] == before["output_ids"]


def test_csv_has_one_line_for_each_round_and_no_text(call: Call, trace: Path) -> None:
    facts = call("trace", "show", str(trace), "--json").json
    lines = call("trace", "export", str(trace), "--format", "csv").out.splitlines()
    assert lines[0].startswith("round,start,scheme,budget,drafted,accepted")
    assert len(lines) == 1 + facts["rounds"]
    assert not any(cell.startswith(("=", "@", "+")) for line in lines for cell in line.split(","))


def test_diff_of_a_trace_with_itself_finds_nothing(call: Call, trace: Path) -> None:
    found = call("trace", "diff", str(trace), str(trace), "--json").json
    assert found["same_output"] is True
    assert found["settings"] == {}
    assert found["first_difference"] is None


def test_diff_names_the_first_token_that_differs(
    decode: Call, call: Call, trace: Path, tmp_path: Path
) -> None:
    first = call("trace", "show", str(trace), "--json").json["output_ids"]
    other = tmp_path / "other.json"
    decode("--json", "--ignore-eos", "--logit-bias", f"{first[3]}=-inf", "--trace", str(other))
    found = call("trace", "diff", str(trace), str(other), "--json").json
    at = found["first_difference"]
    assert at <= 3
    assert found["tokens"][0] == first[at]
    assert "logit_bias" in found["settings"]
    assert f"token {at}" in call("trace", "diff", str(trace), str(other)).out


def refused(outcome: Outcome) -> None:
    assert outcome.status == 2
    assert "Traceback" not in outcome.err
    assert outcome.err


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\x1f\x8b\x08",
        b'{"schema": 999999}',
        b'{"schema": 1}',
        b"[" * 100_000,
        gzip.compress(b"{", mtime=0),
        b"\xff\xfe\xfd",
    ],
)
def test_a_hostile_trace_is_refused(call: Call, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "hostile.json"
    file.write_bytes(content)
    refused(call("trace", "show", str(file)))


def test_a_truncated_trace_is_refused(call: Call, trace: Path) -> None:
    trace.write_bytes(trace.read_bytes()[:-20])
    refused(call("trace", "show", str(trace)))


def test_a_missing_trace_is_refused(call: Call, tmp_path: Path) -> None:
    refused(call("trace", "show", str(tmp_path / "none.json")))


def test_terminal_codes_inside_a_trace_are_shown_and_not_obeyed(call: Call, trace: Path) -> None:
    data = json.loads(trace.read_text(encoding="utf-8"))
    data["title"] = "evil \x1b[2J title"
    trace.write_text(json.dumps(data), encoding="utf-8")
    outcome = call("trace", "show", str(trace))
    assert outcome.status == 0
    assert "\x1b" not in outcome.out
    assert "\\x1b[2J" in outcome.out


def test_export_writes_markdown_and_a_replay_of_a_recording(call: Call, tmp_path: Path) -> None:
    page, note = tmp_path / "run.html", tmp_path / "run.md"
    for file, form in ((page, "html"), (note, "md")):
        assert call("trace", "export", "ngram-copy", "--format", form, "-o", str(file)).status == 0
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert "#### First divergence" in note.read_text("utf-8")
    out = call("trace", "export", "ngram-copy", "--format", "md", "--without-prompt").out
    assert "#### Prompt\n\nleft out" in out


def test_import_reads_what_another_engine_logged(call: Call, tmp_path: Path) -> None:
    log, kept = tmp_path / "server.log", tmp_path / "kept.json"
    log.write_text("draft acceptance = 0.64479 (167 accepted / 259 generated), mean len = 2.92\n")
    outcome = call("trace", "import", str(log), "--json", "-o", str(kept))
    (run,) = outcome.json
    assert (run["engine"], run["accepted"], run["drafted"]) == ("llama.cpp", 167, 259)
    assert run["rounds"] is None
    assert json.loads(kept.read_text()) == outcome.json
    assert "accepted: 167" in call("trace", "import", str(log)).out


def test_import_of_something_else_is_refused(call: Call, tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("nothing of the kind")
    refused(call("trace", "import", str(other)))
    refused(call("trace", "import", str(tmp_path / "none.log")))
