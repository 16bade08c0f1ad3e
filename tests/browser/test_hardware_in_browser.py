"""The Hardware fit page in a real browser: light, dark and phone width."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def opened(tab, server, query="", **shape):
    one = tab(**shape)
    one.page.goto(f"{server}/hardware{query}")
    expect(one.page.get_by_role("heading", name="Hardware fit")).to_be_visible()
    return one


def fits(page):
    """No part of the page is wider than the page."""
    main = page.locator("[data-testid=stMain]")
    return main.evaluate("node => node.scrollWidth - node.clientWidth") <= 1


def complaints(tab):
    """What the console said, but for Streamlit's own tries at where its server lies."""
    return [said for said in tab.complaints if "404" not in said]


def charts_fit(page):
    """No chart reaches beyond the right edge of the window."""
    width = page.viewport_size["width"]
    for box in page.locator("canvas, .js-plotly-plot, svg.marks").all():
        place = box.bounding_box()
        assert place is None or place["x"] + place["width"] <= width + 1


def test_a_model_from_the_list_and_a_section_answer_and_stand_in_the_address(server, tab):
    one = opened(tab, server, "?model=Qwen3-32B&section=serve")
    page = one.page
    expect(page.get_by_text("Qwen3-32B on H200 SXM")).to_be_visible()
    expect(page.get_by_text("--speculative-dspark-block-size").first).to_be_visible()
    page.get_by_text("Operating point", exact=True).click()
    expect(page.get_by_text("Both are true").first).to_be_visible()
    expect(page).to_have_url(re.compile("model=Qwen3-32B.*section=operating"))
    one.shoot("hardware-operating-light")
    assert complaints(one) == []


@pytest.mark.parametrize(("scheme", "width"), [("light", 420), ("dark", 1440)])
def test_charts_fit_the_screen(server, tab, scheme, width):
    one = opened(tab, server, "?section=tiles", scheme=scheme, width=width)
    expect(one.page.get_by_text("Row tiles of real kernels")).to_be_visible()
    expect(one.page.locator(".js-plotly-plot")).to_be_visible()
    one.shoot(f"hardware-tiles-{scheme}-{width}")
    assert fits(one.page)
    charts_fit(one.page)
    assert complaints(one) == []
