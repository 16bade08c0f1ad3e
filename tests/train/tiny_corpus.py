"""A tiny random target, what it answers greedily, and its features in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from specviz.events import EMPTY
from specviz.models.llama import LlamaTarget
from specviz.models.tiny import tiny_llama
from specviz.train.build import taps_to_cache
from specviz.train.corpus import Example
from specviz.train.features import Recomputed
from specviz.train.recipe import Recipe, default_recipe

VOCAB = 64


def tiny_target(seed: int = 3) -> LlamaTarget:
    return tiny_llama(seed=seed, family="smollm2", layers=4, vocab=VOCAB)


def answer(target: LlamaTarget, prompt: Sequence[int], length: int) -> tuple[int, ...]:
    target.truncate(0)
    target.prefill(prompt[:-1])
    tokens = list(prompt)
    for _ in range(length):
        row = target.score(tokens[-1], EMPTY)[0]
        target.commit(())
        tokens.append(int(row.argmax()))
    return tuple(tokens)


def greedy_examples(target: LlamaTarget, count: int = 24, length: int = 14) -> list[Example]:
    generator = torch.Generator().manual_seed(0)
    found = []
    for row in range(count):
        size = 3 + row % 4
        prompt = torch.randint(VOCAB, (size,), generator=generator).tolist()
        found.append(
            Example(
                tokens=answer(target, prompt, length - row % 3),
                prompt_length=size,
                greedy=True,
                kind="even" if row % 2 == 0 else "odd",
                held_out=row % 6 == 0,
            )
        )
    return found


@dataclass(frozen=True)
class Bench:
    target: LlamaTarget
    source: Recomputed


def bench(count: int = 24) -> Bench:
    target = tiny_target()
    examples = greedy_examples(target, count)
    return Bench(target, Recomputed(target, examples, taps_to_cache(target.config.layers)))


def tiny_recipe(scheme: str, **changes: object) -> Recipe:
    settings = {f: getattr(default_recipe(scheme), f) for f in default_recipe(scheme).as_dict()}
    settings |= {
        "steps": 6,
        "batch_tokens": 80,
        "warmup": 2,
        "draft_vocab": 48,
        "autocast": False,
        "measure_every": 3,
        "measure_on": 3,
        "save_every": 3,
        "layers": 1,
        "block": 4,
        "anchors": 6,
        "rank": 8,
    }
    return Recipe(**(settings | changes))  # type: ignore[arg-type]


def folder(base: Path, name: str) -> Path:
    return base / name
