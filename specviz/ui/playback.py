"""Playing a run: as fast as it was, a factor slower, or one small step per beat."""

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from specviz.events import Round
from specviz.traces.timeline import Cursor, durations

TICK = 0.25  # seconds between two looks at the clock in measured time


@dataclass(frozen=True, slots=True)
class Speed:
    """`factor` scales measured time; a `beat` in seconds is teaching time, the same per step."""

    factor: float = 1.0
    beat: float | None = None

    @property
    def interval(self) -> float:
        """Seconds between two redraws."""
        return TICK if self.beat is None else self.beat


SPEEDS = {
    "teach-slow": Speed(beat=1.5),
    "teach": Speed(beat=0.7),
    "teach-fast": Speed(beat=0.3),
    "measured-20": Speed(0.05),
    "measured-5": Speed(0.2),
    "measured": Speed(1.0),
}


@dataclass(frozen=True, slots=True)
class Playback:
    """Playing since `started` (seconds of a steady clock), from `origin` seconds into the run."""

    speed: Speed
    started: float
    origin: float

    def at(self, now: float, cursor: Cursor, rounds: Sequence[Round]) -> Cursor:
        """Where the cursor belongs at time `now`."""
        if self.speed.beat is not None:
            return cursor.micro_forward(rounds)
        played = self.origin + (now - self.started) * self.speed.factor
        return max(cursor, seek(played, rounds))


def seek(seconds: float, rounds: Sequence[Round]) -> Cursor:
    """Where a run stood so many seconds into decoding."""
    over = bisect.bisect_right(rounds, seconds, key=ended)
    if over == len(rounds):
        return Cursor.end(rounds)
    inside = accumulate(durations(rounds[over]), initial=rounds[over].began)
    taken = sum(moment <= seconds for moment in inside) - 1
    return Cursor(over, max(0, taken)).clamp(rounds)


def ended(event: Round) -> float:
    """Seconds into decoding at which a round was over."""
    return event.began + event.timing.total


def elapsed(cursor: Cursor, rounds: Sequence[Round]) -> float:
    """Seconds of decoding that lie behind the cursor."""
    if cursor.rounds >= len(rounds):
        return ended(rounds[-1]) if rounds else 0.0
    event = rounds[cursor.rounds]
    return event.began + sum(durations(event)[: cursor.micro])
