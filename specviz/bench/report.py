"""Measurements as a table for people, as Markdown and as JSON."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from specviz.bench.overhead import Overhead
from specviz.bench.speed import AgainstPeer, AgainstPlain
from specviz.bench.spread import Spread
from specviz.traces.schema import Environment

# The columns llama.cpp's and ik_llama.cpp's speculative benches agree on.
PLAIN_COLUMNS = (
    "task",
    "run",
    "tokens",
    "stop",
    "tok/s",
    "speedup",
    "rounds",
    "accepted",
    "rate",
    "a.len",
    "pos accept",
    "same text",
)
PEER_COLUMNS = (
    "task",
    "tokens",
    "ours tok/s",
    "peer tok/s",
    "ratio",
    "ratio with prefill",
    "same tokens",
)
OVERHEAD_COLUMNS = ("detail", "paired runs", "recording alone", "allowed")
POSITIONS = 4  # of "pos accept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything one call of `bench` measured, and where."""

    date: str
    environment: Environment
    model: str
    repeats: int
    draft_length: int
    load: float | None  # load average of the machine when the measuring began
    peers: tuple[AgainstPeer, ...] = ()
    schemes: tuple[AgainstPlain, ...] = ()
    overheads: tuple[Overhead, ...] = ()

    @property
    def busy(self) -> bool:
        """Whether some spread is too wide to believe the medians."""
        ratios = [row.ratio for row in self.peers] + [row.speedup for row in self.schemes]
        return any(spread.busy for spread in ratios)

    @property
    def heading(self) -> str:
        env = self.environment
        return (
            f"{self.model}, {env.device_name}, {env.dtype}, {env.threads} threads, batch 1, "
            f"{self.date}, torch {env.torch}, transformers {env.transformers}, "
            f"specviz {env.specviz}; medians of {self.repeats} (lowest-highest), greedy, "
            "prefill excluded unless said"
        )


def load_average() -> float | None:
    """Return how many processes wanted a core in the last minute; None where nobody counts."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def as_json(report: Report) -> str:
    """Return the report as one JSON object."""
    known = asdict(report) | {"busy": report.busy}
    known["schemes"] = [
        asdict(row)
        | {
            "acceptance_length": row.summary.acceptance_length,
            "acceptance_rate": row.summary.acceptance_rate,
            "per_position": row.summary.per_position,
            "hit_rate": row.summary.hit_rate,
        }
        for row in report.schemes
    ]
    return json.dumps(known, allow_nan=False)


def as_text(report: Report, *, markdown: bool = False) -> str:
    """Return the report as aligned tables, or as Markdown to paste."""
    parts = [report.heading]
    if report.peers:
        parts.append(f"Plain decoding, ours against {report.peers[0].peer}")
        parts.append(table(PEER_COLUMNS, [_peer(row) for row in report.peers], markdown))
    if report.schemes:
        parts.append(f"Drafters against our own plain decoding, D = {report.draft_length}")
        parts.append(table(PLAIN_COLUMNS, [_plain(row) for row in report.schemes], markdown))
    if report.overheads:
        parts.append("What recording costs, as a share of the run")
        rows = [_overhead(row) for row in report.overheads]
        parts.append(table(OVERHEAD_COLUMNS, rows, markdown))
    if report.busy:
        parts.append(
            "BUSY MACHINE: repeats lie far apart, so these numbers are not to be believed; "
            "measure again when nothing else runs."
        )
    return "\n\n".join(parts)


def _peer(row: AgainstPeer) -> tuple[str, ...]:
    return (
        row.prompt_class,
        str(row.tokens),
        row.ours.text(),
        row.theirs.text(),
        row.ratio.text(2),
        row.ratio_with_prefill.text(2),
        f"{row.same}/{row.tokens}",
    )


def _plain(row: AgainstPlain) -> tuple[str, ...]:
    summary = row.summary
    return (
        row.prompt_class,
        row.scheme,
        str(summary.output_tokens),
        row.stop,
        row.rate.text(),
        row.speedup.text(2),
        str(summary.rounds),
        f"{summary.accepted}/{summary.drafted}",
        _ratio(summary.acceptance_rate),
        _ratio(summary.acceptance_length),
        " ".join(f"{share:.2f}" for share in summary.per_position[:POSITIONS]) or "n/a",
        "yes" if row.same else "NO",
    )


def _overhead(row: Overhead) -> tuple[str, ...]:
    return (row.detail, _percent(row.paired), _percent(row.recorded), f"{100 * row.allowed:.0f}%")


def _percent(spread: Spread) -> str:
    return f"{100 * spread.median:.1f}% ({100 * spread.low:.1f} to {100 * spread.high:.1f})"


def _ratio(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.2f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], markdown: bool) -> str:
    """Return lines of aligned columns, or a table of Markdown."""
    if markdown:
        lines = [head, ["---"] * len(head), *rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)
    widths = [max(len(line[i]) for line in (head, *rows)) for i in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in (head, *rows)
    )
