"""The engine thread of one browser session: it computes, the page only looks.

Commands are queued and done one after another. A new run cancels the one at work, which keeps its
rounds; stopping takes effect before the next round starts.
"""

import atexit
import queue
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from specviz.cancel import cancellable
from specviz.config import MAX_TOKENS, SessionConfig
from specviz.errors import Cancelled, ConfigError, ModelError, SpecvizError
from specviz.traces.schema import Branch
from specviz.ui.run import Failure, Order, Run
from specviz.ui.sessions import drafter_of, fresh, grafted, session_of
from specviz.ui.weights import DEFAULT, Weights
from specviz.words import _, language, set_language

if TYPE_CHECKING:
    from specviz.bench.runner import Request
    from specviz.drafters.suffix import SuffixHistory
    from specviz.heads.base import Head
    from specviz.models.load import Loaded
    from specviz.session import DecodeSession

PLAIN = "none"  # the scheme without a drafter
GRACE = 10.0  # seconds that the end of the program waits for what cannot be cancelled


@dataclass(slots=True, eq=False)
class Job:
    """One command of the queue; `cancel` is looked at before every round."""

    work: Callable[["Job"], None]
    run: Run | None = None
    cancel: threading.Event = field(default_factory=threading.Event)
    language: str = field(default_factory=language)  # of the page that asks for it


class Engine:
    """Owns the sessions of one browser tab. Public methods return at once."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.failure: Failure | None = None  # of loading a model ahead of any run
        self._history: SuffixHistory | None = None  # finished outputs, for suffix decoding
        self._remembers = ""  # hash of the target whose ids they are
        self._jobs: list[Job] = []  # waiting and at work
        self._lock = threading.Lock()
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="specviz-engine", daemon=True)
        self._thread.start()
        _ENGINES.add(self)

    @property
    def busy(self) -> bool:
        with self._lock:
            return bool(self._jobs)

    def load(self, spec: str = DEFAULT) -> None:
        """Load a model ahead of the first run."""
        self._submit(Job(lambda _: self._preload(spec)))

    def start(self, order: Order, rounds: int | None = None) -> Run:
        """Begin a run of so many rounds, to its end if None; whatever was running is cancelled."""
        return self._begin(Run(origin="live", title=order.title, order=order), rounds)

    def branch(self, parent: Run, at: int, order: Order, forced: int | None = None) -> Run:
        """Begin a run that shares the first `at` rounds of another and goes on differently."""
        trace = parent.trace()
        if trace is None or not 0 <= at <= len(trace.rounds):
            raise SpecvizError(
                _("cannot branch at round {at}: that run has no such round").format(at=at)
            )
        run = Run(origin="live", title=order.title, order=order, parent=Branch(trace.run_id, at))
        run.trunk, run.forced, run.rounds = parent, forced, list(trace.rounds[:at])
        return self._begin(run, None)

    def advance(self, run: Run, rounds: int | None = None) -> None:
        """Compute so many more rounds of a paused run, to its end if None."""
        if run.status == "paused":
            self._begin(run, rounds)

    def measure(self, work: Callable[[Callable[[], bool]], None]) -> None:
        """Queue long work of another kind; whatever was running is cancelled.

        `work` is handed the question whether it was told to stop.
        """
        self.stop()
        self._submit(Job(lambda job: work(job.cancel.is_set)))

    def check(self, run: Run) -> None:
        """Replay a finished or paused run through plain decoding, whatever its length."""
        if run.session is not None and not run.active:
            run.status = "checking"
            self._submit(Job(lambda job: self._check(job, run, MAX_TOKENS), run))

    @property
    def remembered(self) -> tuple[int, int]:
        """Finished runs in the suffix history, and their tokens."""
        history = self._history
        return (history.requests, history.tokens) if history else (0, 0)

    def forget(self) -> None:
        """Empty the suffix history, so that the next run starts cold."""
        self._history = None

    def stop(self) -> None:
        """Cancel all that runs or waits; what was computed stays."""
        with self._lock:
            for job in self._jobs:
                job.cancel.set()

    def stopping(self, run: Run) -> bool:
        """Whether a run was told to stop and is still at work."""
        with self._lock:
            return any(job.run is run and job.cancel.is_set() for job in self._jobs)

    def close(self) -> None:
        """End the thread after the round at work."""
        self.stop()
        self._queue.put(None)

    def _begin(self, run: Run, rounds: int | None) -> Run:
        self.stop()
        run.status = "queued"
        self._submit(Job(lambda job: self._decode(job, run, rounds), run))
        return run

    def _submit(self, job: Job) -> None:
        with self._lock:
            self._jobs.append(job)
        self._queue.put(job)

    def _serve(self) -> None:
        while (job := self._queue.get()) is not None:
            failure: Failure | None = None
            set_language(job.language)
            try:
                with cancellable(job.cancel.is_set):
                    job.work(job)
            except Cancelled:
                if job.run is not None:
                    job.run.status = "paused"
            except SpecvizError as error:
                failure = Failure(str(error))
            except Exception as error:  # the thread must outlive any bug, and the page show it
                failure = Failure(f"{type(error).__name__}: {error}", bug=True)
            if failure is not None and job.run is not None:
                job.run.failure, job.run.status = failure, "failed"
            elif failure is not None:
                self.failure = failure
            with self._lock:
                self._jobs.remove(job)

    def _preload(self, spec: str) -> None:
        self.weights.get(spec)
        self.failure = None

    def _decode(self, job: Job, run: Run, rounds: int | None) -> None:
        if job.cancel.is_set():
            run.status = "paused"
            return
        run.status = "running"
        if run.session is None:
            self._open(job, run)
        if run.session is None:  # stopped before the prompt was read
            run.status = "paused"
            return
        session = session_of(run)
        goal = None if rounds is None else len(session.rounds) + rounds
        while session.finish is None and not job.cancel.is_set():
            if goal is not None and len(session.rounds) >= goal:
                break
            with self.weights.turn:
                event = session.step(run.forced)
            run.forced = None
            run.publish(event)
        run.finish = session.finish
        if session.finish is not None:
            self._remember(session)
            self._check(job, run, run.order.check_limit if run.order else 0)
        run.status = "paused" if session.finish is None else "done"

    def _check(self, job: Job, run: Run, limit: int) -> None:
        from specviz.bench.runner import check_lossless

        run.status = "checking"
        session, turn = session_of(run), self.weights.turn
        run.lossless = check_lossless(session, limit, job.cancel.is_set, turn)
        if run.lossless.plain_token is not None:
            run.learn(run.lossless.plain_token)
        run.status = "done" if run.finish else "paused"

    def _open(self, job: Job, run: Run) -> None:
        request = self._equip(run)
        assert run.loaded is not None
        with self.weights.turn:
            if job.cancel.is_set():
                return
            if run.trunk is None:
                run.session = fresh(run, request, self._memory(run))
            else:
                run.session = grafted(run, request, self._memory(run))
        run.trunk = None
        self._introduce(run, request)

    def _equip(self, run: Run) -> "Request":
        """Load target and drafter; without a usable one the run is plain, and says why."""
        from specviz.bench.runner import Request

        assert run.order is not None
        order, run.loaded = run.order, self.weights.get(run.order.spec)
        self.failure = None
        config = order.config
        try:
            run.draft = self._draft(run.loaded, config)
            drafter_of(run, config)
        except (ModelError, ConfigError) as error:
            run.notice, run.draft = str(error), None
            config = replace(config, scheme=PLAIN, draft_length=0)
        return Request(
            prompt=order.prompt,
            chat=order.chat,
            params=order.params,
            config=config,
            title=order.title,
        )

    def _draft(self, loaded: "Loaded", config: SessionConfig) -> "Loaded | Head | None":
        from specviz.bench.drafts import load_draft

        if config.scheme == "draft_model" and config.options.draft_model:
            return self.weights.get(config.options.draft_model)
        return load_draft(loaded, config)

    def _memory(self, run: Run) -> "SuffixHistory":
        """The history of this tab; another target starts a new one, its ids mean other things."""
        from specviz.drafters.suffix import SuffixHistory

        assert run.loaded is not None
        target = run.loaded.target.config
        if self._history is None or self._remembers != target.sha:
            self._history, self._remembers = SuffixHistory(), target.sha
        return self._history

    def _remember(self, session: "DecodeSession") -> None:
        if self._history is not None and self._remembers == session.target.config.sha:
            self._history.add(session.output)

    def _introduce(self, run: Run, request: "Request") -> None:
        """Publish everything about the run but its rounds."""
        from specviz.bench.drafts import draft_ids
        from specviz.bench.runner import to_trace

        assert run.loaded is not None
        trace = to_trace(
            session_of(run), run.loaded, request, draft=run.draft, run_id=run.id, parent=run.parent
        )
        ids = draft_ids(run.draft)
        run.draftable = None if ids is None else frozenset(ids.tolist())
        run.pieces.update(trace.pieces)
        run.undraftable.update(trace.undraftable)
        run.head = replace(trace, rounds=())


_ENGINES: weakref.WeakSet[Engine] = weakref.WeakSet()


@atexit.register
def _end() -> None:
    """Let threads come to rest: one that is inside torch when Python ends aborts the process."""
    engines, until = list(_ENGINES), time.monotonic() + GRACE
    for engine in engines:
        engine.close()
    for engine in engines:
        engine._thread.join(max(0.0, until - time.monotonic()))
