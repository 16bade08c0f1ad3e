"""One decode on screen: recorded, opened from a file, or growing while the engine works on it."""

import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from specviz.config import SamplingParams, SessionConfig
from specviz.events import Finish, LosslessReport, Round
from specviz.traces.schema import Branch, Trace, shown_tokens
from specviz.ui.weights import DEFAULT

if TYPE_CHECKING:
    from specviz.heads.base import Head
    from specviz.models.load import Loaded
    from specviz.session import DecodeSession

Origin = Literal["recorded", "opened", "live"]
Status = Literal["queued", "running", "checking", "paused", "done", "failed"]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run ended early, in words for people; `bug` marks what nobody raised on purpose."""

    message: str
    bug: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What to decode, by which target, and the longest output to check. Made without torch."""

    prompt: str
    params: SamplingParams
    config: SessionConfig
    chat: bool = True
    title: str = ""
    spec: str = DEFAULT
    check_limit: int = 0  # output tokens; 0: the lossless replay is not run


@dataclass(slots=True, eq=False, kw_only=True)
class Run:
    """Rounds are only ever appended, by one thread; everything else is replaced whole."""

    origin: Origin
    title: str
    order: Order | None = None  # None: a trace from a file, which has no model behind it
    settings: Mapping[str, str | int | float | bool] | None = None  # what a link to it says
    parent: Branch | None = None
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    status: Status = "queued"
    failure: Failure | None = None
    notice: str = ""  # why this run is plain decoding although a drafter was asked for
    head: Trace | None = None  # everything but rounds and end, once the prompt is read
    rounds: list[Round] = field(default_factory=list)
    pieces: dict[int, bytes] = field(default_factory=dict)
    undraftable: set[int] = field(default_factory=set)  # of them, what the drafter cannot draft
    draftable: frozenset[int] | None = None  # None: all there is
    finish: Finish | None = None
    lossless: LosslessReport | None = None
    trunk: "Run | None" = None  # the run this one will branch from
    forced: int | None = None  # the first token of a branch, if it was chosen by hand
    session: "DecodeSession | None" = None  # the engine thread's own
    loaded: "Loaded | None" = None
    draft: "Loaded | Head | None" = None
    _trace: Trace | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of_trace(cls, trace: Trace, origin: Origin) -> "Run":
        """Return the run that a finished trace tells of."""
        return cls(
            origin=origin,
            title=trace.title,
            # A file may carry the id of a run that is on screen already, and yet differ from it.
            id=trace.run_id if origin == "recorded" else uuid.uuid4().hex,
            status="done",
            head=trace,
            rounds=list(trace.rounds),
            pieces=dict(trace.pieces),
            undraftable=set(trace.undraftable),
            finish=trace.finish,
            lossless=trace.lossless,
            parent=trace.parent,
        )

    @property
    def active(self) -> bool:
        """Whether the engine is at work on it or will be."""
        return self.status in ("queued", "running", "checking")

    def publish(self, event: Round) -> None:
        """Append one round; its tokens can be spelled before it can be seen."""
        self.learn(*shown_tokens((), (event,)))
        self.rounds.append(event)

    def learn(self, *tokens: int) -> None:
        """Keep the bytes of these tokens, so that a view can spell them."""
        if self.loaded is not None:
            piece = self.loaded.tokenizer.piece
            self.pieces.update({t: piece(t) for t in tokens if t not in self.pieces})
        if self.draftable is not None:
            self.undraftable.update(set(tokens) - self.draftable)

    def trace(self) -> Trace | None:
        """Return what is known now; None before the prompt was read.

        The same object is returned until something changes.
        """
        with self._lock:
            if self.head is None:
                return None
            known = self._trace
            rounds, finish, lossless = tuple(self.rounds), self.finish, self.lossless
            if (
                known is None
                or len(known.rounds) != len(rounds)
                or known.finish != finish
                or known.lossless != lossless
            ):
                self._trace = known = replace(
                    self.head,
                    rounds=rounds,
                    pieces=dict(self.pieces),
                    undraftable=tuple(sorted(self.undraftable)),
                    finish=finish,
                    lossless=lossless,
                )
            return known
