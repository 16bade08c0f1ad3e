"""`compare` on a tiny model: one object with every scheme and the verdict, or a table."""

import json

import pytest

from specviz.cli import main
from tests.cli.folders import write_model


@pytest.fixture(scope="module")
def flags(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    prompts = folder / "prompts.jsonl"
    prompts.write_text('{"prompt": "abab", "class": "copy", "id": "one"}\n')
    model = write_model(folder / "tiny", context=256)
    run = ["compare", "--model", str(model), "--device", "cpu", "--dtype", "float32"]
    return [*run, "--prompts", str(prompts), "--max-tokens", "4", "--repeats", "1", "-D", "2"]


def test_every_scheme_stands_beside_plain_decoding(flags, capsys):
    assert main([*flags, "--schemes", "ngram,suffix,mtp", "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert [s["scheme"] for s in found["schemes"]] == ["ngram", "suffix"]
    assert all(s["same_text"] and s["draft_length"] == 2 for s in found["schemes"])
    assert found["departures"] == []
    assert found["outcome"] == "unsure"  # one prompt is an anecdote
    assert list(found["unavailable"]) == ["mtp"]
    assert "needs a head" in err


def test_people_get_a_table_and_the_reasons(flags, capsys):
    assert main([*flags, "--schemes", "ngram"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Scheme")
    assert lines[1].startswith("plain decoding")
    assert lines[2].split()[0] == "n-gram"
    assert "A round commits" in lines[-1]


def test_what_is_out_of_range_is_refused(flags, capsys):
    assert main([*flags, "--schemes", "none"]) == 2
    assert "always measured" in capsys.readouterr().err
    assert main(["compare", "-D", "0"]) == 2
    assert "1 to 256" in capsys.readouterr().err
