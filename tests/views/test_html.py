"""Escaping happens in one place and cannot be forgotten."""

import re
from html import unescape

import pytest

from specviz.views.html import Markup, chart_text, escape, join, tag, visible
from tests.views.stories import HOSTILE


@pytest.mark.parametrize("text", HOSTILE)
def test_i3_text_in_content_and_attributes_is_inert_and_complete(text):
    element = tag("span", text, title=text)
    assert set(re.findall(r"<(/?\w+)", element)) == {"span", "/span"}
    content, title = re.fullmatch(
        r'<span title="([^"]*)">([^<]*)</span>', element, re.DOTALL
    ).group(2, 1)
    assert (unescape(content), unescape(title)) == (text, text)


def test_markup_passes_and_strings_are_escaped():
    assert join(Markup("<b>"), "<b>") == "<b>&lt;b&gt;"
    assert tag("p", tag("b", "x"), "<") == "<p><b>x</b>&lt;</p>"
    assert isinstance(escape("<"), Markup)


def test_attribute_names_are_written_the_html_way():
    assert tag("p", class_="a", aria_label="b", hidden=None) == '<p class="a" aria-label="b"></p>'
    assert tag("img", width=1.5, height=2) == '<img width="1.5" height="2"/>'


def test_white_space_and_control_characters_are_drawn():
    assert visible("a b\n\t\x1b") == "a·b↵⇥␛"


def test_chart_text_cannot_start_a_formula_or_a_tag():
    assert chart_text("$x$ <b>") == "&#36;x&#36;·&lt;b&gt;"
