"""What one browser tab has on screen: its runs, the cursor, and the engine that works for it."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import streamlit as st

from specviz.errors import TraceError
from specviz.events import Round
from specviz.traces.schema import Trace
from specviz.traces.store import load
from specviz.traces.timeline import Cursor
from specviz.ui import links
from specviz.ui.fields import FIELDS, Value
from specviz.ui.playback import Playback
from specviz.ui.run import Order, Run
from specviz.ui.runner import Engine
from specviz.ui.weights import Weights
from specviz.words import _

KEY = "specviz"
RECORDINGS = Path(__file__).parents[1] / "recordings"
FIRST = "ngram-copy.json.gz"  # on screen when nobody asked for another
START = Cursor()
MOST_RUNS = 8  # live and opened runs kept; each holds a KV cache


@dataclass(slots=True, kw_only=True)
class State:
    """Everything that is not a setting. Settings live in the widgets, under the keys of FIELDS."""

    engine: Engine
    recordings: Mapping[str, Run]  # by name in links
    runs: dict[str, Run] = field(default_factory=dict)  # by id, oldest first
    shown: str = ""
    cursor: Cursor = START
    follow: bool = False  # the cursor stays at the end of a growing run
    awaited: Cursor | None = None  # the place of a link whose run is still being repeated
    chosen: tuple[int, int | str] | None = None  # token picked: round, and node or "last"
    seen: dict[str, object] = field(default_factory=dict)  # what was last taken from a widget
    slid: int = -1  # where the slider stands, and how often it was made anew
    slider: int = 0
    playback: Playback | None = None
    notes: list[str] = field(default_factory=list)
    repeat: bool = False  # the link asks for a live run that has to be computed again
    greeted: bool = False  # whether the embedded model was asked for

    @property
    def run(self) -> Run:
        return self.runs[self.shown]

    def show(self, run: Run, cursor: Cursor | None = None) -> None:
        """Put a run on screen, at its end unless a place is given."""
        self.runs[run.id] = run
        self.shown, self.playback, self.chosen, self.awaited = run.id, None, None, None
        self.follow = run.active and cursor is None
        self.cursor = (cursor or Cursor.end(run.rounds)).clamp(run.rounds)
        self._forget_oldest()

    def move(self, cursor: Cursor) -> None:
        """Move the reader; computing goes on, but no longer drags the cursor along."""
        self.cursor, self.chosen, self.awaited = cursor.clamp(self.run.rounds), None, None
        self.follow = False

    def keep_up(self, rounds: Sequence[Round]) -> None:
        """Follow a growing run, and go to an awaited place as soon as it exists."""
        active = self.run.active
        if self.awaited is not None and (self.awaited.rounds < len(rounds) or not active):
            self.move(self.awaited)
        elif self.follow:
            self.cursor = Cursor.end(rounds)
            # The last rounds may have come after `rounds` was looked at.
            self.follow = active or len(rounds) < len(self.run.rounds)

    def news(self, widget: str, value: object) -> bool:
        """Whether a widget says something new; Streamlit may report one change several times."""
        known, self.seen[widget] = self.seen.get(widget), value
        return value != known

    def start(self, order: Order, rounds: int | None = None) -> None:
        """Decode anew with the settings of this moment, which links to the run then hold."""
        run = self.engine.start(order, rounds)
        run.settings = settings()
        self.show(run)

    def branch(self, order: Order, at: int, forced: int | None = None) -> None:
        """Go on differently after the first `at` rounds of the run on screen."""
        self.show(self.engine.branch(self.run, at, order, forced))

    @property
    def link(self) -> str:
        """The query string that brings somebody else here."""
        values = self.run.settings or settings()
        at = self.awaited or self.cursor
        rounds = self.run.rounds
        home = opening(rounds) if self.run is self._first_recording() else Cursor.end(rounds)
        place = None if self.follow or at == home or not self.linkable else at
        return links.write(values, self._name(), place)

    @property
    def linkable(self) -> bool:
        """Whether a link can lead to this run: files and branches are only on this machine."""
        return self.run.settings is not None or self.run in self.recordings.values()

    def _first_recording(self) -> Run | None:
        return next(iter(self.recordings.values()), None)

    def _name(self) -> str:
        names = [name for name, run in self.recordings.items() if run.id == self.shown]
        if not names:
            return links.LIVE if self.run.settings else ""
        return "" if names[0] == next(iter(self.recordings)) else names[0]

    def _forget_oldest(self) -> None:
        recorded = {run.id for run in self.recordings.values()}
        own = [name for name in self.runs if name not in recorded and name != self.shown]
        for name in own[: max(0, len(own) + 1 - MOST_RUNS)]:
            del self.runs[name]


def opening(rounds: Sequence[Round]) -> Cursor:
    """Return the place to open a run at: behind the last round that kept some drafts, not all.

    A refusal behind the end of the text is no example. Without an example it is the end.
    """
    for event in reversed(rounds):
        if not event.past_end and {"accepted", "rejected"} <= set(event.fates):
            return Cursor(event.index + 1)
    return Cursor.end(rounds)


@st.cache_resource(show_spinner=False)
def weights() -> Weights:
    """Return the models of this process."""
    return Weights()


def _close(engine: Engine) -> None:
    engine.close()


@st.cache_resource(scope="session", show_spinner=False, on_release=_close)
def _engine(tab: str) -> Engine:
    """Return the engine of a tab; Streamlit lets go of it when the tab is gone."""
    return Engine(weights())


@st.cache_resource(show_spinner=False)
def _recordings() -> tuple[Mapping[str, Trace], tuple[str, ...]]:
    """Return the traces we ship, by name, and what is wrong with the others."""
    traces: dict[str, Trace] = {}
    problems: list[str] = []
    for path in sorted(RECORDINGS.glob("*.json.gz"), key=lambda p: (p.name != FIRST, p.name)):
        try:
            traces[path.name.removesuffix(".json.gz")] = load(path)
        except TraceError as error:
            problems.append(str(error))
    return traces, tuple(problems)


def current(query: Mapping[str, str] | None = None) -> State:
    """Return the state of this tab, made on its first run from the link it was opened with.

    `query` is what of the link is about the Step page: all of it there, nothing on other pages.
    """
    if KEY not in st.session_state:
        st.session_state[KEY] = _first(st.query_params.to_dict() if query is None else query)
    return cast(State, st.session_state[KEY])


def setting(key: str) -> Value:
    """Return the value of one setting, its default while no widget shows it."""
    return cast(Value, st.session_state.get(key, FIELDS[key].default))


def settings() -> dict[str, Value]:
    """Return all settings as they are now."""
    return {key: setting(key) for key in FIELDS}


def _first(query: Mapping[str, str]) -> State:
    traces, problems = _recordings()
    recordings = {name: Run.of_trace(trace, "recorded") for name, trace in traces.items()}
    place = links.read(query, tuple(recordings))
    for key, known in FIELDS.items():
        st.session_state[key] = place.values.get(key, known.default)
    state = State(
        engine=_engine(uuid.uuid4().hex), recordings=recordings, notes=[*problems, *place.notes]
    )
    state.runs = {run.id: run for run in recordings.values()}
    name = place.run if place.run in recordings else next(iter(recordings), "")
    state.show(recordings[name] if name else Run(origin="opened", title="", status="done"))
    if place.run == links.LIVE:
        state.repeat, state.awaited = True, place.cursor
    elif place.cursor is not None:
        state.move(place.cursor)
        if state.cursor != place.cursor:
            text = _("This link asked for place {at}, which this run has not; {there} is shown.")
            state.notes.append(text.format(at=place.cursor, there=state.cursor))
    elif state.run is state._first_recording():
        state.move(opening(state.run.rounds))
    return state
