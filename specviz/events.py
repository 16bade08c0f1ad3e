"""What a decoding session says happened. Plain data: standard library only, JSON-able.

Everything is a tree: node i of a draft has a parent, `ROOT` for a node that continues the last
committed token. Scored row 0 follows the root, row i + 1 follows node i.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from specviz.errors import DraftError
from specviz.words import _

ROOT = -1

Fate = Literal["accepted", "rejected", "unchecked", "past_end"]
LastKind = Literal["recovered", "bonus", "plain", "forced"]
QKind = Literal["full", "point"]  # q is a distribution, or all its mass is on the drafted token
FinishReason = Literal["stop_token", "stop_string", "length", "context", "cancelled", "error"]
LosslessClass = Literal["identical", "near-tie", "BUG", "sampled", "not-run"]


@dataclass(frozen=True, slots=True)
class Draft:
    """Proposed tokens as a tree, parents before children."""

    tokens: tuple[int, ...]
    parents: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.tokens) != len(self.parents) or any(
            not ROOT <= parent < node for node, parent in enumerate(self.parents)
        ):
            raise DraftError(
                _(
                    "a draft has {count} tokens with parents {parents}; each node needs one "
                    "parent, an earlier node or -1"
                ).format(count=len(self.tokens), parents=self.parents)
            )

    @classmethod
    def chain(cls, tokens: Iterable[int]) -> "Draft":
        """Make the tree in which every token follows the one before it."""
        tokens = tuple(tokens)
        return cls(tokens, tuple(range(ROOT, len(tokens) - 1)))

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def is_chain(self) -> bool:
        return self.parents == tuple(range(ROOT, len(self.tokens) - 1))

    @property
    def depths(self) -> tuple[int, ...]:
        """Depth of each node: 1 for a child of the root."""
        depths: list[int] = []
        for parent in self.parents:
            depths.append(1 if parent == ROOT else depths[parent] + 1)
        return tuple(depths)

    def children(self, node: int) -> list[int]:
        return [i for i, parent in enumerate(self.parents) if parent == node]

    def path_to(self, node: int) -> tuple[int, ...]:
        """Nodes from the root's child down to `node`; empty for ROOT."""
        path: list[int] = []
        while node != ROOT:
            path.append(node)
            node = self.parents[node]
        return tuple(reversed(path))


EMPTY = Draft((), ())


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why a drafter proposed what it did: what the scheme panel shows.

    Positions count tokens of the committed text (prompt first); spans are [start, end).
    """

    match: tuple[int, int] | None = None  # earlier text equal to the tail of the context
    source: tuple[int, int] | None = None  # the text that was copied into the draft
    store: str = ""  # which index it came from: "context" or "history"
    scores: tuple[float, ...] = ()  # per node, the drafter's own probability of it
    passes: int = 0  # forward passes of a draft model in this round
    caught_up: int = 0  # tokens a draft model had to read before it could draft
    message: str = ""  # why nothing was proposed
    note: str = ""  # what else is to be said of this draft
    trained: int = 0  # depths a head was trained for, beyond which it is reused; 0: all
    confidence: tuple[float, ...] = ()  # per slot, that it survives; one more where it was cut
    unbiased: tuple[int, ...] = ()  # per node, the block's favourite before the Markov head
    unbiased_scores: tuple[float, ...] = ()  # and how likely the block alone had found it


@dataclass(frozen=True, slots=True)
class Check:
    """One accept-or-reject decision: the token stays if `u < threshold`.

    `p` is what was left of the target's probability when this node's turn came (refused siblings
    are taken out of it), `q` the draft's probability, 1 for a point draft. The threshold is
    min(1, p / q) (arXiv:2211.17192) or h of block verification (arXiv:2403.10444).
    `u` is None in greedy verification: nothing is drawn.
    """

    node: int
    p: float
    q: float
    threshold: float
    u: float | None
    accepted: bool


@dataclass(frozen=True, slots=True)
class NodeScore:
    """What target and draft said of one drafted token, checked or not."""

    p: float  # target probability after processors and temperature
    q: float  # draft probability, 1 for a point draft
    logprob: float  # the target's own log-probability (raw logits, temperature 1)
    rank: int | None = None  # 0 is the target's favourite; full detail only


@dataclass(frozen=True, slots=True)
class Candidate:
    """One bar of the decision panel."""

    token: int
    p: float
    q: float
    logprob: float  # raw logits, temperature 1: what p was before processors


@dataclass(frozen=True, slots=True)
class Row:
    """One scored row in full detail: the top of p and of q over their union.

    `entropy` and `draft_entropy` are in nats, of the model's own softmax and of q.
    """

    best: int
    entropy: float
    draft_entropy: float | None
    top: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one round. `record` is what keeping details cost; it is part of `other`."""

    draft: float = 0.0
    score: float = 0.0
    verify: float = 0.0
    commit: float = 0.0
    record: float = 0.0
    total: float = 0.0

    @property
    def other(self) -> float:
        """The remainder: everything outside draft, score, verify and commit."""
        return max(0.0, self.total - self.draft - self.score - self.verify - self.commit)


@dataclass(frozen=True, slots=True)
class Attention:
    """What scored a round: the backend ("" if nobody noted it) and the rows of its tile.

    `block_m` is None for a backend that has no row tile, or does not say. `eager` is why a GPU ran
    the pass op by op and not as a CUDA graph, "" if it did not.
    """

    backend: str = ""
    block_m: int | None = None
    eager: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One draft-score-verify-commit cycle: the unit of traces, metrics and views."""

    index: int
    start: int  # committed length (prompt included) before this round
    scheme: str
    budget: int  # nodes asked for, 0 where none would fit; the drafter may give fewer
    draft: Draft
    path: tuple[int, ...]  # accepted nodes that were kept, root to leaf
    last_token: int | None  # the target's own; None when the round was cut on an accepted token
    last_kind: LastKind
    past_end: tuple[int, ...] = ()  # nodes that would have been accepted beyond the end
    checks: tuple[Check, ...] = ()
    q_kind: QKind = "point"
    evidence: Evidence = Evidence()
    timing: Timing = Timing()
    attention: Attention = Attention()
    began: float = 0.0  # seconds since decoding started, prefill excluded
    last_p: float | None = None
    last_logprob: float | None = None
    last_u: float | None = None  # uniform that drew the last token; None if nothing was drawn
    nodes: tuple[NodeScore, ...] = ()  # light and full detail
    rows: tuple[Row, ...] = ()  # full detail

    @property
    def committed(self) -> tuple[int, ...]:
        """Tokens this round added to the output."""
        kept = tuple(self.draft.tokens[i] for i in self.path)
        return kept if self.last_token is None else (*kept, self.last_token)

    @property
    def acceptance_length(self) -> int:
        """Committed tokens, bonus or recovered token included."""
        return len(self.path) + (self.last_token is not None)

    @property
    def fates(self) -> tuple[Fate, ...]:
        """What became of each node."""
        checked = {check.node for check in self.checks}
        return tuple(
            "accepted"
            if node in self.path
            else "past_end"
            if node in self.past_end
            else "rejected"
            if node in checked
            else "unchecked"
            for node in range(len(self.draft))
        )


@dataclass(frozen=True, slots=True)
class Finish:
    """Why decoding ended; `text_bytes` is where the visible output ends.

    Neither a stop token nor a stop string is part of it. None: all of it is visible.
    """

    reason: FinishReason
    detail: str = ""
    text_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class LosslessReport:
    """A run compared with plain decoding of the same prompt on the same weights.

    The committed text is replayed through plain one-row passes; `first_divergence` is the first
    output index where plain decoding would have chosen another token. Logits are after penalties.
    """

    kind: LosslessClass
    compared: int = 0  # output tokens replayed
    first_divergence: int | None = None
    plain_token: int | None = None
    token: int | None = None
    plain_logit: float | None = None
    token_logit: float | None = None
    worst_gap: float | None = None  # largest (best logit - chosen logit) over the output
    tolerance: float | None = None  # margins below it are near ties in this dtype
    plain_tpot: float | None = None  # seconds per token of the replay

    @property
    def margin(self) -> float | None:
        """By how much plain decoding preferred its own token at the first divergence."""
        if self.plain_logit is None or self.token_logit is None:
            return None
        return self.plain_logit - self.token_logit
