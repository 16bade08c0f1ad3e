"""What drafters of whole blocks share: the context memo, and how slots become tokens."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.cancel import check_cancelled
from specviz.drafters.base import Context, Proposal
from specviz.drafters.prefix import shared_prefix
from specviz.errors import DraftError
from specviz.events import Draft, Evidence
from specviz.heads.base import check_fed
from specviz.heads.choice import Choice, Guess, Text
from specviz.heads.dflash_cache import BlockDecoder
from specviz.words import _, later

PIECE = 512  # tokens whose features are read in one pass


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
                check_fed(features)
            for start in range(kept, len(text), PIECE):
                check_cancelled()
                end = min(start + PIECE, len(text))
                self.decoder.read(features[start:end])
                self._text = text[:end]
        return len(text) - kept

    def _features(self, context: Context, length: int) -> Tensor:
        features, taps = context.features, self.decoder.config.taps
        if features is None:
            raise DraftError(
                _(
                    "the target keeps no hidden states; this head reads layers {taps}. Give the "
                    "target those taps before the session starts."
                ).format(taps=taps)
            )
        wanted = (length, len(taps), self.decoder.config.layer.hidden)
        if tuple(features.shape) != wanted:
            raise DraftError(
                _(
                    "the target's hidden states have shape {shape} and this head reads {wanted}: "
                    "one row per token but the last, for layers {taps}"
                ).format(shape=list(features.shape), wanted=list(wanted), taps=taps)
            )
        return features


Look = Callable[[int], Tensor | str]  # token before -> logits of the next slot, or why to stop


@dataclass(frozen=True, slots=True)
class Plan:
    """One block to fill: at most `most` slots, no further than one of `ends`."""

    context: Context
    most: int
    ends: frozenset[int]
    caught_up: int
    message: str = ""

    def fill(self, choice: Choice, least: float, look: Look) -> Proposal:
        """Draft slot by slot; stop where the favourite's probability is below `least`.

        Every reason to stop is known before the slot's token is drawn (or is an end token before
        it), so what is left follows q and verification stays lossless.
        """
        text = Text(
            tokens=self.context.tokens,
            prompt_length=self.context.prompt_length,
            params=self.context.params,
            draws=self.context.draws,
        )
        guesses, message, before = list[Guess](), self.message, text.tokens[-1]
        while len(guesses) < self.most and not (guesses and before in self.ends):
            found = look(before)
            if isinstance(found, str):
                message = found
                break
            guess = choice.choose(found, text, tuple(g.token for g in guesses))
            if guess.best < least:
                message = later(
                    "Stopped: the best next token has probability {p:.2f}, below {least}."
                )
                message = message.format(p=guess.best, least=least)
                break
            guesses.append(guess)
            before = guess.token
        rows = [guess.q for guess in guesses if guess.q is not None]
        evidence = Evidence(
            scores=tuple(guess.score for guess in guesses),
            passes=1,
            caught_up=self.caught_up,
            message=message,
        )
        draft = Draft.chain(guess.token for guess in guesses)
        return Proposal(draft, torch.cat(rows) if rows else None, evidence)


def plan(memo: ContextMemo, context: Context, budget: int, ends: frozenset[int]) -> Plan:
    """Catch up with the text and say how far a block may go.

    A block longer than the head was trained on is not drafted: it would be out of distribution.
    """
    most, message = memo.decoder.config.most, ""
    if budget > most:
        text = later("This head drafts at most {most} tokens per block; {asked} were asked for.")
        message = text.format(most=most, asked=budget)
    params = context.params
    ends = (frozenset[int]() if params.ignore_eos else ends).union(params.stop_ids)
    caught_up = memo.catch_up(context)
    return Plan(context, min(budget, most), ends, caught_up, message)
