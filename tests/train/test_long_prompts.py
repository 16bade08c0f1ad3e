"""Long prompts are made of whole texts of a corpus, by a seed."""

import json
from pathlib import Path

import pyarrow
import pyarrow.parquet

from specviz.train import long_prompts as module
from specviz.train.data import read_prompts
from specviz.train.long_prompts import Material, long_prompts, read_material

SENTENCES = [
    f"Sentence {n} says what the sentence before it could not yet have said" for n in range(8)
]
GOOD = ". ".join(SENTENCES) + ". And this one was cut by the bud"
CIRCLE = ". ".join([SENTENCES[0]] * 8) + "."


def corpus(tmp_path: Path) -> Path:
    rows = [
        {"prompt": "Why is the sky blue?", "response": GOOD},
        {"prompt": "Write an essay.", "response": CIRCLE},
        {"prompt": "Code?", "response": "```\n" + GOOD},
        {"prompt": "Short?", "response": "Yes. It is. So."},
    ]
    path = tmp_path / "corpus.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


def test_documents_are_prose_to_its_last_whole_sentence(tmp_path: Path) -> None:
    material = read_material([corpus(tmp_path)])
    assert material.texts == (". ".join(SENTENCES) + ".",)
    assert material.questions == ("Why is the sky blue?", "Code?", "Short?")


def test_prompts_are_as_long_as_asked_and_the_same_by_seed() -> None:
    material = Material(tuple(f"Text {n}. " * 20 for n in range(9)), ("Why?", "Who?"))
    found = list(long_prompts(material, 20, (1000, 3000), seed=1))
    assert [p["source"] for p in found] == ["summary", "passages"] * 10
    assert all(1000 <= len(p["prompt"]) <= 3000 + 400 for p in found)
    assert len({p["prompt"] for p in found}) == 20
    assert found == list(long_prompts(material, 20, (1000, 3000), seed=1))
    assert found != list(long_prompts(material, 20, (1000, 3000), seed=2))
    assert all("?" in p["prompt"] and "[2]" in p["prompt"] for p in found[1::2])


def test_the_command_writes_what_train_reads(tmp_path: Path, monkeypatch) -> None:
    out = tmp_path / "prompts.jsonl"
    words = ["--data", str(corpus(tmp_path)), "--out", str(out), "--count", "4"]
    monkeypatch.setattr("sys.argv", ["long_prompts", *words])
    module.main()
    assert len(out.read_text().splitlines()) == 4
    assert [c.kind for c in read_prompts(out)] == ["summary", "passages"] * 2
    assert json.loads(out.read_text().splitlines()[0])["prompt"].count(SENTENCES[3]) >= 2
