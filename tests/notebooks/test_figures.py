"""Figures of notebooks: a picture with words, numbers where there can be no picture."""

import base64
import re
import sys

import altair as alt
import pytest

from specviz.notebook import draw
from specviz.views import theme
from specviz.views.sweep_verify import verify_chart

BARS = alt.Chart(alt.InlineData(values=[{"a": "x", "n": 1}, {"a": "y", "n": 2}]))
HOSTILE = '"><script>alert(1)</script>'


@pytest.fixture
def bars():
    return BARS.mark_bar().encode(x="n:Q", y="a:N", color="a:N")


def bundle(figure):
    return figure._repr_mimebundle_()


def test_a_chart_is_a_picture_with_a_caption(bars):
    found = bundle(draw(bars, "y is twice x."))
    assert set(found) == {"text/plain", "text/html", "image/svg+xml"}
    assert found["text/plain"] == "y is twice x."
    assert 'alt="y is twice x."' in found["text/html"]
    assert "<figcaption>y is twice x.</figcaption>" in found["text/html"]
    encoded = re.search(r"base64,([^\"]+)", found["text/html"])[1]
    assert base64.b64decode(encoded).decode() == found["image/svg+xml"]


def test_a_picture_asks_for_nothing_and_has_the_colours_of_the_app(bars):
    picture = bundle(draw(bars))["image/svg+xml"]
    assert not re.search(r"<script|href=\"http|@import|url\(http", picture)
    assert theme.HUES[0] in picture.lower()
    assert theme.HUES[1] in picture.lower()


def test_what_a_figure_says_is_text(bars):
    html = bundle(draw(bars, HOSTILE))["text/html"]
    assert "<script" not in html


def test_a_chart_of_the_app_brings_its_reading_and_its_numbers(monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    drawn = verify_chart({"model": {1: 1.0, 8: 1.25}})
    found = bundle(draw(drawn))
    assert set(found) == {"text/plain", "text/html"}
    assert found["text/plain"] == drawn.reading
    assert "<td>1.250</td>" in found["text/html"]


def test_a_plotly_figure_stays_alive_and_is_a_table_elsewhere():
    from plotly.graph_objects import Bar, Figure

    found = bundle(draw(Figure([Bar(y=[1, 2])]), "Two bars.", ("n", "y"), [(1, 1.0), (2, 2.0)]))
    assert found["application/vnd.plotly.v1+json"]["data"][0]["type"] == "bar"
    assert "<th>n</th>" in found["text/html"]


def test_a_chart_is_not_changed_by_being_drawn(bars):
    before = bars.to_dict()
    bundle(draw(bars))
    assert bars.to_dict() == before
