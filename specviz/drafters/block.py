"""What drafters of whole blocks share: the context memo, and how slots become tokens."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.config import DrafterOptions, SamplingParams
from specviz.drafters.base import Context, Proposal
from specviz.drafters.prefix import shared_prefix
from specviz.errors import DraftError, NumericsError
from specviz.events import Draft, Evidence
from specviz.heads.dflash_cache import BlockDecoder
from specviz.verify.draws import pick
from specviz.verify.processors import distribution, penalise
from specviz.words import _


class ContextMemo:
    """The context keys and values of a head as a memo of the text whose features it has read."""

    def __init__(self, decoder: BlockDecoder) -> None:
        self.decoder = decoder
        self._text: tuple[int, ...] = ()

    def catch_up(self, context: Context) -> int:
        """Read the features of tokens that are new; return how many there were.

        The last token is the anchor: the target has not read it yet, so it has no features.
        """
        text = context.tokens[:-1]
        features = self._features(context, len(text))
        kept = shared_prefix(self._text, text)
        self.decoder.truncate(kept)
        self._text = self._text[:kept]
        if kept < len(text):
            if kept == 0:
                _check_fed(features)
            self.decoder.read(features[kept:])
            self._text = text
        return len(text) - kept

    def _features(self, context: Context, length: int) -> Tensor:
        features, taps = context.features, self.decoder.config.taps
        if features is None:
            raise DraftError(
                f"the target keeps no hidden states; this head reads layers {taps}. Give the "
                "target those taps before the session starts."
            )
        wanted = (length, len(taps), self.decoder.config.layer.hidden)
        if tuple(features.shape) != wanted:
            raise DraftError(
                f"the target's hidden states have shape {list(features.shape)} and this head "
                f"reads {list(wanted)}: one row per token but the last, for layers {taps}"
            )
        return features


def _check_fed(features: Tensor) -> None:
    """A tap that was never written drafts badly and silently: say so before the first draft."""
    silent = features.abs().amax(-1) == 0
    if silent.any():
        row, tap = silent.nonzero()[0].tolist()
        raise DraftError(
            f"hidden state {tap} of text position {row} is all zeros: the target did not record "
            "it. Give the target its taps before the prompt is read."
        )


@dataclass(frozen=True, slots=True)
class Pick:
    """A drafted token and the head's own probability of it."""

    token: int
    score: float
    best: float  # and of its favourite
    q: Tensor | None  # [vocab] it was drawn from; None if it is the argmax


@dataclass(frozen=True, slots=True)
class Chooser:
    """Turns one slot's logits into a token, as the request samples or greedily.

    A head for part of the vocabulary never drafts the rest: q is 0 there.
    """

    options: DrafterOptions
    vocab: int
    ids: Tensor | None  # target id of each draft token; None: the same
    who: str

    @torch.inference_mode()
    def choose(self, logits: Tensor, context: Context, drafted: Sequence[int]) -> Pick:
        """Choose the token after `drafted` from logits [draft_vocab]."""
        params, position = context.params, len(context.tokens) + len(drafted)
        penalised = params.penalised and self.options.mirror_processors
        row = logits[None]
        if penalised:
            output = (*context.tokens[context.prompt_length :], *drafted)
            prompt = context.tokens[: context.prompt_length]
            row = penalise(self._spread(row, float("-inf")), prompt, [output], params)
        if params.greedy or not self.options.draft_sampled:
            score, at = row[0].softmax(-1).max(-1)
            self._check(float(score), position)
            return Pick(self._token(int(at), penalised), float(score), float(score), None)
        mirror = self.options.mirror_processors
        shaped = params if mirror else SamplingParams(temperature=params.temperature)
        q = distribution(row, shaped)
        best = float(q.max())
        self._check(best, position)
        q = (q if penalised else self._spread(q, 0.0))[0]
        token = pick(q, context.draws.uniform(position, "draft"))
        return Pick(token, float(q[token]), best, q)

    def _token(self, at: int, spread: bool) -> int:
        return at if spread or self.ids is None else int(self.ids[at])

    def _spread(self, row: Tensor, fill: float) -> Tensor:
        """Lay row [1, draft_vocab] out over the target's vocabulary."""
        if self.ids is None:
            return row.clone()
        return row.new_full((1, self.vocab), fill).index_copy_(1, self.ids, row)

    def _check(self, best: float, position: int) -> None:
        if not 0 < best <= 1:
            raise NumericsError(
                f"{self.who} gave NaN or Inf for text position {position}. Check its weights, or "
                "try dtype float32."
            )


Look = Callable[[int], Tensor | str]  # token before -> logits of the next slot, or why to stop


@dataclass(frozen=True, slots=True)
class Plan:
    """One block to fill: at most `most` slots, no further than one of `ends`."""

    context: Context
    most: int
    ends: frozenset[int]
    caught_up: int
    message: str = ""

    def fill(self, chooser: Chooser, look: Look) -> Proposal:
        """Draft slot by slot.

        Every reason to stop is known before the slot's token is drawn (or is an end token before
        it), so what is left follows q and verification stays lossless.
        """
        picks, message, before = list[Pick](), self.message, self.context.tokens[-1]
        while len(picks) < self.most and not (picks and before in self.ends):
            found = look(before)
            if isinstance(found, str):
                message = found
                break
            pick_ = chooser.choose(found, self.context, [p.token for p in picks])
            if pick_.best < chooser.options.draft_min_p:
                text = _("Stopped: the best next token has probability {p:.2f}, below {least}.")
                message = text.format(p=pick_.best, least=chooser.options.draft_min_p)
                break
            picks.append(pick_)
            before = pick_.token
        rows = [p.q for p in picks if p.q is not None]
        evidence = Evidence(
            scores=tuple(p.score for p in picks),
            passes=1,
            caught_up=self.caught_up,
            message=message,
        )
        draft = Draft.chain(p.token for p in picks)
        return Proposal(draft, torch.stack(rows) if rows else None, evidence)


def plan(memo: ContextMemo, context: Context, budget: int, ends: frozenset[int]) -> Plan:
    """Catch up with the text and say how far a block may go.

    A block longer than the head was trained on is not drafted: it would be out of distribution.
    """
    most, message = memo.decoder.config.most, ""
    if budget > most:
        text = _("This head drafts at most {most} tokens per block; {asked} were asked for.")
        message = text.format(most=most, asked=budget)
    params = context.params
    ends = (frozenset[int]() if params.ignore_eos else ends).union(params.stop_ids)
    caught_up = memo.catch_up(context)
    return Plan(context, min(budget, most), ends, caught_up, message)
