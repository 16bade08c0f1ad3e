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
from specviz.views.speed import FEW
from specviz.words import _, language, ngettext


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


def figures(trace: Trace, shown: int) -> Figures:
    """Return the numbers of the first `shown` rounds, computed once for each state of a run."""
    return _figures(_Key(trace), shown, language())


@lru_cache(maxsize=32)
def _figures(key: _Key, shown: int, spoken: str) -> Figures:
    trace, rounds = key.trace, key.trace.rounds[:shown]
    plain = trace.lossless.plain_tpot if trace.lossless else None
    summary = summarise(rounds)
    found = alarms(rounds, plain, trace.lossless)
    return Figures(summary, plain, speedup(plain, summary.tpot), found)


def show(state: State, trace: Trace) -> None:
    """Draw the strip and, below it, the verdicts."""
    shown = state.cursor.clamp(trace.rounds).rounds
    known = figures(trace, shown)
    st.caption(literal(scope(shown, len(trace.rounds))))
    with st.container(horizontal=True, gap="small"):
        _metrics(known, trace, state.run)
    for alarm in known.alarms:
        draw = {"error": st.error, "warning": st.warning, "info": st.info}[alarm.severity]
        draw(literal(alarm.sentence))


def scope(shown: int, total: int) -> str:
    """Say which rounds the numbers are about: the complete ones before the cursor."""
    if not shown:
        return _("Numbers start with the first complete round.")
    if shown == total:
        return ngettext("Numbers of {n} round", "Numbers of all {n} rounds", total).format(n=total)
    text = ngettext("Numbers of round 1 of {all}", "Numbers of rounds 1-{n} of {all}", shown)
    return text.format(n=shown, all=total)


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
    note = _("{how}, decoding only").format(how=how)
    if known.speedup is None:
        note = _("not measured")
    elif s.rounds < FEW:
        note = _("too few rounds to tell")
    _metric(
        _("Speedup"),
        _number(known.speedup, "{:.2f}x"),
        note,
    )
    word, note = verdict(trace.lossless, run)
    _metric(_("Against plain decoding"), word, note)


def _metric(label: str, value: str, note: str) -> None:
    st.metric(
        label,
        value,
        delta=note,
        delta_arrow="off",
        delta_color="off",
        width=176,
    )


def _number(value: float | None, form: str) -> str:
    return _("n/a") if value is None else form.format(value)


def verdict(report: LosslessReport | None, run: Run) -> tuple[str, str]:
    """Return the lossless verdict on the whole run in a word, and its reason."""
    if report is None or report.kind == "not-run":
        return _("not checked"), _unchecked(run)
    tokens = ngettext("{n} token", "{n} tokens", report.compared).format(n=report.compared)
    note = _("whole run, {tokens}").format(tokens=tokens)
    if report.compared < sum(event.acceptance_length for event in run.rounds):
        note = _("the first {tokens}").format(tokens=tokens)
    if report.kind == "sampled":
        return _("sampled"), _("compared in distribution only")
    word = {"identical": _("identical"), "near-tie": _("near tie"), "BUG": _("BUG")}[report.kind]
    return word, note


def _unchecked(run: Run) -> str:
    """Say why a run was not compared, or when it will be."""
    limit = run.order.check_limit if run.order else 0
    if run.status == "checking":
        return _("being compared")
    if run.order is None:
        return _("not in the file")
    if not limit:
        return _("switched off")
    if run.status == "failed":
        return _("the run failed")
    if run.active or run.finish is None:
        return _("after the run")
    if sum(event.acceptance_length for event in run.rounds) > limit:
        return _("longer than {n}").format(n=limit)
    return _("check stopped")
