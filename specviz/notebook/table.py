"""A table as HTML."""

from collections.abc import Sequence

from specviz.views.html import NOTHING, Markup, tag


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Markup:
    """Return a table; numbers are written with three digits, nothing if there are no rows."""
    if not rows:
        return NOTHING
    head = tag("tr", *(tag("th", name) for name in columns))
    body = (tag("tr", *(tag("td", _written(cell)) for cell in row)) for row in rows)
    return tag("table", tag("thead", head), tag("tbody", *body))


def _written(cell: object) -> str:
    return f"{cell:.3g}" if isinstance(cell, float) else str(cell)
