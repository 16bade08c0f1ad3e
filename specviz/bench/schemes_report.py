"""What the schemes measured: acceptance, speed and time by scheme, as text, Markdown and JSON."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import quantiles

from specviz.bench.report import table
from specviz.bench.schemes import Plan, best_lengths, rates_by_length
from specviz.bench.schemes_record import PLAIN, Head, Record, Sample, Visit, pool
from specviz.bench.spread import Spread
from specviz.metrics import Alarm, Speedups, Summary, judge, speedups
from specviz.metrics.speed import Clock

ALL = "all"
BUSY_SHARE = 0.1  # of decodes that found the machine busy: more, and the medians are doubted
PHASES = ("draft", "score", "verify", "commit", "other")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One scheme on one class of prompts, or on all; times exclude prefill unless said.

    `speedup` is of all tokens together, one value per repeat; `by_prompt` holds the quartiles of
    single decodes against the plain one beside them.
    """

    label: str
    draft_length: int
    kind: str
    rate: float  # tokens per second
    speedup: Spread
    with_prefill: float | None
    by_prompt: tuple[float, float, float]
    summary: Summary
    lossless: Mapping[str, int]
    alarms: tuple[Alarm, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Everything one measurement found."""

    head: Head
    plan: Plan
    rows: tuple[Row, ...]
    rates: Mapping[str, Mapping[int, float]]  # of the first phase, tokens per second
    busy: bool

    def of(self, label: str, kind: str = ALL) -> Row:
        """Return one row."""
        return next(row for row in self.rows if (row.label, row.kind) == (label, kind))


def results(plan: Plan, record: Record) -> Results:
    """Sum up a record, as far as it goes."""
    full = [visit for visit in record.visits if visit.phase == "full"]
    kinds = (ALL, *dict.fromkeys(prompt.kind for prompt in plan.prompts))
    lengths = {PLAIN: 0} | best_lengths(plan, record.visits)
    rows = []
    for kind in kinds:
        some = [visit for visit in full if kind in (ALL, visit.kind)]
        if some:
            rows += [_row(label, d, kind, some) for label, d in lengths.items()]
    rates = rates_by_length(record.visits)
    return Results(head=record.head, plan=plan, rows=tuple(rows), rates=rates, busy=_busy(full))


def _row(label: str, length: int, kind: str, visits: Sequence[Visit]) -> Row:
    pairs = [(visit.repeat, _of(visit, PLAIN), _of(visit, label)) for visit in visits]
    samples = [sample for _repeat, _plain, sample in pairs]
    summary = pool([sample.summary for sample in samples])
    repeats = sorted({repeat for repeat, _plain, _sample in pairs})
    each = [_speedups([p for p in pairs if p[0] == repeat]) for repeat in repeats]
    single = [_speedups([pair]).decode_only or 0.0 for pair in pairs]
    plain = pool([sample.summary for _repeat, sample, _other in pairs])
    return Row(
        label=label,
        draft_length=length,
        kind=kind,
        rate=summary.output_tokens / sum(sample.seconds for sample in samples),
        speedup=Spread.of(one.decode_only or 0.0 for one in each),
        with_prefill=_speedups(pairs).with_prefill,
        by_prompt=_quartiles(single),
        summary=summary,
        lossless=dict(Counter(sample.lossless for sample in samples)),
        alarms=() if label == PLAIN else judge(summary, plain.tpot),
    )


def _speedups(pairs: Sequence[tuple[int, Sample, Sample]]) -> Speedups:
    return speedups(
        _clock([plain for _repeat, plain, _sample in pairs]),
        _clock([sample for _repeat, _plain, sample in pairs]),
    )


def _clock(samples: Sequence[Sample]) -> Clock:
    tokens = sum(sample.summary.output_tokens for sample in samples)
    seconds, prefill = (sum(getattr(s, name) for s in samples) for name in ("seconds", "prefill"))
    return Clock(tokens, seconds, prefill)


def _of(visit: Visit, label: str) -> Sample:
    return next(sample for sample in visit.samples if sample.label == label)


def _quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return low, middle, high


def _busy(visits: Sequence[Visit]) -> bool:
    """Whether equal passes or equal decodes took unequal times too often."""
    samples = [sample for visit in visits for sample in visit.samples]
    times: dict[tuple[str, str], list[float]] = {}
    for visit in visits:
        for sample in visit.samples:
            times.setdefault((visit.prompt, sample.label), []).append(
                sample.seconds / sample.summary.output_tokens
            )
    wide = sum(Spread.of(found).busy for found in times.values())
    uneven = sum(sample.busy for sample in samples)
    return wide > BUSY_SHARE * len(times) or uneven > BUSY_SHARE * len(samples)


def as_json(found: Results) -> str:
    """Return everything as one JSON object."""
    rows = [
        asdict(row)
        | {
            "acceptance_length": row.summary.acceptance_length,
            "acceptance_rate": row.summary.acceptance_rate,
            "per_position": row.summary.per_position,
            "mean_ms": _milliseconds(row.summary),
        }
        for row in found.rows
    ]
    known = {
        "date": found.head.date,
        "model": found.head.model,
        "environment": asdict(found.head.environment),
        "load": found.head.load,
        "drafts": dict(found.head.drafts),
        "plan": asdict(found.plan),
        "probe_rates": found.rates,
        "busy": found.busy,
        "rows": rows,
    }
    return json.dumps(known, allow_nan=False)


def as_text(found: Results, *, markdown: bool = False) -> str:
    """Return the tables: overall, E[L] and speedup by class, and the search for the best D."""
    kinds = list(dict.fromkeys(row.kind for row in found.rows))
    labels = list(dict.fromkeys(row.label for row in found.rows))
    parts = [_heading(found)]
    head = ("scheme", "D", "E[L]", "speedup", "by prompt", "with prefill", "tok/s", "rate")
    columns = (*head, "pos accept", "draft/score/verify/commit/other ms", "lossless")
    parts.append(table(columns, [_overall(found.of(label)) for label in labels], markdown))
    parts.append("E[L] (the target's own token included) and speedup by class")
    parts.append(table(("scheme", *kinds), [_kinds(found, n, kinds) for n in labels], markdown))
    if found.rates:
        parts.append("Tokens per second by D, on the prompts the best D was looked for on")
        lengths = sorted({d for rates in found.rates.values() for d in rates})
        lines = [
            (label, *(f"{rates[d]:.1f}" if d in rates else "" for d in lengths))
            for label, rates in found.rates.items()
        ]
        parts.append(table(("scheme", *map(str, lengths)), lines, markdown))
    for label in labels:
        parts += [f"{label}: {alarm.sentence}" for alarm in found.of(label).alarms]
    if found.busy:
        parts.append(
            "BUSY MACHINE: equal work took unequal times, so the speeds are not to be believed; "
            "measure again when nothing else runs. E[L] stands."
        )
    return "\n\n".join(parts)


def _heading(found: Results) -> str:
    head, env, params = found.head, found.head.environment, found.plan.params
    sampling = "greedy" if params.greedy else f"temperature {params.temperature:g}"
    load = "" if head.load is None else f"load {head.load:.1f} before, "
    return (
        f"{head.model}, {env.device_name}, {env.dtype}, {env.threads} threads, batch 1, "
        f"{head.date}, {load}torch {env.torch}, transformers {env.transformers}, specviz "
        f"{env.specviz}; measured on {len(found.plan.prompts)} prompts x {found.plan.repeats} "
        f"repeats, up to {params.max_tokens} tokens, {sampling}, prefill excluded unless said; "
        "speedup: median of repeats (lowest-highest); by prompt: median (quartiles)"
    )


def _overall(row: Row) -> tuple[str, ...]:
    low, middle, high = row.by_prompt
    rate = row.summary.acceptance_rate
    return (
        row.label,
        str(row.draft_length),
        f"{row.summary.acceptance_length or 0:.2f}",
        row.speedup.text(2),
        f"{middle:.2f} ({low:.2f}-{high:.2f})",
        "n/a" if row.with_prefill is None else f"{row.with_prefill:.2f}",
        f"{row.rate:.1f}",
        "n/a" if rate is None else f"{rate:.2f}",
        " ".join(f"{share:.2f}" for share in row.summary.per_position) or "n/a",
        " / ".join(f"{ms:.1f}" for ms in _milliseconds(row.summary).values()),
        ", ".join(f"{n} {kind}" for kind, n in row.lossless.items()),
    )


def _milliseconds(summary: Summary) -> dict[str, float]:
    """Mean time of a round by phase."""
    return {name: 1000 * float(getattr(summary.mean_timing, name)) for name in PHASES}


def _kinds(found: Results, label: str, kinds: Sequence[str]) -> tuple[str, ...]:
    rows = [found.of(label, kind) for kind in kinds]
    cells = [f"{r.summary.acceptance_length or 0:.2f}, {r.speedup.median:.2f}x" for r in rows]
    return (label, *cells)
