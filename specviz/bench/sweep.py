"""Speedup against D and G, measured: every task of a plan, each once, results as they come."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime

from specviz.bench import sweep_groups as groups
from specviz.bench.runner import Request, decode, environment, open_session, to_trace
from specviz.bench.sweep_drafts import Drafts
from specviz.bench.sweep_log import Folder, Head, Log, left, missing, options
from specviz.bench.sweep_plan import Decode, Plan, Task, schedule
from specviz.bench.sweep_time import kernel_passes, model_passes
from specviz.config import SamplingParams, SessionConfig
from specviz.events import LosslessReport
from specviz.lossless import replay_plain
from specviz.metrics import summarise
from specviz.metrics.sweep import Sample
from specviz.models.load import Loaded
from specviz.session import DecodeSession

WARM_UP = 2  # rounds, of the full D


class Sweep:
    """Runs a plan into a log. Iterate: each `next()` is one more measurement in the log."""

    def __init__(
        self,
        loaded: Loaded,
        plan: Plan,
        log: Log,
        turn: AbstractContextManager[object] | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """Look for the drafters and open the log; nothing is measured yet.

        Args:
            loaded: the target.
            plan: what to measure; schemes without a drafter are left out, with the reason.
            log: takes the results, and knows what was measured before.
            turn: held during each measurement, where others use the same machine.
            stop: asked between rounds; what is unfinished then is not kept.

        Raises:
            ConfigError: No scheme can draft here, or the log is of something else.
        """
        self.loaded, self.log, self.stop = loaded, log, stop
        self._turn = turn or nullcontext()
        self._drafts = Drafts(loaded, plan.schemes, plan.options, log.results.unavailable)
        room = loaded.target.config.context // 2
        self.plan = replace(plan, schemes=self._drafts.schemes, rows=min(plan.rows, room))
        own = loaded.target.config.group_size
        exact = groups.divisors(loaded.target) if "exact" in plan.groups else ()
        twins = groups.twins(loaded.target)
        self.tasks = tuple(schedule(self.plan, own, exact, twins))
        self._targets: dict[tuple[str, int], Loaded] = {("exact", own): loaded}
        self._warm: set[tuple[str, int]] = set()
        log.open(self._head())
        self.todo = [task for task in self.tasks if missing(task, log.results)]

    @property
    def total(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[Task]:
        for task in self.todo:
            if self.stop():
                return
            with self._turn:
                if not self._do(task):
                    return
            yield task

    def _head(self) -> Head:
        shape, plan = self.loaded.target.config, self.plan
        return Head(
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            model=shape.name,
            sha=shape.sha,
            group_size=shape.group_size,
            heads=shape.heads,
            tokens=plan.tokens,
            seed=plan.seed,
            chat=plan.chat,
            options=options(plan),
            environment=environment(self.loaded),
        )

    def _do(self, task: Task) -> bool:
        """Measure one task into the log; False if it was stopped."""
        if isinstance(task, Decode):
            return self._decode(task)
        rest = left(task, self.log.results)
        if rest.mode == "kernel":
            found = kernel_passes(self.loaded.target, rest, self.stop)
        else:
            target = self._with_group(rest.mode, rest.group_size).target
            found = model_passes(target, rest, self.stop)
        for one in found:
            self.log.add_pass(one)
        return not self.stop()

    def _with_group(self, mode: str, group: int) -> Loaded:
        """Return the target with another G; only one beside its own is kept in memory."""
        if (mode, group) not in self._targets:
            own, *_others = self._targets.items()
            make = groups.twin if mode == "twin" else groups.exact
            made = replace(self.loaded, target=make(self.loaded.target, group))
            self._targets = dict([own, ((mode, group), made)])
        return self._targets[mode, group]

    def _decode(self, task: Decode) -> bool:
        cell = task.cell
        loaded = self._with_group(cell.mode, cell.group_size)
        draft = self._drafts.get(cell.scheme)
        if not self._drafts.usable(cell.scheme):
            return True  # the reason stands beside the results
        request = self._request(task)
        if (cell.scheme, cell.group_size) not in self._warm:
            short = open_session(loaded, request, draft)
            decode(short, lambda _round: len(short.rounds) < WARM_UP and not self.stop())
            self._warm.add((cell.scheme, cell.group_size))
        session = open_session(loaded, request, draft)
        decode(session, lambda _round: not self.stop())
        if session.finish is None:
            return False
        sample = self._sample(task, session)
        trace = None
        if sample.trace:
            parted = self._parted(sample, session)
            trace = to_trace(session, loaded, request, draft=draft, lossless=parted)
        self.log.add_sample(sample, trace)
        return True

    def _request(self, task: Decode) -> Request:
        cell, plan = task.cell, self.plan
        return Request(
            prompt=task.prompt.text,
            chat=plan.chat,
            params=SamplingParams(
                max_tokens=plan.tokens, temperature=cell.temperature, seed=plan.seed
            ),
            config=SessionConfig(
                scheme=cell.scheme,
                draft_length=cell.draft_length,
                detail="off",
                options=plan.options,
            ),
            title=task.prompt.title or task.prompt.id,
        )

    def _parted(self, sample: Sample, session: DecodeSession) -> LosslessReport | None:
        """Say where and how far a greedy text left plain decoding's; None if it did not."""
        cell, known = sample.cell, self.log.results.samples
        texts = {s.digest for s in known if s.cell == cell.plain and s.prompt == sample.prompt}
        if cell.temperature or not texts or sample.digest in texts:
            return None
        return replay_plain(session, self.stop)

    def _sample(self, task: Decode, session: DecodeSession) -> Sample:
        found, cell = summarise(session.rounds), task.cell
        own = cell.group_size == self.loaded.target.config.group_size
        name = f"{cell.scheme}-{cell.draft_length}-{cell.temperature:g}-{task.prompt.id}.json.gz"
        # A file's name must not be able to lead out of the folder, whatever the prompt is called.
        safe = "".join(c if c.isalnum() or c in ".-_" else "_" for c in name)
        first = own and task.index == 0
        output = ",".join(map(str, session.output)).encode()
        return Sample(
            cell=cell,
            prompt=task.prompt.id,
            prompt_class=task.prompt.prompt_class,
            repeat=task.index,
            order=len(self.log.results.samples),
            rounds=found.rounds,
            tokens=found.output_tokens,
            drafted=found.drafted,
            accepted=found.accepted,
            lengths=found.draft_histogram,
            survived=found.survived,
            timing=found.timing,
            prompt_tokens=len(session.prompt),
            digest=hashlib.sha256(output).hexdigest()[:16],
            trace=safe if first else "",
        )


def sweep(loaded: Loaded, plan: Plan, log: Folder | Log) -> Log:
    """Measure a whole plan and return its log."""
    for _task in Sweep(loaded, plan, log):
        pass
    return log
