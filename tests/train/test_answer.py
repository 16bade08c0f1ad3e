"""Prompts answered in one batch by transformers: the same greedy text as our own loop's."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from specviz.config import SamplingParams
from specviz.models.llama import LlamaTarget
from specviz.models.llama_config import read_llama_config
from specviz.models.load import Loaded
from specviz.models.tiny import TinyShape, tiny_tensors
from specviz.train.answer import OneByOne, Together
from specviz.train.data import Answering, answer_prompts
from tests.train.test_command import tiny_tokenizer
from tests.train.tiny_corpus import VOCAB

END = 13
PROMPTS = [(1, 2, 3), (4, 5, 6, 7, 8, 9, 10), (11,), (20, 21, 22, 23)]


@pytest.fixture
def loaded(tmp_path: Path) -> Loaded:
    settings = TinyShape(vocab=VOCAB, layers=2).settings("smollm2") | {"eos_token_id": END}
    config = read_llama_config(settings, name="tiny")
    tensors = tiny_tensors(config, seed=3)
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(settings))
    save_file({name: t.contiguous() for name, t in tensors.items()}, folder / "model.safetensors")
    target = LlamaTarget.from_tensors(config, tensors, dtype=torch.float32)
    return Loaded(target, tiny_tokenizer(), str(folder))


def greedy(count: int, max_tokens: int = 40) -> list[SamplingParams]:
    return [SamplingParams(max_tokens=max_tokens, seed=i) for i in range(count)]


def test_a_batch_says_what_each_prompt_says_alone(loaded: Loaded) -> None:
    params = [*greedy(3), SamplingParams(max_tokens=5)]
    alone = OneByOne(loaded).answer(PROMPTS, params)
    assert Together(loaded).answer(PROMPTS, params) == alone
    assert any(output[-1] == END for output in alone)  # one stops, the others go on
    assert len({len(output) for output in alone}) > 1


def test_each_row_has_its_own_temperature(loaded: Loaded) -> None:
    prompts = [(1, 2, 3)] * 8
    params = [SamplingParams(max_tokens=12, temperature=0.0 if i < 4 else 1.5) for i in range(8)]
    outputs = Together(loaded).answer(prompts, params)
    assert len(set(outputs[:4])) == 1
    assert outputs[0] == OneByOne(loaded).answer(prompts[:1], params[:1])[0]
    assert len(set(outputs[4:])) == 4
    assert Together(loaded).answer(prompts, params) == outputs  # by seed


def test_a_killed_run_answers_its_batch_again(loaded: Loaded, tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.jsonl"
    turns = [{"role": "user", "content": "EF"}, {"role": "user", "content": "GH"}]
    lines: list[object] = ["AB", {"messages": turns}, "CD", "IJ", "KL"]
    prompts.write_text("".join(json.dumps(line) + "\n" for line in lines))
    answering = Answering(temperatures=(0.0, 0.9), max_tokens=6, together=2)
    whole = answer_prompts(loaded, prompts, tmp_path / "whole.jsonl", answering).read_text()
    rows = whole.splitlines(keepends=True)
    assert [json.loads(row)["prompt"] for row in rows] == [0, 1, 1, 2, 3, 4]
    for kept in range(len(rows) + 1):
        cut = tmp_path / f"cut{kept}.jsonl"
        cut.write_text("".join(rows[:kept]) + (rows[kept][:9] if kept < len(rows) else ""))
        assert answer_prompts(loaded, prompts, cut, answering).read_text() == whole
