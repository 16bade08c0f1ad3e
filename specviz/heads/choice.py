"""How a head's logits become a drafted token: the argmax, or a draw whose q is kept."""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from specviz.config import DrafterOptions, SamplingParams
from specviz.errors import NumericsError
from specviz.heads.device_choice import DeviceRule
from specviz.models.transfer import fetch, send
from specviz.verify.draws import Draws, pick
from specviz.verify.processors import distribution, penalise
from specviz.words import _


@dataclass(frozen=True, slots=True)
class Guess:
    """One drafted token."""

    token: int  # the target's id
    score: float  # the head's own probability of it; of a greedy draft, at temperature 1
    best: float  # and of its favourite
    q: Tensor | None  # [1, vocab] it was drawn from; None if it is the argmax


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """What drafts are chosen after."""

    tokens: tuple[int, ...]
    prompt_length: int
    params: SamplingParams
    draws: Draws


class Choice:
    """Chooses in the target's vocabulary, of which a head may know a part.

    Ids the head lacks have no mass in q, so rejection sampling stays exact: the target's own token
    can still be any.
    """

    def __init__(self, vocab: int, draft_ids: Tensor | None, options: DrafterOptions) -> None:
        self._vocab, self._ids, self._options = vocab, draft_ids, options

    @torch.inference_mode()
    def choose(self, logits: Tensor, text: Text, drafted: tuple[int, ...]) -> Guess:
        """Choose the token after `drafted` from logits [draft vocab], float32.

        Raises:
            NumericsError: the head gave NaN or Inf.
        """
        params, mirror = text.params, self._options.mirror_processors
        rule = self.device_rule(params) if logits.is_cuda else None
        if rule is not None:
            return self._at_once(rule, logits, text, drafted)
        greedy = params.greedy or not self._options.draft_sampled
        if greedy and not (mirror and params.penalised):
            best, at = (x.item() for x in logits.softmax(-1).max(-1))
            check_best(best, text, drafted)
            return Guess(self._target_id(int(at)), best, best, None)
        row = self._whole(logits)
        if mirror and params.penalised:
            output = (*text.tokens[text.prompt_length :], *drafted)
            row = penalise(row, text.tokens[: text.prompt_length], [output], self._known(params))
        if greedy:
            best, at = (x.item() for x in row[0].softmax(-1).max(-1))
            check_best(best, text, drafted)
            return Guess(int(at), best, best, None)
        q = distribution(row, params if mirror else SamplingParams(temperature=params.temperature))
        best = float(q.max())
        check_best(best, text, drafted)
        token = pick(q[0], text.draws.uniform(len(text.tokens) + len(drafted), "draft"))
        return Guess(token, float(q[0, token]), best, q)

    def device_rule(self, params: SamplingParams) -> DeviceRule | None:
        """Return the same choice for tensors that stay on the device; None for penalised rows."""
        mirror = self._options.mirror_processors
        if mirror and params.penalised:
            return None
        if params.greedy or not self._options.draft_sampled:
            return DeviceRule(self._vocab, self._ids, None)
        drawn = params if mirror else SamplingParams(temperature=params.temperature)
        return DeviceRule(self._vocab, self._ids, drawn)

    def _at_once(
        self, rule: DeviceRule, logits: Tensor, text: Text, drafted: tuple[int, ...]
    ) -> Guess:
        """Choose with one wait for the device."""
        uniform = text.draws.uniform(len(text.tokens) + len(drafted), "draft")
        guess = rule.choose(logits, send([uniform], logits.device, torch.float64)[0])
        ((token, score, best),) = fetch((guess.numbers,))
        check_best(best, text, drafted)
        return Guess(int(token), score, best, guess.q)

    def _target_id(self, at: int) -> int:
        return at if self._ids is None else int(self._ids[at])

    def _whole(self, logits: Tensor) -> Tensor:
        """Spread logits over the target's vocabulary [1, vocab]; -inf for ids the head lacks."""
        row = logits.new_full((1, self._vocab), -torch.inf)
        if self._ids is None:
            row[0, : len(logits)] = logits
        else:
            row[0, self._ids] = logits
        return row

    def _known(self, params: SamplingParams) -> SamplingParams:
        bias = tuple(pair for pair in params.logit_bias if pair[0] < self._vocab)
        return params if bias == params.logit_bias else replace(params, logit_bias=bias)


def check_best(best: float, text: Text, drafted: tuple[int, ...]) -> None:
    """Raise NumericsError if the favourite's probability is NaN or Inf."""
    if not math.isfinite(best):
        raise NumericsError(
            _(
                "the draft head gave NaN or Inf for text position {count}. Check its weights, or "
                "try dtype float32."
            ).format(count=len(text.tokens) + len(drafted))
        )
