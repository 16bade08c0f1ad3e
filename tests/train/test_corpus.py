"""Texts and features: read once, kept in shards, never mixed up."""

import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import torch

from specviz.errors import ConfigError, ModelCorrupt
from specviz.models.tiny import tiny_llama
from specviz.train import features as features_module
from specviz.train.batches import collate, plan
from specviz.train.corpus import Example, frequent_ids, read_corpora, to_row
from specviz.train.features import FeatureCache, Joined, Recomputed, extract
from tests.train.tiny_corpus import greedy_examples, tiny_target

TAPS = (1, 2, 3, 4)


def write_jsonl(path: Path, examples: list[Example]) -> Path:
    path.write_text("".join(json.dumps(to_row(e)) + "\n" for e in examples))
    return path


def example(*tokens: int, prompt: int = 1, held_out: bool = False) -> Example:
    return Example(tokens=tokens, prompt_length=prompt, greedy=True, kind="x", held_out=held_out)


def test_both_kinds_of_file_say_the_same_and_every_20th_row_is_held_out(tmp_path: Path) -> None:
    rows = [to_row(example(1, 2, 3 + i, prompt=2)) for i in range(45)]
    rows[7]["temperature"] = 0.8
    table = pyarrow.Table.from_pylist(rows)
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = read_corpora([tmp_path / "a.parquet"])
    assert found == read_corpora([tmp_path / "a.jsonl"])
    assert [i for i, e in enumerate(found) if e.held_out] == [0, 20, 40]
    assert [i for i, e in enumerate(found) if not e.greedy] == [7]
    assert found[3].response == (6,)
    both = read_corpora([tmp_path / "a.parquet", tmp_path / "a.jsonl"], rows=21)
    assert [i for i, e in enumerate(both) if e.held_out] == [0, 20, 21, 41]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.txt", "", "neither .parquet nor .jsonl"),
        ("a.jsonl", "{", "line 1 is no JSON"),
        ("a.jsonl", '{"prompt_ids": [1]}', "line 1 is no response"),
        ("a.jsonl", "", "no rows"),
        ("a.parquet", "no", "no parquet file"),
    ],
)
def test_a_file_that_is_no_corpus_is_refused_by_name(
    tmp_path: Path, name: str, content: str, says: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ConfigError, match=says):
        read_corpora([tmp_path / name])


def test_the_draft_vocabulary_is_the_most_frequent_of_what_is_trained_on() -> None:
    examples = [example(60, 5, 5, 7, 9), example(60, 5, 7), example(60, 8, 8, 8, held_out=True)]
    assert frequent_ids(examples, 2).tolist() == [5, 7]
    assert frequent_ids(examples, 2, always=(2,)).tolist() == [2, 5]
    assert frequent_ids(examples, 6).tolist() == [0, 1, 2, 5, 7, 9]


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features_module, "SHARD", 3)


@pytest.mark.usefixtures("small_shards")
def test_features_on_disk_are_those_made_on_the_fly(tmp_path: Path) -> None:
    target, examples = tiny_target(), greedy_examples(tiny_target(), 7)
    fly, disk = Recomputed(target, examples, TAPS), extract(target, examples, tmp_path, TAPS)
    assert len(list(tmp_path.glob("*.safetensors"))) == 3
    assert disk.examples == examples
    for index in range(7):
        assert torch.equal(disk.features(index), fly.features(index))


@pytest.mark.usefixtures("small_shards")
def test_extraction_goes_on_where_it_was_killed(tmp_path: Path) -> None:
    target, examples = tiny_target(), greedy_examples(tiny_target(), 7)
    extract(target, examples[:4], tmp_path, TAPS)
    first = tmp_path / "features-00000.safetensors"
    written = first.stat().st_mtime_ns
    (tmp_path / "features-00002.partial").write_text("half of it")
    cache = extract(target, examples, tmp_path, TAPS)
    assert cache.examples == examples
    assert extract(target, examples[:5], tmp_path, TAPS).examples == examples[:5]
    assert first.stat().st_mtime_ns == written


def test_joined_sources_are_one_after_the_other() -> None:
    target, examples = tiny_target(), greedy_examples(tiny_target(), 5)
    whole = Recomputed(target, examples, TAPS)
    joined = Joined([Recomputed(target, part, TAPS) for part in (examples[:2], examples[2:])])
    assert joined.examples == examples
    for index in range(5):
        assert torch.equal(joined.features(index), whole.features(index))


@pytest.mark.usefixtures("small_shards")
def test_features_of_something_else_are_refused(tmp_path: Path) -> None:
    target, examples = tiny_target(), greedy_examples(tiny_target(), 4)
    extract(target, examples, tmp_path, TAPS)
    with pytest.raises(ConfigError, match="taps"):
        extract(target, examples, tmp_path, (1, 4))
    with pytest.raises(ConfigError, match="model"):
        extract(tiny_llama(seed=9, layers=4, family="smollm2"), examples, tmp_path, TAPS)
    with pytest.raises(ConfigError, match="other texts"):
        extract(target, examples[::-1], tmp_path, TAPS)
    (tmp_path / "features-00001.safetensors").write_bytes(b"damaged")
    with pytest.raises(ModelCorrupt, match="features-00001"):
        FeatureCache(tmp_path)
    with pytest.raises(ConfigError, match="no features"):
        FeatureCache(tmp_path / "none")


def test_batches_hold_every_example_once_and_keep_to_the_budget() -> None:
    lengths = [5 + (i * 7) % 40 for i in range(100)]
    batches = plan(lengths, budget=100, seed=1)
    assert sorted(i for batch in batches for i in batch) == list(range(100))
    for batch in batches:
        assert len(batch) * max(lengths[i] for i in batch) <= 100
    assert plan(lengths, 100, seed=1) == batches != plan(lengths, 100, seed=2)
    assert plan([500, 3], budget=100, seed=0) in ([[1], [0]], [[0], [1]])


def test_a_batch_is_padded_at_the_end_and_supervised_on_responses() -> None:
    target, examples = tiny_target(), greedy_examples(tiny_target(), 3)
    source = Recomputed(target, examples, TAPS)
    batch = collate(source, [0, 2], torch.device("cpu"))
    for row, index in enumerate((0, 2)):
        one = examples[index]
        assert batch.tokens[row, : len(one)].tolist() == list(one.tokens)
        marks = batch.supervised[row].nonzero()[:, 0].tolist()
        assert marks == list(range(one.prompt_length, len(one)))
        assert torch.equal(batch.features[row, : len(one)], source.features(index))
        assert not batch.features[row, len(one) :].any()
    assert torch.equal(batch.select((3, 1))[..., 0, :], batch.features[..., 2, :])
    assert torch.equal(batch.final, batch.features[..., 3, :])
