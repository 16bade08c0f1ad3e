"""The language follows the browser, can be chosen on every page, and stays in the address."""

import pytest
from playwright.sync_api import expect

PAGES = ("", "compare", "sweep", "hardware", "traces", "learn")


@pytest.fixture
def brazilian(browser):
    context = browser.new_context(locale="pt-BR", viewport={"width": 1440, "height": 1000})
    page = context.new_page()
    page.set_default_timeout(90_000)
    yield page
    context.close()


def choose(page, name):
    page.locator(".st-key-language-choice").get_by_role("combobox").click()
    page.get_by_role("option", name=name).click()


def test_the_browser_is_answered_in_its_language_until_another_is_chosen(server, brazilian):
    page = brazilian
    page.goto(server)
    run = page.get_by_role("button", name="Executar ao vivo")
    run.wait_for()
    assert "lang" not in page.url
    length = page.get_by_role("spinbutton", name="Comprimento do draft D")
    length.fill("3")
    length.press("Enter")
    page.wait_for_url("**/*D=3*")
    page.get_by_role("combobox", name="Drafter").click()
    page.get_by_role("option", name="Decodificação por sufixo").click()
    page.wait_for_url("**/*scheme=suffix*")
    choose(page, "English")
    page.get_by_role("button", name="Run live").wait_for()
    expect(run).to_have_count(0)
    # what was set, stays
    expect(page.get_by_role("spinbutton", name="Draft length D")).to_have_value("3")
    expect(page.get_by_role("combobox", name="Drafter")).to_have_value("Suffix decoding")
    page.wait_for_url("**/*lang=en*")
    page.get_by_test_id("stTopNavLink").filter(
        has_text="Learn"
    ).click()  # another page: no settings, the language stays
    page.get_by_role("heading", name="Learn", exact=True).wait_for()
    page.wait_for_url("**/learn?lang=en")
    page.get_by_role("button", name="Next").click()  # a fragment, which runs without app.py
    expect(page.get_by_text("Stop 2 of 12")).to_be_visible()
    page.reload()
    page.get_by_role("heading", name="Learn", exact=True).wait_for()
    choose(page, "Português")
    page.get_by_role("heading", name="Aprender").wait_for()
    page.get_by_role("button", name="Avançar").click()
    expect(page.get_by_text("Parada 2 de 12")).to_be_visible()


@pytest.mark.parametrize("width", [1440, 390])
def test_the_choice_hides_nothing_and_words_fit(server, browser, width):
    context = browser.new_context(locale="pt-BR", viewport={"width": width, "height": 900})
    page = context.new_page()
    page.set_default_timeout(90_000)
    for name in PAGES:
        page.goto(f"{server}/{name}")
        chooser = page.locator(".st-key-language-choice")
        chooser.wait_for()
        expect(chooser.get_by_role("combobox")).to_have_value("Português")
        box = chooser.bounding_box()
        assert box["y"] + box["height"] <= 60  # in the bar
        assert box["x"] + box["width"] <= width
        for link in page.get_by_test_id("stTopNavLink").all():
            other = link.bounding_box()
            assert other is None or other["x"] + other["width"] <= box["x"], name
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    context.close()


def test_a_link_with_an_unknown_language_is_read_in_the_browsers_own(server, brazilian):
    brazilian.goto(f"{server}/learn?lang=tlh")
    brazilian.get_by_role("heading", name="Aprender", exact=True).wait_for()
