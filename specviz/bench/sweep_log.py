"""The file of a sweep: one line per measurement, only ever appended to, so a kill loses nothing."""

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Protocol

from specviz.bench.sweep_plan import Decode, Passes, Plan, Task
from specviz.errors import ConfigError
from specviz.metrics.sweep import Pass, Sample
from specviz.models.store import cache_dir, cache_errors
from specviz.traces.codec import decode, encode
from specviz.traces.scalars import Damaged, Json
from specviz.traces.schema import Environment, Trace
from specviz.traces.store import save
from specviz.words import _

FORMAT = "specviz-sweep"
FILE, TRACES = "sweep.jsonl", "traces"


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The first line: where and on what everything below it was measured."""

    created: str
    model: str
    sha: str
    group_size: int
    heads: int
    tokens: int
    seed: int
    chat: bool
    options: str  # of the drafters, as JSON
    environment: Environment

    @property
    def fixed(self) -> tuple[object, ...]:
        """What must be equal for measurements to go into one file."""
        e = self.environment
        machine = (e.device_name, e.dtype, e.threads, e.torch)
        return self.model, self.sha, self.tokens, self.seed, self.chat, self.options, machine


@dataclass(slots=True, eq=False)
class Results:
    """Everything measured so far, in memory; a log adds a file."""

    head: Head | None = None
    samples: list[Sample] = field(default_factory=list)
    passes: list[Pass] = field(default_factory=list)
    unavailable: dict[str, str] = field(default_factory=dict)  # schemes, and why

    @property
    def length(self) -> int:
        return len(self.samples) + len(self.passes)


class Log(Protocol):
    """Where measurements go."""

    @property
    def results(self) -> Results: ...

    def open(self, head: Head) -> None: ...

    def add_sample(self, sample: Sample, trace: Trace | None) -> None: ...

    def add_pass(self, one: Pass) -> None: ...


class Memory:
    """A log that keeps everything, traces too, until it is let go."""

    def __init__(self) -> None:
        self.results = Results()
        self.traces: dict[tuple[str, str], Trace] = {}  # by scheme and prompt

    def open(self, head: Head) -> None:
        self.results.head = head

    def add_sample(self, sample: Sample, trace: Trace | None) -> None:
        if trace is not None:
            self.traces.setdefault((sample.cell.scheme, sample.prompt), trace)
        self.results.samples.append(sample)

    def add_pass(self, one: Pass) -> None:
        self.results.passes.append(one)


class Folder:
    """A log in a folder: `sweep.jsonl`, and a trace for each point."""

    def __init__(self, path: Path) -> None:
        """Read what is there already."""
        self.path = path
        self.results = read(path / FILE) if (path / FILE).exists() else Results()

    def open(self, head: Head) -> None:
        """Begin a file, or go on with one.

        Raises:
            ConfigError: The file is of another model, machine or setting.
            CacheError: It cannot be written.
        """
        known = self.results.head
        if known is not None and known.fixed != head.fixed:
            raise ConfigError(
                _(
                    "{file} was measured with another model, machine or setting ({model}, "
                    "{tokens} tokens, {device}); one file holds one of each. Give another folder "
                    "with --out, or move that one away."
                ).format(
                    file=self.path / FILE,
                    model=known.model,
                    tokens=known.tokens,
                    device=known.environment.device_name,
                )
            )
        if known is None:
            with cache_errors(self.path):
                (self.path / TRACES).mkdir(parents=True, exist_ok=True)
            self.results.head = head
            self._append({"format": FORMAT, "kind": "head", **encode(head)})

    def add_sample(self, sample: Sample, trace: Trace | None) -> None:
        if trace is not None and sample.trace:
            with cache_errors(self.path):
                save(trace, self.path / TRACES / sample.trace)
        self._append({"kind": "sample", **encode(sample)})
        self.results.samples.append(sample)

    def add_pass(self, one: Pass) -> None:
        self._append({"kind": "pass", **encode(one)})
        self.results.passes.append(one)

    def _append(self, record: dict[str, Json]) -> None:
        """Write one line; a line that a kill cut short is ended first, and never read."""
        file = self.path / FILE
        with cache_errors(self.path), file.open("a+b") as out:
            if out.tell():
                out.seek(-1, 2)
                whole = out.read(1) == b"\n"
                out.write(b"" if whole else b"\n")
            out.write(json.dumps(record, allow_nan=False).encode() + b"\n")


def read(file: Path) -> Results:
    """Return what a file holds, gzipped or not; a line that was cut short is skipped.

    Raises:
        ConfigError: It is no file of a sweep.
    """
    results = Results()
    for record in records(file):
        kind = record.pop("kind", "")
        try:
            if kind == "head":
                record.pop("format", None)
                results.head = decode(Head, record)
            elif kind == "sample":
                results.samples.append(decode(Sample, record))
            elif kind == "pass":
                results.passes.append(decode(Pass, record))
        except Damaged:
            continue
    if results.head is None and file.stat().st_size:
        raise ConfigError(
            _("{file} is no file of a sweep; give one that `specviz sweep` wrote").format(file=file)
        )
    return results


def records(file: Path) -> Iterator[dict[str, Json]]:
    """Yield every line that is whole, as it was written."""
    for line in _lines(file):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record


def _lines(file: Path) -> Iterator[bytes]:
    if file.suffix != ".gz":
        with file.open("rb") as lines:
            yield from lines
        return
    packed = file.read_bytes()
    try:
        yield from gzip.decompress(packed).splitlines()
    except (OSError, EOFError, zlib.error):
        return  # nothing of it can be trusted


def missing(task: Task, results: Results) -> bool:
    """Whether a measurement is still to be made."""
    if isinstance(task, Decode):
        return all(sample.key != task.key for sample in results.samples)
    return bool(left(task, results).rows)


def left(task: Passes, results: Results) -> Passes:
    """Return a task without the rows that were measured before."""
    known = (task.mode, task.group_size, task.repeat, task.batch)
    done = {
        one.rows
        for one in results.passes
        if (one.mode, one.group_size, one.repeat, one.batch) == known
        # A model too short for the planned context was measured over what it has.
        and (task.mode != "kernel" or one.context == task.context)
    }
    return replace(task, rows=tuple(rows for rows in task.rows if rows not in done))


def default_folder(plan: Plan, model: str) -> Path:
    """Return the folder of sweeps of this model and length, in the user's cache."""
    known = f"{model} {plan.tokens} {plan.seed} {plan.chat} {options(plan)}"
    return cache_dir() / "sweeps" / hashlib.sha256(known.encode()).hexdigest()[:12]


def options(plan: Plan) -> str:
    """Return the drafters' options as one line."""
    return json.dumps(asdict(plan.options), sort_keys=True)
