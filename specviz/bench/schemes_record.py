"""What a measurement of schemes writes down: one line per visit of a prompt, only appended to."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from specviz.errors import ConfigError
from specviz.events import LosslessClass, Timing
from specviz.metrics import Summary
from specviz.models.store import cache_errors
from specviz.traces.codec import decode, encode
from specviz.traces.scalars import Damaged, Json
from specviz.traces.schema import Environment
from specviz.words import _

PLAIN = "plain"
Phase = Literal["probe", "full"]  # looking for the best D, or measuring with it


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The first line: on what and where everything below it was measured."""

    plan: str  # everything asked for, as JSON
    model: str
    sha: str
    drafts: tuple[tuple[str, str], ...]  # label, and name with sha of what drafts
    environment: Environment
    date: str
    load: float | None  # load average when the measuring began

    @property
    def fixed(self) -> tuple[object, ...]:
        """What must be equal for measurements to go into one file."""
        e = self.environment
        machine = e.device_name, e.dtype, e.threads, e.torch
        return self.plan, self.model, self.sha, self.drafts, machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One decode; `seconds` are of decoding alone, `prefill` of the target's prompt pass."""

    label: str
    draft_length: int
    seconds: float
    prefill: float
    stop: str
    lossless: LosslessClass  # against the plain decode of the same visit
    busy: bool  # equal passes took unequal times
    summary: Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One prompt, decoded plainly and by every column, one after the other."""

    phase: Phase
    prompt: str
    kind: str
    repeat: int
    samples: tuple[Sample, ...]

    @property
    def key(self) -> tuple[str, str, int]:
        return self.phase, self.prompt, self.repeat


class Record:
    """A file of one head and its visits; a kill loses the visit it was at and no more."""

    def __init__(self, path: Path, head: Head) -> None:
        """Begin a file, or go on with one.

        Raises:
            ConfigError: the file is of another measurement.
            CacheError: it cannot be written.
        """
        self.path, self.head = path, head
        self.visits: list[Visit] = []
        lines = list(_lines(path)) if path.exists() else []
        if not lines:
            with cache_errors(path.parent):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(b"")
            self._append(encode(head))
            return
        try:
            known = decode(Head, lines[0])
            self.visits = [decode(Visit, line) for line in lines[1:]]
        except Damaged:
            known = None
        if known is None or known.fixed != head.fixed:
            raise ConfigError(
                _(
                    "{file} holds another measurement: other prompts, schemes, heads, settings or "
                    "another machine; name another file with --results, or move that one away"
                ).format(file=path)
            )
        self.head = known

    def has(self, phase: Phase, prompt: str, repeat: int) -> bool:
        """Whether a visit was made before."""
        return any(visit.key == (phase, prompt, repeat) for visit in self.visits)

    def add(self, visit: Visit) -> None:
        """Write a visit down."""
        self._append(encode(visit))
        self.visits.append(visit)

    def _append(self, record: object) -> None:
        """Write one line; what a kill left of an unfinished one is ended first and never read."""
        with cache_errors(self.path.parent), self.path.open("a+b") as out:
            if out.tell():
                out.seek(-1, 2)
                out.write(b"" if out.read(1) == b"\n" else b"\n")
            out.write(json.dumps(record, allow_nan=False).encode() + b"\n")


def _lines(path: Path) -> Iterator[Json]:
    """Whole lines of a file; those cut short by a kill are passed over."""
    with cache_errors(path.parent), path.open("rb") as lines:
        for line in lines:
            try:
                known: Json = json.loads(line)
            except ValueError:
                continue
            yield known


def pool(found: Sequence[Summary]) -> Summary:
    """Add up the counts of several runs: rates of the sum weigh every round alike."""
    values: dict[str, object] = {}
    for field in fields(Summary):
        each = [getattr(one, field.name) for one in found]
        if field.name == "timing":
            names = [part.name for part in fields(Timing)]
            values["timing"] = Timing(*(sum(getattr(t, name) for t in each) for name in names))
        elif field.name in ("reached", "survived"):
            values[field.name] = tuple(sum(at) for at in zip_longest(*each, fillvalue=0))
        else:
            values[field.name] = sum(each)
    return Summary(**values)  # type: ignore[arg-type]
