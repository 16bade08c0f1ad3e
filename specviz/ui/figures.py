"""The run in five numbers, each with what it was measured on, and the verdicts about it."""

from dataclasses import dataclass
from functools import lru_cache

import streamlit as st

from specviz.events import LosslessReport
from specviz.metrics import Alarm, Summary, alarms, speedup, summarise
from specviz.traces.schema import Trace
from specviz.ui.messages import literal
from specviz.ui.run import Run
from specviz.ui.state import State
from specviz.words import _


@dataclass(frozen=True, slots=True)
class Figures:
    """What the strip says of a run."""

    summary: Summary
    plain_tpot: float | None
    speedup: float | None
    alarms: tuple[Alarm, ...]


class _Key:
    """Makes a trace usable as a cache key by identity: hashing its contents would cost more."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def __hash__(self) -> int:
        return id(self.trace)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and other.trace is self.trace


def figures(trace: Trace) -> Figures:
    """Return the numbers of a run, computed once for each state of it."""
    return _figures(_Key(trace))


@lru_cache(maxsize=32)
def _figures(key: _Key) -> Figures:
    trace = key.trace
    plain = trace.lossless.plain_tpot if trace.lossless else None
    summary = summarise(trace.rounds)
    found = alarms(trace.rounds, plain, trace.lossless)
    return Figures(summary, plain, speedup(plain, summary.tpot), found)


def show(state: State, trace: Trace) -> None:
    """Draw the strip and, below it, the verdicts."""
    known = figures(trace)
    with st.container(horizontal=True, gap="small"):
        _metrics(known, trace, state.run)
    for alarm in known.alarms:
        draw = {"error": st.error, "warning": st.warning, "info": st.info}[alarm.severity]
        draw(literal(alarm.sentence))


def _metrics(known: Figures, trace: Trace, run: Run) -> None:
    s = known.summary
    how = _("live") if run.origin == "live" else _("recorded")
    _metric(
        _("Tokens per round, E[L]"),
        _number(s.acceptance_length, "{:.2f}"),
        _("the target's own included"),
    )
    _metric(
        _("Drafts accepted"),
        _number(s.acceptance_rate, "{:.0%}"),
        _("{n} of {all}").format(n=s.accepted, all=s.drafted),
    )
    _metric(
        _("Per output token"),
        _number(s.tpot and 1000 * s.tpot, "{:.1f} ms"),
        _("{how}, batch 1").format(how=how),
    )
    measured = _("{how}, decoding only").format(how=how)
    missing = _("plain decoding not measured")
    _metric(
        _("Speedup"),
        _number(known.speedup, "{:.2f}x"),
        measured if known.speedup else missing,
    )
    word, note = verdict(trace.lossless)
    _metric(_("Against plain decoding"), word, note)


def _metric(label: str, value: str, note: str) -> None:
    st.metric(
        label,
        value,
        delta=note,
        delta_arrow="off",
        delta_color="off",
        border=True,
        width=184,
        height="stretch",
    )


def _number(value: float | None, form: str) -> str:
    return _("n/a") if value is None else form.format(value)


def verdict(report: LosslessReport | None) -> tuple[str, str]:
    """Return the lossless verdict in a word and its reason."""
    if report is None or report.kind == "not-run":
        return _("not checked"), _("switch on in More settings")
    gap = "" if report.worst_gap is None else _("worst gap {x:.2g}").format(x=report.worst_gap)
    tokens = _("{n} tokens").format(n=report.compared)
    note = ", ".join(filter(None, (tokens, gap)))
    if report.kind == "sampled":
        return _("sampled"), _("compared in distribution only")
    word = {"identical": _("identical"), "near-tie": _("near tie"), "BUG": _("BUG")}[report.kind]
    return word, note
