"""Schemes side by side in a table, and where their texts leave plain decoding's."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from specviz.cost.reasons import title
from specviz.events import LosslessReport
from specviz.metrics.alarms import judge
from specviz.metrics.summary import summarise
from specviz.metrics.sweep import Point, Sample
from specviz.traces.diff import compare
from specviz.traces.schema import Trace
from specviz.views.spelling import quote
from specviz.words import _, ngettext

PLAIN = "none"
Traces = Mapping[tuple[str, str], Trace]  # by scheme and prompt


def columns() -> tuple[str, ...]:
    """Return the heads of the table."""
    return (
        _("Scheme"),
        _("Rounds"),
        "E[L]",
        _("Acceptance"),
        _("ms/token"),
        _("Speedup"),
        _("Interval"),
        _("Same text"),
    )


def rows(
    points: Sequence[Point], samples: Sequence[Sample], traces: Traces
) -> list[tuple[str, ...]]:
    """Return plain decoding and every scheme: rounds, acceptance, time, speedup, its text."""
    plain = (title(PLAIN), _rounds(samples, PLAIN), "1.00", "-", _pace(samples, PLAIN), "1.00x")
    return [(*plain, "-", "-"), *(_row(p, samples, traces) for p in points)]


def _row(point: Point, samples: Sequence[Sample], traces: Traces) -> tuple[str, ...]:
    scheme, rate = point.cell.scheme, point.acceptance_rate
    return (
        title(scheme),
        _rounds(samples, scheme),
        f"{point.acceptance_length:.2f}",
        "-" if rate is None else f"{rate:.0%}",
        _pace(samples, scheme),
        f"{point.speedup:.2f}x",
        f"{point.low:.2f}-{point.high:.2f}" + (_(", busy machine") if point.busy else ""),
        same_text(point, traces),
    )


def _rounds(samples: Sequence[Sample], scheme: str) -> str:
    first = [s for s in samples if s.cell.scheme == scheme and s.repeat == 0]
    return str(sum(s.rounds for s in first))


def _pace(samples: Sequence[Sample], scheme: str) -> str:
    return f"{1000 * median(s.tpot for s in samples if s.cell.scheme == scheme):.1f}"


def same_text(point: Point, traces: Traces) -> str:
    """Say whether the output is plain decoding's; if not, whether by a near tie or a bug."""
    if point.same_text is None:
        return _("sampled: in distribution")
    if point.same_text:
        return _("identical")
    found = [trace.lossless for _prompt, trace in _parted(point.cell.scheme, traces)]
    kinds = [report.kind for report in found if report]
    if "BUG" in kinds:
        return _("BUG")
    if kinds and set(kinds) == {"near-tie"}:
        return ngettext("near tie on {n} prompt", "near ties on {n} prompts", len(kinds)).format(
            n=len(kinds)
        )
    return _("differs")


def departures(points: Sequence[Point], traces: Traces) -> list[str]:
    """Return a sentence for every greedy text that left plain decoding's."""
    return [
        _departure(title(p.cell.scheme), prompt, trace, traces[PLAIN, prompt])
        for p in points
        if p.same_text is False
        for prompt, trace in _parted(p.cell.scheme, traces)
    ]


def alarms(points: Sequence[Point], traces: Traces) -> list[str]:
    """Return what is wrong with a drafter over all prompts; that it is slow, the verdict says."""
    found: list[str] = []
    for scheme in (p.cell.scheme for p in points):
        rounds = [r for (name, _prompt), trace in traces.items() if name == scheme
                  for r in trace.rounds]  # fmt: skip
        about_drafts = (
            a for a in judge(summarise(rounds)) if a.kind in ("dead", "timid", "silent")
        )
        found += (f"{title(scheme)}: {alarm.sentence}" for alarm in about_drafts)
    return found


def _parted(scheme: str, traces: Traces) -> Iterator[tuple[str, Trace]]:
    for (name, prompt), trace in traces.items():
        plain = traces.get((PLAIN, prompt))
        if name == scheme and plain is not None and plain.output != trace.output:
            yield prompt, trace


def _departure(scheme: str, prompt: str, trace: Trace, plain: Trace) -> str:
    report = trace.lossless
    name = _(trace.title) or prompt
    if report is None or report.plain_token is None or report.token is None:
        parted = compare(plain, trace).divergence
        text = _("{scheme} on {prompt}: the text leaves plain decoding's at output token {n}.")
        return text.format(scheme=scheme, prompt=name, n=parted.left.index if parted else 0)
    text = _(
        "{scheme} on {prompt}: at output token {n} it wrote {ours}, plain decoding {theirs} with "
        "a logit {margin} above. {verdict}"
    )
    return text.format(
        scheme=scheme,
        prompt=name,
        n=report.first_divergence,
        ours=quote(trace.pieces, report.token),
        theirs=quote(trace.pieces, report.plain_token),
        margin=f"{report.margin or 0:.3g}",
        verdict=_verdict(report),
    )


def _verdict(report: LosslessReport) -> str:
    tolerance = f"{report.tolerance or 0:.3g}"
    if report.kind == "near-tie":
        text = _("A near tie: rounding may turn what is less than {tolerance} apart in this dtype.")
    else:
        text = _("A bug: rounding turns no more than {tolerance} in this dtype.")
    return text.format(tolerance=tolerance)
