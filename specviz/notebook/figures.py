"""Figures that say in words what they show, readable in any viewer.

An Altair chart becomes an SVG picture inside the notebook: it needs no script and no network. A
Plotly figure stays alive in JupyterLab and is a table elsewhere.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from specviz.notebook.table import table
from specviz.views import theme
from specviz.views.hardware_drawn import Drawn
from specviz.views.html import Markup, tag

if TYPE_CHECKING:
    from specviz.views.hardware_drawn import Altair

Json = dict[str, object]
WIDTH = 480  # pixels
PLOTLY = "application/vnd.plotly.v1+json"


class Figure:
    """A chart, the sentence that says what it shows, and its numbers."""

    def __init__(self, chart: object, says: str, rows: Markup) -> None:
        self.chart, self.says, self.rows = chart, says, rows

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Json:
        caption = tag("figcaption", self.says)
        bundle: Json = {"text/plain": self.says, "text/html": tag("figure", self.rows, caption)}
        if hasattr(self.chart, "to_plotly_json"):
            return bundle | {PLOTLY: _plotly(self.chart)}
        picture = _picture(self.chart)
        if picture is None:
            return bundle
        source = f"data:image/svg+xml;base64,{base64.b64encode(picture.encode()).decode()}"
        image = tag("img", src=source, alt=self.says, style="max-width:100%;background:#fff")
        return bundle | {
            "text/html": tag("figure", image, caption, style="margin:0"),
            "image/svg+xml": picture,
        }


def draw(
    chart: "Drawn | Altair | object",
    says: str = "",
    columns: Sequence[str] = (),
    rows: Sequence[Sequence[object]] = (),
) -> Figure:
    """Return a figure to end a cell with.

    Args:
        chart: one of the app's charts, an Altair chart or a Plotly figure.
        says: what it shows, in a sentence; the app's charts bring their own.
        columns: heads of the table that stands in where no picture can be shown.
        rows: its numbers.
    """
    if isinstance(chart, Drawn):
        return Figure(chart.chart, says or chart.reading, table(chart.columns, chart.rows))
    return Figure(chart, says, table(columns, rows))


def _plotly(figure: object) -> Mapping[str, object]:
    plain: Mapping[str, object] = figure.to_plotly_json()  # type: ignore[attr-defined]
    return plain


def _picture(chart: object) -> str | None:
    """Return the chart as SVG, None where vl-convert is not installed."""
    try:
        import vl_convert
    except ImportError:
        return None
    picture: str = vl_convert.vegalite_to_svg(_dressed(chart.to_dict()))  # type: ignore[attr-defined]
    return picture


def _dressed(spec: Json) -> Json:
    """Add the page's colours, which stay apart for colour-blind readers, and a readable size."""
    config = spec.setdefault("config", {})
    assert isinstance(config, dict)
    config.setdefault("range", {}).setdefault("category", list(theme.HUES))
    config.setdefault("mark", {}).setdefault("color", theme.HUES[0])
    for part in ("axis", "legend"):
        config[part] = {"labelFontSize": 12, "titleFontSize": 12} | config.get(part, {})
    if "mark" in spec or "layer" in spec:
        spec.setdefault("width", WIDTH)
    return spec
