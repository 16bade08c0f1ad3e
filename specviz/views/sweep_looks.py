"""One look per scheme, the same in every chart of Sweep and Compare."""

from collections.abc import Iterable
from dataclasses import dataclass

import altair as alt

from specviz.cost.reasons import title
from specviz.views.hardware_drawn import QUIET, looks

ORDER = ("ngram", "suffix", "eagle3", "mtp", "dflash", "dspark", "draft_model")
PLAIN = "none"


@dataclass(frozen=True, slots=True)
class Looks:
    """Names of schemes in a fixed order, and the scales that give each its look."""

    names: list[str]
    hues: list[str]
    dashes: list[list[int]]
    shapes: list[str]

    @property
    def color(self) -> alt.Color:
        # Symbols without an outline: it would be dashed as the scheme's line is.
        return self._color(alt.Legend(orient="bottom", columns=3, title=None, symbolStrokeWidth=0))

    @property
    def line_color(self) -> alt.Color:
        """For charts of lines alone."""
        return self._color(alt.Legend(orient="bottom", columns=3, title=None, symbolStrokeWidth=3))

    def _color(self, legend: alt.Legend) -> alt.Color:
        scale = alt.Scale(domain=self.names, range=self.hues)
        return alt.Color("scheme:N", scale=scale, legend=legend)

    @property
    def shape(self) -> alt.Shape:
        scale = alt.Scale(domain=self.names, range=self.shapes)
        return alt.Shape("scheme:N", scale=scale, legend=None)

    @property
    def dash(self) -> alt.StrokeDash:
        scale = alt.Scale(domain=self.names, range=self.dashes)
        return alt.StrokeDash("scheme:N", scale=scale, legend=None)


def scheme_looks(schemes: Iterable[str]) -> Looks:
    """Return the looks of these schemes; plain decoding comes first and is quiet."""
    known = set(schemes)
    hues, dashes, shapes = looks(ORDER)
    rows = [(PLAIN, QUIET, [2, 3], "square"), *zip(ORDER, hues, dashes, shapes, strict=True)]
    there = [row for row in rows if row[0] in known]
    return Looks(
        [title(row[0]) for row in there],
        [row[1] for row in there],
        [row[2] for row in there],
        [row[3] for row in there],
    )
