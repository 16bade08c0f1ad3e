"""A chart with everything that must come with it: its reading in words, alt text, table twin."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specviz.views import theme

if TYPE_CHECKING:
    from altair import Chart, FacetChart, LayerChart
    from plotly.graph_objects import Figure

    Layers = LayerChart | FacetChart  # what altair says that `layer` returns
    Altair = Layers | Chart

# One look per series, in the order they come: a hue of the page's palette, a dash and a shape, so
# that no reader needs the hue.
HUES = theme.HUES
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 2], [1, 3], [10, 4])
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "circle")
QUIET = theme.NEUTRAL  # rules and marks that belong to no series


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """One chart. `name` is its key on the page and the name of its file; rows are its table."""

    name: str
    title: str
    chart: "Altair | Figure"
    reading: str
    alt: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def csv(self) -> str:
        """The table as a file."""
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return out.getvalue()


def looks(names: Sequence[str]) -> tuple[list[str], list[list[int]], list[str]]:
    """Return hue, dash and shape of each series."""
    n = len(names)
    return (
        [HUES[i % len(HUES)] for i in range(n)],
        [list(DASHES[i % len(DASHES)]) for i in range(n)],
        [SHAPES[i % len(SHAPES)] for i in range(n)],
    )
