"""Drafting a chain with a recurrent head: one row after another, each on the last one's state."""

from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.heads.choice import Choice, Guess, Text, check_best
from specviz.heads.device_choice import DeviceRule
from specviz.heads.runner import Reading, Runner
from specviz.words import _


@dataclass(frozen=True, slots=True)
class Chain:
    """What was drafted, and why it ended early if it did."""

    guesses: tuple[Guess, ...]
    stopped: str

    @property
    def tokens(self) -> tuple[int, ...]:
        return tuple(guess.token for guess in self.guesses)

    @property
    def scores(self) -> tuple[float, ...]:
        return tuple(guess.score for guess in self.guesses)

    @property
    def q(self) -> Tensor | None:
        """Distributions [drafted, vocab] of a sampled chain, None of a greedy one."""
        rows = [guess.q for guess in self.guesses if guess.q is not None]
        return torch.cat(rows) if rows else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Where a chain ends. Whether a position is drafted never depends on its own draw."""

    budget: int
    least: float  # stop where the favourite's probability is below
    ends: frozenset[int]  # stop after one of these


def draft_chain(
    runner: Runner, reading: Reading, choice: Choice, text: Text, limits: Limits
) -> Chain:
    """Draft after `reading`, the last true row; the drafted rows are dropped again."""
    rule = choice.device_rule(text.params)
    if runner.on_device is not None and rule is not None:
        return _at_once(runner, reading, rule, text, limits)
    guesses: list[Guess] = []
    stopped = ""
    while True:
        guess = choice.choose(reading.logits[-1], text, tuple(g.token for g in guesses))
        if guess.best < limits.least:
            stopped = _why(guess, limits)
            break
        guesses.append(guess)
        if len(guesses) == limits.budget or guess.token in limits.ends:
            break
        reading = runner.step(reading.hidden[-1:], (guess.token,), len(guesses))
    runner.drop_drafted()
    return Chain(tuple(guesses), stopped)


def _at_once(
    runner: Runner, reading: Reading, rule: DeviceRule, text: Text, limits: Limits
) -> Chain:
    """Draft the whole budget on the device, then cut where a walk would have ended."""
    first = len(text.tokens)
    uniforms = [text.draws.uniform(first + i, "draft") for i in range(limits.budget)]
    guesses, stopped = list[Guess](), ""
    for guess in runner.drafted(reading, rule, uniforms):
        check_best(guess.best, text, tuple(g.token for g in guesses))
        if guess.best < limits.least:
            stopped = _why(guess, limits)
            break
        guesses.append(guess)
        if guess.token in limits.ends:
            break
    return Chain(tuple(guesses), stopped)


def _why(guess: Guess, limits: Limits) -> str:
    words = _("Stopped: the best next token has probability {p:.2f}, below {least}.")
    return words.format(p=guess.best, least=limits.least)
