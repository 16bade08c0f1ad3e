"""Colours: readable in both themes and never alone."""

import re
from pathlib import Path

import pytest

from specviz.views import theme

SCHEMES: tuple[theme.Scheme, ...] = ("light", "dark")
KINDS = list(theme.STYLES)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kind", KINDS)
def test_text_on_every_tint_reads_at_4_5_to_1(kind, scheme):
    tint = theme.STYLES[kind].tint.on(scheme)
    assert theme.contrast(tint, theme.INK.on(scheme)) >= 4.5


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kind", KINDS)
def test_underlines_and_strikes_stand_out_from_their_tint_at_3_to_1(kind, scheme):
    style = theme.STYLES[kind]
    assert theme.contrast(style.tint.on(scheme), style.edge.on(scheme)) >= 3


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("ground", [theme.PAPER, theme.PANEL, theme.NOW], ids=repr)
def test_quiet_text_reads_on_every_ground(ground, scheme):
    assert theme.contrast(ground.on(scheme), theme.QUIET.on(scheme)) >= 4.5
    assert theme.contrast(ground.on(scheme), theme.FOCUS.on(scheme)) >= 3


def test_contrast_is_that_of_wcag():
    assert theme.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert theme.contrast("#0072b2", "#ffffff") == pytest.approx(5.19, abs=0.01)
    assert theme.contrast("#777777", "#777777") == 1


def test_every_fate_has_a_second_cue_of_its_own():
    kinds = ("accepted", "rejected", "unchecked", "past_end", "pending", "recovered", "bonus")
    cues = [(theme.STYLES[k].line, theme.STYLES[k].mark) for k in kinds]  # type: ignore[index]
    assert len(set(cues)) == len(cues)
    assert ("", "") not in cues


def test_codes_are_single_letters_and_distinct():
    codes = [style.code for style in theme.STYLES.values()]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch("[a-z]", code) for code in codes)


def test_every_kind_has_a_word_and_a_sentence():
    words = {theme.label(kind) for kind in KINDS}
    assert len(words) == len(KINDS)
    assert all(theme.meaning(kind).endswith(".") for kind in KINDS)


def test_colours_live_in_theme_alone():
    root = Path(theme.__file__).parents[1]
    files = [*(root / "views").glob("*.py"), *(root / "ui").rglob("*.[jc]s*")]
    assert len(files) > 5
    for path in files:
        if path.name != "theme.py":
            found = re.findall(r"(?<!\w)#(?:[0-9a-f]{6}|[0-9a-f]{3})\b|rgba?\(", path.read_text())
            assert not found, f"{path.name}: {found}"


def test_style_sheet_defines_each_colour_for_light_and_dark():
    sheet = theme.css_variables()
    for style in theme.STYLES.values():
        assert f"--sv-tint-{style.code}:light-dark({style.tint.light},{style.tint.dark});" in sheet
        assert f"--sv-tint-{style.code}:{style.tint.light};" in sheet
