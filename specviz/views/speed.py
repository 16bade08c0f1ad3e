"""The speed panel: the speedup formula with its numbers in, beside what was measured."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from specviz.metrics.alarms import alarms
from specviz.metrics.speed import predicted_speedup, speedup
from specviz.metrics.summary import Summary, summarise
from specviz.traces.schema import Trace
from specviz.words import _, ngettext

SPARK = 120  # rounds in the sparkline, the latest

FEW = 5  # with fewer rounds a measured speedup is mostly chance
RECORDING = 0.03  # share of the time above which recording details is said to cost

# Speedup of plain decoding, up to the noise of measuring.
EVEN = 0.02


@dataclass(frozen=True, slots=True)
class SpeedView:
    """Numbers of the speed panel in words; times in milliseconds."""

    label: str  # batch, device, dtype; live or recorded, and when
    formula: tuple[str, ...]
    predicted: str  # with unit, "" if unknown
    measured: str
    unsure: str  # stands beside `measured` where it cannot be believed, else ""
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]  # quantity, value, how it is known
    parts: Mapping[str, float]  # of a mean round, for charts.time_chart
    labels: Mapping[str, str]
    lengths: tuple[int, ...]  # tokens committed by the latest rounds
    first: int  # round of lengths[0]
    mean_length: float
    warnings: tuple[str, ...]
    reading: str


def speed_view(trace: Trace, shown: int, plain_tpot: float | None, *, live: bool) -> SpeedView:
    """Describe the first `shown` rounds.

    `plain_tpot` is the seconds per token of plain decoding of the same prompt on the same
    weights; None says that nobody measured it, and then no speedup is claimed.
    """
    rounds = trace.rounds[:shown]
    summary = summarise(rounds)
    predicted = predicted_speedup(summary, plain_tpot)
    measured = speedup(plain_tpot, summary.tpot)
    mean = summary.mean_timing
    names = ("draft", "score", "verify", "commit", "other")
    return SpeedView(
        label=_label(trace, live),
        formula=(*_formula(summary, plain_tpot, predicted), *_doubts(summary, measured)),
        predicted=_times(predicted),
        measured=_times(measured),
        unsure=_unsure(summary, measured),
        columns=(_("Quantity"), _("Value"), _("How it is known")),
        rows=_rows(summary, plain_tpot),
        parts={name: 1000 * getattr(mean, name) for name in names},
        labels=_part_names(),
        lengths=tuple(event.acceptance_length for event in rounds[-SPARK:]),
        first=max(0, len(rounds) - SPARK),
        mean_length=summary.acceptance_length or 0.0,
        warnings=tuple(alarm.sentence for alarm in alarms(rounds, plain_tpot, trace.lossless)),
        reading=_reading(summary, predicted, measured),
    )


def _part_names() -> dict[str, str]:
    return {
        "draft": _("draft"),
        "score": _("score"),
        "verify": _("verify"),
        "commit": _("commit"),
        "other": _("remainder"),
    }


def _label(trace: Trace, live: bool) -> str:
    where = trace.environment
    text = _("batch 1 · {dtype} · {name} ({device})").format(
        dtype=where.dtype, name=where.device_name, device=where.device
    )
    when = _("live") if live else _("recorded on {date}").format(date=_date(trace.created))
    return f"{when} · {text}"


def _date(created: str) -> str:
    try:
        return datetime.fromisoformat(created).date().isoformat()
    except ValueError:
        return created


def _times(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}x"


def _ms(seconds: float) -> str:
    return _("{x} ms").format(x=f"{1000 * seconds:.2f}")


def _formula(s: Summary, plain: float | None, predicted: float | None) -> tuple[str, ...]:
    first = _("Speedup = E[L] · T_target / (T_draft + T_verify)")
    mean = s.mean_timing
    if not s.rounds:
        return (first, _("No round has run yet."))
    if plain is None:
        missing = _(
            "T_target was not measured here, so there is no speedup to show: run plain decoding "
            "of the same prompt, or ask for the lossless report."
        )
        return (first, missing)
    numbers = _("= {length} · {target} / ({draft} + {verify}) = {speedup}").format(
        length=f"{s.acceptance_length or 0:.2f}",
        target=_ms(plain),
        draft=_ms(mean.draft),
        verify=_ms(mean.score + mean.verify + mean.commit),
        speedup=_times(predicted),
    )
    text = _("The remainder, {ms} per round ({share} of it), is not in the formula.")
    left = text.format(ms=_ms(mean.other), share=f"{s.other_share or 0:.0%}")
    return (first, numbers, left)


def _doubts(s: Summary, measured: float | None) -> list[str]:
    """Say what stands between the measured time and what it is taken for."""
    lines, unsure = [], _unsure(s, measured)
    if unsure:
        over = ngettext(
            "Measured over {n} round: {x}, {unsure}.",
            "Measured over {n} rounds: {x}, {unsure}.",
            s.rounds,
        )
        lines.append(over.format(n=s.rounds, x=_times(measured), unsure=unsure))
    time = s.timing
    if s.tpot is not None and time.record > RECORDING * time.total:
        text = _("Recording details took {ms} per round ({share} of it); without, {x} per token.")
        bare = (time.total - time.record) / s.output_tokens
        share = f"{time.record / time.total:.0%}"
        lines.append(text.format(ms=_ms(s.mean_timing.record), share=share, x=_ms(bare)))
    return lines


def _unsure(s: Summary, measured: float | None) -> str:
    return "" if measured is None or s.rounds >= FEW else _("too few rounds to tell")


def _rows(s: Summary, plain: float | None) -> tuple[tuple[str, ...], ...]:
    mean = s.mean_timing
    over = ngettext("measured, mean of {n} round", "measured, mean of {n} rounds", s.rounds)
    over = over.format(n=s.rounds)
    target = (
        ("T_target", _("unknown"), _("not measured"))
        if plain is None
        else ("T_target", _ms(plain), _("measured, plain decoding of the same prompt"))
    )
    rate = s.acceptance_rate
    counted = _("counted: {accepted} of {drafted} drafts").format(
        accepted=s.accepted, drafted=s.drafted
    )
    return (
        ("E[L]", f"{s.acceptance_length or 0:.2f}", _("counted, the target's own token included")),
        (_("acceptance rate"), "-" if rate is None else f"{rate:.0%}", counted),
        target,
        ("T_draft", _ms(mean.draft), over),
        ("T_verify", _ms(mean.score + mean.verify + mean.commit), over),
        (
            _("remainder"),
            _ms(mean.other),
            _("measured, of it {ms} for recording details").format(ms=_ms(mean.record)),
        ),
        (_("per token"), "-" if s.tpot is None else _ms(s.tpot), _("measured, prefill left out")),
    )


def _reading(s: Summary, predicted: float | None, measured: float | None) -> str:
    """Return the panel in one sentence."""
    length = f"{s.acceptance_length or 0:.2f}"
    if measured is None or predicted is None:
        text = _("{length} tokens per round; plain decoding was not measured.")
        return text.format(length=length)
    if s.asked == 0:
        return _("This is plain decoding itself.")
    if s.rounds < FEW:
        text = _("{length} tokens per round, so far {gain} of plain decoding: {unsure}.")
        return text.format(length=length, gain=_times(measured), unsure=_unsure(s, measured))
    if measured > 1 + EVEN:
        text = _("{length} tokens per round made it {gain} as fast as plain decoding.")
    elif measured < 1 - EVEN:
        text = _("{length} tokens per round did not pay for the drafts: {gain} of plain decoding.")
    else:
        text = _("{length} tokens per round: as fast as plain decoding.")
    return text.format(length=length, gain=_times(measured))
