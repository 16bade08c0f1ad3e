"""Rounds as CSV: numbers and token ids, no text, so no spreadsheet takes a token for a formula."""

import csv
import io
from dataclasses import fields

from specviz.events import Round, Timing
from specviz.traces.schema import Trace

PHASES = (*(field.name for field in fields(Timing)), "other")
COLUMNS = (
    "round",
    "start",
    "scheme",
    "budget",
    "drafted",
    "accepted",
    "acceptance_length",
    "last_kind",
    "draft_ids",
    "parents",
    "fates",
    "committed_ids",
    *(f"{phase}_ms" for phase in PHASES),
)


def rounds_csv(trace: Trace) -> str:
    """Return one line for each round, a heading first; lists inside a cell have spaces."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(map(_row, trace.rounds))
    return out.getvalue()


def _row(event: Round) -> list[str | int | float]:
    return [
        event.index,
        event.start,
        event.scheme,
        event.budget,
        len(event.draft),
        len(event.path),
        event.acceptance_length,
        event.last_kind,
        _list(event.draft.tokens),
        _list(event.draft.parents),
        " ".join(event.fates),
        _list(event.committed),
        *(round(1000 * getattr(event.timing, phase), 6) for phase in PHASES),
    ]


def _list(values: tuple[int, ...]) -> str:
    return " ".join(map(str, values))
