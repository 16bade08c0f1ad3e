"""Every colour, and the second cue that goes with it: colour alone never carries meaning.

The hues are those of Okabe and Ito, which stay apart for colour-blind readers; tints carry the
text, edges draw underlines and strikes. Contrast is checked by a test.
"""

from dataclasses import dataclass
from typing import Literal

from specviz.words import _

# What a token of the pane can be. The last four kinds are the target's own token.
Kind = Literal[
    "accepted",
    "rejected",
    "unchecked",
    "past_end",
    "pending",
    "recovered",
    "bonus",
    "plain",
    "forced",
]
Scheme = Literal["light", "dark"]


@dataclass(frozen=True, slots=True)
class Shade:
    """One pair of colours, for light and for dark pages."""

    light: str
    dark: str

    def on(self, scheme: Scheme) -> str:
        return self.light if scheme == "light" else self.dark


@dataclass(frozen=True, slots=True)
class Style:
    """How one kind of token looks; `line` and `mark` say in shape what the colour says."""

    code: str  # names the kind in payloads and style sheets
    hue: str  # in charts
    tint: Shade
    edge: Shade
    line: str  # CSS text-decoration of the token, "" for none
    mark: str  # a sign beside the token, "" for none
    pattern: str = ""  # Plotly fill pattern


INK = Shade("#1a1a1a", "#f4f4f5")  # text on tints
QUIET = Shade("#52525b", "#b4b6bd")  # labels, prompt, round numbers
PAPER = Shade("#ffffff", "#0e1117")  # Streamlit's own page backgrounds
PANEL = Shade("#f7f7f8", "#181b22")
RULE = Shade("#dcdde1", "#343843")
FOCUS = Shade("#0072b2", "#7cc4f0")
NOW = Shade("#eef6fb", "#131f2b")  # behind the current round

_BLUE, _VERMILLION, _ORANGE, _PURPLE = "#0072b2", "#d55e00", "#e69f00", "#cc79a7"
_GREEN, _GREY = "#009e73", "#8a8d93"
# Charts of many series take them in this order; the last is for what belongs to none.
HUES = (_BLUE, _VERMILLION, _GREEN, _PURPLE, _ORANGE, "#56b4e9", _GREY)
NEUTRAL, PALE, WHITE, BLACK = _GREY, "#c3c7ce", "#ffffff", "#000000"
_GREY_TINT, _GREY_EDGE = Shade("#e8e8e8", "#2d3138"), Shade("#6b6e75", "#a3a7b0")

STYLES: dict[Kind, Style] = {
    "accepted": Style(
        "a", _BLUE, Shade("#cfe8f7", "#12374f"), Shade("#0072b2", "#6bbdf0"), "underline solid", ""
    ),
    "recovered": Style(
        "c",
        _ORANGE,
        Shade("#fff0c2", "#453c00"),
        Shade("#946200", "#f2b632"),
        "underline double",
        "",
        "/",
    ),
    "bonus": Style(
        "b", _PURPLE, Shade("#f3d9e8", "#4b2a3f"), Shade("#a34d7d", "#e8a6cb"), "", "+", "+"
    ),
    "rejected": Style(
        "r",
        _VERMILLION,
        Shade("#fbd9c2", "#5c2512"),
        Shade("#b84f00", "#ff9350"),
        "line-through solid",
        "\u00d7",
        "x",
    ),
    "unchecked": Style("u", _GREY, _GREY_TINT, _GREY_EDGE, "underline dotted", "", "."),
    "past_end": Style("e", _GREY, _GREY_TINT, _GREY_EDGE, "line-through dashed", "", "-"),
    "pending": Style("p", _GREY, _GREY_TINT, _GREY_EDGE, "underline dotted", "?", "."),
    "plain": Style("n", _GREY, Shade("#f4f4f5", "#20242c"), _GREY_EDGE, "", ""),
    "forced": Style(
        "f", _GREEN, Shade("#d3f0e4", "#0f3d30"), Shade("#007a58", "#3fcf9f"), "", "▸", "|"
    ),
}

# The decision panel: what p and q share is what may be accepted, what is left is drawn from.
SERIES: dict[str, tuple[str, str]] = {
    "q": (_GREY, "."),
    "p": (_GREEN, ""),
    "overlap": (_BLUE, ""),
    "residual": (_ORANGE, "/"),
}
# One round's time, in the order it is spent.
PARTS: dict[str, tuple[str, str]] = {
    "draft": (_ORANGE, "/"),
    "score": (_BLUE, ""),
    "verify": (_PURPLE, "x"),
    "commit": (_GREEN, "\\"),
    "other": (_GREY, "."),
}


def label(kind: Kind) -> str:
    """Return the word for a kind of token."""
    return {
        "accepted": _("accepted"),
        "rejected": _("rejected"),
        "unchecked": _("never checked"),
        "past_end": _("past the end"),
        "pending": _("drafted, not decided yet"),
        "recovered": _("recovered"),
        "bonus": _("bonus"),
        "plain": _("target's own"),
        "forced": _("forced by you"),
    }[kind]


def meaning(kind: Kind) -> str:
    """Return one sentence that explains a kind of token."""
    return {
        "accepted": _("A drafted token the target agreed to; it is part of the text."),
        "rejected": _("A drafted token the target refused."),
        "unchecked": _("A drafted token behind a refused one; nobody looked at it."),
        "past_end": _("A drafted token behind the end of the text; it does not count."),
        "pending": _("A drafted token; the target has not decided yet."),
        "recovered": _("The target's own token in place of the refused one."),
        "bonus": _("The target's own token after a draft without refusals."),
        "plain": _("The target's own token; nothing was drafted."),
        "forced": _("A token you put in by hand."),
    }[kind]


def css_variables() -> str:
    """Return a style sheet that defines every colour as a `--sv-*` property.

    `light-dark()` follows the `color-scheme` of the page, which Streamlit sets; older browsers get
    the light colours.
    """
    shades = {"ink": INK, "quiet": QUIET, "panel": PANEL, "rule": RULE, "focus": FOCUS, "now": NOW}
    shades |= {"paper": PAPER}
    for style in STYLES.values():
        shades |= {f"tint-{style.code}": style.tint, f"edge-{style.code}": style.edge}
    plain = "".join(f"--sv-{name}:{shade.light};" for name, shade in shades.items())
    both = "".join(
        f"--sv-{name}:light-dark({shade.light},{shade.dark});" for name, shade in shades.items()
    )
    test = "(color:light-dark(#000,#fff))"
    return "".join(
        (
            f".sv-root{{{plain}}}@supports {test}{{.sv-root{{{both}}}}}",
            *(_rules(style) for style in STYLES.values()),
        )
    )


def _rules(style: Style) -> str:
    """Return the style rules of one kind of token: tint, line and mark."""
    code = style.code
    line = f"text-decoration:{style.line} var(--sv-edge-{code});" if style.line else ""
    rules = f".sv-{code}{{background:var(--sv-tint-{code});color:var(--sv-ink);{line}}}"
    if style.mark:
        # a token that ends its line has its mark in front, or the mark would be on the next line
        rules += (
            f".sv-{code}:not(.sv-ends)::after,.sv-{code}.sv-ends::before"
            f'{{content:"{style.mark}";color:var(--sv-edge-{code});position:relative;top:-.6em;'
            "padding:0 .1em;font-size:.72em;font-weight:700;line-height:1}"
        )
    return rules


def contrast(one: str, other: str) -> float:
    """Return the WCAG 2 contrast ratio of two #rrggbb colours, 1 to 21."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
