"""`sweep` on a tiny model, and what it refuses."""

import json
from xml.etree import ElementTree

import pytest

from specviz.cli import main
from specviz.cli.sweep import read_lengths
from specviz.errors import ConfigError
from tests.cli.folders import write_model


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("models") / "tiny", context=256)


def test_one_line_per_point_and_the_files_beside(model, tmp_path, capsys):
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"prompt": "abab", "class": "copy", "id": "one"}\n')
    flags = [*("sweep", "--model", str(model), "--device", "cpu", "--dtype", "float32", "--json")]
    flags += ["--schemes", "ngram", "--draft-lengths", "2", "--max-tokens", "4", "--rows", "3"]
    flags += ["--repeats", "1", "--prompts", str(prompts), "--out", str(tmp_path / "out")]
    assert main(flags) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(r["scheme"], r["draft_length"], r["prompt_class"]) for r in rows] == [
        ("ngram", 2, "copy"),
        ("ngram", 2, "all"),
    ]
    assert rows[0]["interval"][0] <= rows[0]["measured_speedup"] <= rows[0]["interval"][1]
    before = (tmp_path / "out" / "sweep.jsonl").read_bytes()
    assert main(flags) == 0
    assert (tmp_path / "out" / "sweep.jsonl").read_bytes() == before
    for name in ("sweep.json", "sweep.csv", "speculation_profile.json"):
        assert (tmp_path / "out" / name).stat().st_size > 100
    docs = tmp_path / "docs"
    assert main(["sweep", "--read", str(tmp_path / "out"), "--draw", str(docs), "--json"]) == 0
    best = (docs / "sweep.md").read_text()
    assert f"| ngram | {rows[0]['measured_speedup']:.2f} (" in best
    assert "| scheme | copy | all |" in best
    for name in ("sweep-verify.svg", "sweep-speedup.svg"):
        picture = (docs / name).read_text()
        ElementTree.fromstring(picture)
        assert len(picture) < 150_000
    assert picture.count("<polyline") == 2  # the scheme, and plain decoding


def test_a_file_that_is_not_there_is_refused(tmp_path, capsys):
    assert main(["sweep", "--read", str(tmp_path / "nothing")]) == 2
    assert "give a sweep.jsonl" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--schemes", "ngrm"], "did you mean 'ngram'"),
        (["--schemes", "none"], "always measured"),
        (["--draft-lengths", "x"], "numbers and ranges"),
        (["--draft-lengths", "0"], "1 to 256"),
        (["--groups", "half"], "exact, twin, kernel"),
        (["--temperatures", "warm"], "numbers with commas"),
        (["--prompts", "nowhere.jsonl"], "give a file of JSON lines"),
    ],
)
def test_a_flag_out_of_range_is_refused_before_anything_loads(flags, message, capsys):
    assert main(["sweep", *flags]) == 2
    assert message in capsys.readouterr().err


def test_lengths_are_numbers_and_ranges():
    assert read_lengths("1-3,8, 2") == (1, 2, 3, 8)
    with pytest.raises(ConfigError):
        read_lengths("3-x")


def test_a_line_that_is_no_prompt_is_named(tmp_path, capsys):
    file = tmp_path / "p.jsonl"
    file.write_text('{"text": "fine"}\nnot json\n')
    assert main(["sweep", "--prompts", str(file)]) == 2
    assert "line 2" in capsys.readouterr().err
