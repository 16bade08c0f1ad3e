"""A draft model: any causal language model that shares the target's vocabulary."""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from specviz.config import DrafterOptions, SamplingParams
from specviz.drafters.base import Context, Proposal
from specviz.drafters.prefix import shared_prefix
from specviz.errors import NumericsError
from specviz.events import EMPTY, Draft, Evidence
from specviz.heads.device_choice import DeviceRule
from specviz.models.target import Target
from specviz.models.transfer import fetch, send
from specviz.verify.draws import pick
from specviz.verify.processors import distribution, penalise
from specviz.words import _, later

SHORT = 16  # up to so many unread tokens share a pass with the root; a prompt is prefilled


@dataclass(frozen=True, slots=True)
class _Guess:
    token: int
    score: float  # the draft model's own probability of the token
    best: float  # and of its favourite
    q: Tensor | None  # [1, width] it was drawn from; None if it is the argmax


class DraftModelDrafter:
    """Drafts one token per forward pass of a smaller model, as a chain.

    Below `draft_min_p` it stops before a token is drawn: whether position i is drafted depends on
    its row, that is on earlier drafts, never on the token drawn there. Given that there is a draft
    at i it still follows q, which is all that rejection sampling asks for; throwing away drawn
    tokens of low probability would change what q is. Stopping after an end token is safe likewise.

    `Evidence.scores` are conditional probabilities; of a greedy draft, at temperature 1.
    """

    name = "draft_model"

    def __init__(
        self,
        model: Target,
        vocab: int,
        options: DrafterOptions,
        ends: frozenset[int] = frozenset(),
    ) -> None:
        """Take over `model`, whose cache must be nobody else's.

        `vocab` is the width of the target's rows, and of `probs`; `ends` are its end tokens. Either
        model may have padding rows: an id that only one of them has is never drafted.
        """
        self._memo = ModelMemo(model)
        self._vocab, self._options, self._ends = vocab, options, ends
        self._width = min(vocab, model.config.vocab)

    def propose(self, context: Context, budget: int) -> Proposal:
        tokens, memo = context.tokens, self._memo
        budget = min(budget, memo.model.config.context - len(tokens) + 1)
        obstacle = self._obstacle(tokens, budget)
        if obstacle:
            return Proposal(EMPTY, evidence=Evidence(message=obstacle))
        ends = frozenset[int]() if context.params.ignore_eos else self._ends
        ends = ends.union(context.params.stop_ids)
        row, guesses, stopped = memo.catch_up(tokens), list[_Guess](), ""
        while True:
            guess = self._guess(row, context, tuple(g.token for g in guesses))
            if guess.best < self._options.draft_min_p:
                text = later("Stopped: the best next token has probability {p:.2f}, below {least}.")
                stopped = text.format(p=guess.best, least=self._options.draft_min_p)
                break
            guesses.append(guess)
            if len(guesses) == budget or guess.token in ends:
                break
            row = memo.read((guess.token,))
        return Proposal(
            Draft.chain(g.token for g in guesses),
            self._stack([g.q for g in guesses if g.q is not None]),
            Evidence(
                scores=tuple(g.score for g in guesses),
                passes=memo.passes,
                caught_up=memo.caught_up,
                message=stopped,
            ),
        )

    def _obstacle(self, tokens: tuple[int, ...], budget: int) -> str:
        """Say why this model cannot draft here; "" if it can."""
        shape = self._memo.model.config
        if len(tokens) > shape.context:
            text = later("The text has {n} tokens; the draft model reads at most {most}.")
            return text.format(n=len(tokens), most=shape.context)
        if shape.vocab < self._vocab and max(tokens) >= shape.vocab:
            text = later("The text holds token {token}, which the draft model does not have.")
            return text.format(token=max(tokens))
        return "" if budget > 0 else later("There is no room for a draft.")

    @torch.inference_mode()
    def _guess(self, row: Tensor, context: Context, drafted: tuple[int, ...]) -> _Guess:
        """Choose the token after `drafted` from logits `row` [vocab of the draft model]."""
        params, logits = context.params, row[None, : self._width].float()
        mirror, at = self._options.mirror_processors, context.prompt_length
        if mirror and params.penalised:
            output = (*context.tokens[at:], *drafted)
            logits = penalise(logits, context.tokens[:at], [output], self._within(params))
        greedy = params.greedy or not self._options.draft_sampled
        drawn = params if mirror else SamplingParams(temperature=params.temperature)
        uniform = context.draws.uniform(len(context.tokens) + len(drafted), "draft")
        if logits.is_cuda:  # the same, with one wait for the device
            rule = DeviceRule(self._width, None, None if greedy else drawn)
            guess = rule.choose(logits[0], send([uniform], logits.device, torch.float64)[0])
            ((chosen, score, best),) = fetch((guess.numbers,))
            self._check(best, context, drafted)
            return _Guess(int(chosen), score, best, guess.q)
        if greedy:
            best, token = (x.item() for x in logits[0].softmax(-1).max(-1))
            self._check(best, context, drafted)
            return _Guess(int(token), best, best, None)
        q = distribution(logits, drawn)
        best = float(q.max())
        self._check(best, context, drafted)
        token = pick(q[0], uniform)
        return _Guess(token, float(q[0, token]), best, q)

    def _within(self, params: SamplingParams) -> SamplingParams:
        """Leave out the bias of ids that are never drafted."""
        bias = tuple(pair for pair in params.logit_bias if pair[0] < self._width)
        return params if bias == params.logit_bias else replace(params, logit_bias=bias)

    def _check(self, best: float, context: Context, drafted: tuple[int, ...]) -> None:
        if not math.isfinite(best):
            raise NumericsError(
                _(
                    "the draft model {name} gave NaN or Inf for text position {count}. Check its "
                    "weights, or try dtype float32."
                ).format(
                    name=self._memo.model.config.name, count=len(context.tokens) + len(drafted)
                )
            )

    def _stack(self, rows: list[Tensor]) -> Tensor | None:
        """Return q as [nodes, vocab of the target], 0 for ids the draft model lacks."""
        if not rows:
            return None
        return pad(torch.cat(rows), (0, self._vocab - self._width))


class ModelMemo:
    """The KV cache of a draft model as a memo of the text it has read.

    It is compared with the text, truncated to what they share and caught up. After a fully accepted
    round that is one token: the last draft was proposed but never read.
    """

    def __init__(self, model: Target) -> None:
        model.truncate(0)
        self.model = model
        self.passes = 0  # since the last catch-up began
        self.caught_up = 0  # tokens read by it, the root not counted
        self._text: tuple[int, ...] = ()  # what the cache holds
        self._starts: list[int] = []  # for each token, where the pass began that read it

    def catch_up(self, tokens: tuple[int, ...]) -> Tensor:
        """Return the logits [vocab] after `tokens`.

        The root may have been read before a rewind. Then its pass is repeated as it was, with as
        many rows: other shapes round differently, and a rewound run must draft the same again.
        """
        root = len(tokens) - 1
        kept = shared_prefix(self._text, tokens)
        start = self._starts[root] if kept > root else kept
        self._forget(start)
        self.passes, self.caught_up = 0, root - start
        if root - start > SHORT or start == 0 < root:
            self.model.prefill(tokens[start:root])
            self.passes = 1
            self._note(tokens[start:root], list(range(start, root)))
        return self.read(tokens[len(self._text) :])

    def read(self, tokens: tuple[int, ...]) -> Tensor:
        """Read on in one pass; return the logits [vocab] after the last of `tokens`."""
        rows = self.model.score(tokens[0], Draft.chain(tokens[1:]))
        self.model.commit(range(len(tokens) - 1))
        self.passes += 1
        self._note(tokens, [len(self._text)] * len(tokens))
        return rows[-1]

    def _note(self, tokens: tuple[int, ...], starts: list[int]) -> None:
        self._text += tokens
        self._starts += starts

    def _forget(self, length: int) -> None:
        self.model.truncate(length)
        self._text = self._text[:length]
        del self._starts[length:]
