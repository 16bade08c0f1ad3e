"""Suffix decoding (arXiv:2411.04975): follow what most often came after the newest tokens.

Two texts are searched: this request so far and the outputs of past requests. For every match
length m, the path of most frequent continuations is followed for at most m * factor tokens; its
score, the sum of the path probabilities, is the number of tokens it expects to see accepted. The
best score wins, the longer match among equals, this request before history.

The paper walks two tries of all stretches up to `suffix_max_depth` tokens. Here the texts
themselves are kept, with the places of each token: the same counts, in memory that grows by one
entry per token. A test compares the two.
"""

from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from specviz.config import DrafterOptions
from specviz.drafters.base import Context, Proposal
from specviz.drafters.prefix import shared_prefix
from specviz.events import EMPTY, Draft, Evidence
from specviz.words import later

SEPARATOR = -1  # between requests: no token, so no match and no path crosses it


class TokenIndex:
    """A text and the places of each token in it, ascending."""

    def __init__(self) -> None:
        self.text: list[int] = []
        self.places: defaultdict[int, list[int]] = defaultdict(list)

    def extend(self, tokens: Iterable[int]) -> None:
        for token in tokens:
            self.places[token].append(len(self.text))
            self.text.append(token)

    def truncate(self, length: int) -> None:
        for token in reversed(self.text[length:]):
            self.places[token].pop()
        del self.text[length:]


@dataclass(frozen=True, slots=True)
class Window:
    """The part [begin, end) of an index that a search may see."""

    index: TokenIndex
    begin: int
    end: int

    def places(self, token: int) -> list[int]:
        places = self.index.places.get(token, [])
        return places[bisect_left(places, self.begin) : bisect_left(places, self.end)]


class SuffixHistory:
    """Outputs of past requests, the oldest forgotten first. It changes only between requests."""

    def __init__(self, max_requests: int = 10_000) -> None:
        self.max_requests = max_requests
        self.reset()

    @property
    def requests(self) -> int:
        """Outputs it holds; 0 is a cold store."""
        return len(self._starts)

    @property
    def tokens(self) -> int:
        """Tokens of those outputs."""
        window = self.snapshot()
        return window.end - window.begin - self.requests

    def add(self, output: Iterable[int]) -> None:
        """Take in the output of a finished request."""
        self._starts.append(len(self._index.text))
        self._index.extend((*output, SEPARATOR))
        while len(self._starts) > self.max_requests:
            self._starts.popleft()
        begin = self.snapshot().begin
        if begin > len(self._index.text) // 2:
            self._compact(begin)

    def reset(self) -> None:
        """Forget everything."""
        self._index = TokenIndex()
        self._starts: deque[int] = deque()

    def snapshot(self) -> Window:
        """Return what is known now; later changes do not show in it."""
        end = len(self._index.text)
        return Window(self._index, self._starts[0] if self._starts else end, end)

    def _compact(self, begin: int) -> None:
        """Drop what was evicted by making a new index; snapshots go on with the old one."""
        text, self._index = self._index.text[begin:], TokenIndex()
        self._index.extend(text)
        self._starts = deque(start - begin for start in self._starts)


@dataclass(slots=True)
class _Branch:
    """Occurrences that share one continuation: how many, and where the newest match ends."""

    count: int = 0
    last: int = -1
    branches: "dict[int, _Branch]" = field(default_factory=dict)

    def grow(self, stretch: tuple[int, ...], count: int, last: int) -> None:
        """Count occurrences that go on with `stretch`, up to the end of their text."""
        self.count += count
        branch = self
        for token in stretch:
            if token == SEPARATOR:
                return
            known = branch.branches.get(token)
            if known is None:
                known = branch.branches[token] = _Branch()
            branch = known
            branch.count += count
            branch.last = max(branch.last, last)


@dataclass(frozen=True, slots=True)
class _Path:
    tokens: tuple[int, ...] = ()
    probs: tuple[float, ...] = ()  # of the whole path up to each token
    matched: int = 0
    place: int = -1  # where the newest match with this continuation ends

    @property
    def score(self) -> float:
        return sum(self.probs)


class SuffixDrafter:
    """Drafts the path with the highest expected number of accepted tokens.

    It sees the history as it was when the drafter was made, so it stays a function of its context
    while other requests come to an end. `Evidence.scores` are path probabilities. With store
    "history" the match span is the tail of the text itself: the source lies outside the text.
    """

    name = "suffix"

    def __init__(self, options: DrafterOptions, history: SuffixHistory | None = None) -> None:
        self._options = options
        self._past = (history or SuffixHistory(options.suffix_max_requests)).snapshot()
        self._tokens: tuple[int, ...] = ()
        self._index = TokenIndex()

    def propose(self, context: Context, budget: int) -> Proposal:
        tokens = context.tokens
        if budget < 1:
            return Proposal(
                EMPTY, evidence=Evidence(message=later("There is no room for a draft."))
            )
        self._index.truncate(shared_prefix(self._tokens, tokens))
        self._index.extend(tokens[len(self._index.text) :])
        self._tokens = tokens
        here = self._search(Window(self._index, 0, len(tokens)), budget)
        past = self._search(self._past, budget)
        best = past if past.score > here.score else here
        if not best.tokens:
            text = later("No earlier text goes on from here with probability {least} or more.")
            message = text.format(least=self._options.suffix_min_prob)
            return Proposal(EMPTY, evidence=Evidence(message=message))
        stop = best.place + 1 if best is here else len(tokens)
        evidence = Evidence(
            match=(stop - best.matched, stop),
            source=(stop, stop + len(best.tokens)) if best is here else None,
            store="context" if best is here else "history",
            scores=best.probs,
        )
        return Proposal(Draft.chain(best.tokens), evidence=evidence)

    def _search(self, window: Window, budget: int) -> _Path:
        """Return the best path after any match of the tail, from the longest match down."""
        longest = min(len(self._tokens) - 1, self._options.suffix_max_depth)
        limits = [self._limit(m, budget) for m in range(longest + 1)]
        ends = self._ends_by_length(window, longest)
        root, best, text = _Branch(), _Path(), window.index.text
        for m in range(longest, 0, -1):
            reach = max(limits[: m + 1])  # no shorter match will read further
            stretches = [tuple(text[place + 1 : place + 1 + reach]) for place in ends[m]]
            newest = dict(zip(stretches, ends[m], strict=True))  # places ascend
            for stretch, count in Counter(stretches).items():
                root.grow(stretch, count, newest[stretch])
            if ends[m] or limits[m] > limits[min(m + 1, longest)]:
                path = self._follow(root, m, limits[m])
                best = path if path.score > best.score else best
        return best

    def _limit(self, matched: int, budget: int) -> int:
        """Return how long a path may be; match and path together stay within the depth."""
        options = self._options
        factor = int(matched * options.suffix_max_factor + 1e-6)
        return min(budget, factor, options.suffix_max_depth - matched)

    def _ends_by_length(self, window: Window, longest: int) -> list[list[int]]:
        """Return for each m the places where exactly m newest tokens stand, at most `longest`.

        In this request's own text the tail itself is one of them, as it is in the trie.
        """
        text, begin = window.index.text, window.begin
        tail = self._tokens[: -longest - 1 : -1]  # newest first
        ends: list[list[int]] = [[] for _ in range(longest + 1)]
        for place in window.places(self._tokens[-1]) if longest else ():
            m, most = 1, min(longest, place - begin + 1)
            while m < most and text[place - m] == tail[m]:
                m += 1
            ends[m].append(place)
        return ends

    def _follow(self, root: _Branch, matched: int, limit: int) -> _Path:
        """Take the most frequent branch each time, the one seen last among equals."""
        branch, prob = root, 1.0
        tokens, probs = list[int](), list[float]()
        while len(tokens) < limit and branch.branches:
            token, nxt = max(branch.branches.items(), key=lambda b: (b[1].count, b[1].last))
            prob *= nxt.count / branch.count
            if prob < self._options.suffix_min_prob:
                break
            tokens.append(token)
            probs.append(prob)
            branch = nxt
        return _Path(tuple(tokens), tuple(probs), matched, branch.last)
