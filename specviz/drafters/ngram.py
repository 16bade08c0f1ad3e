"""Prompt lookup: find the newest n tokens earlier in the text and repeat what followed there."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from specviz.config import DrafterOptions, SamplingParams
from specviz.drafters.base import Context, Proposal
from specviz.drafters.prefix import shared_prefix
from specviz.events import EMPTY, Draft, Evidence
from specviz.words import later


class NgramDrafter:
    """The longest match from `ngram_max` down to `ngram_min` wins; the tie rule picks among equals.

    "vllm" and "transformers" take the earliest occurrence, "llama.cpp" the last one. As in
    transformers 5.24, "transformers" also drops the draft from the first end token on, and from
    the first token that a logit bias of -inf forbids; a match left with nothing by the latter
    makes way for the next one. A match may overlap the tail of the text; in every rule the copy
    ends with the text, so a last match one token back gives a draft of one token.
    """

    name = "ngram"

    def __init__(self, options: DrafterOptions, ends: frozenset[int] = frozenset()) -> None:
        self._options, self._ends = options, ends
        self._index = GramIndex(options.ngram_min, options.ngram_max)

    def propose(self, context: Context, budget: int) -> Proposal:
        tokens, low = context.tokens, self._options.ngram_min
        if budget < 1:
            return _silent(later("There is no room for a draft."))
        if len(tokens) <= low:
            return _silent(
                later("The text has {n} tokens; a match of {low} needs at least {least}.").format(
                    n=len(tokens), low=low, least=low + 1
                )
            )
        self._index.follow(tokens)
        for start, end in self._matches(tokens):
            copied = self._allowed(tokens[end : end + budget], context.params)
            if not copied:
                continue
            copied = self._before_end(copied, context.params)
            source = (end, end + len(copied)) if copied else None
            message = "" if copied else later("The matched text goes on with an end token.")
            evidence = Evidence((start, end), source, "context", message=message)
            return Proposal(Draft.chain(copied), evidence=evidence)
        if low == 1:
            return _silent(later("The last token occurs nowhere earlier in the text."))
        text = later("The last {n} tokens occur nowhere earlier in the text.")
        return _silent(text.format(n=low))

    def _matches(self, tokens: tuple[int, ...]) -> Iterator[tuple[int, int]]:
        """Yield earlier occurrences [start, end) of the tail, in the order of preference."""
        last_first = self._options.ngram_tie == "llama.cpp"
        high = min(self._options.ngram_max, len(tokens) - 1)
        for n in range(high, self._options.ngram_min - 1, -1):
            ends = self._index.ends(tokens[-n:])
            earlier = range(len(ends) - 1)  # the last occurrence is the tail itself
            for i in reversed(earlier) if last_first else earlier:
                yield ends[i] - n, ends[i]

    def _allowed(self, copied: tuple[int, ...], params: SamplingParams) -> tuple[int, ...]:
        if self._options.ngram_tie != "transformers" or not params.logit_bias:
            return copied
        forbidden = {token for token, bias in params.logit_bias if bias == float("-inf")}
        return _until(copied, forbidden)

    def _before_end(self, copied: tuple[int, ...], params: SamplingParams) -> tuple[int, ...]:
        if self._options.ngram_tie != "transformers":
            return copied
        ends = frozenset[int]() if params.ignore_eos else self._ends
        return _until(copied, ends.union(params.stop_ids))


class GramIndex:
    """Where every n-gram of a text ends, for all n from `low` to `high`; a memo of a prefix.

    A new token costs one dictionary entry per n, a lookup costs one hash: no round scans the text.
    """

    def __init__(self, low: int, high: int) -> None:
        self._sizes = range(low, high + 1)
        self._tokens: tuple[int, ...] = ()
        self._ends: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)

    def follow(self, tokens: tuple[int, ...]) -> None:
        """Forget what `tokens` does not begin with and take in what is new."""
        kept = shared_prefix(self._tokens, tokens)
        for end in range(len(self._tokens), kept, -1):
            for gram in self._grams(self._tokens, end):
                self._ends[gram].pop()  # ends ascend, so the newest is the last
                if not self._ends[gram]:
                    del self._ends[gram]
        for end in range(kept + 1, len(tokens) + 1):
            for gram in self._grams(tokens, end):
                self._ends[gram].append(end)
        self._tokens = tokens

    def ends(self, gram: tuple[int, ...]) -> Sequence[int]:
        """Return where `gram` ends, ascending; the tail of the text counts."""
        return self._ends.get(gram, ())

    def _grams(self, tokens: tuple[int, ...], end: int) -> Iterator[tuple[int, ...]]:
        return (tokens[end - n : end] for n in self._sizes if n <= end)


def _until(tokens: tuple[int, ...], stops: set[int] | frozenset[int]) -> tuple[int, ...]:
    """Return the tokens before the first one in `stops`."""
    for i, token in enumerate(tokens):
        if token in stops:
            return tokens[:i]
    return tokens


def _silent(message: str) -> Proposal:
    return Proposal(EMPTY, evidence=Evidence(message=message))
