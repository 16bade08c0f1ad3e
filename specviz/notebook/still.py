"""The token pane without a script: for viewers that run none, and for printed pages.

Colours are those of light pages, each with its own dark ink, so a dark viewer can show them too;
what was struck or underlined is so in HTML itself, for viewers that take styles away.
"""

from specviz.events import Round
from specviz.traces.schema import Trace
from specviz.views import theme
from specviz.views.html import NOTHING, Markup, join, tag, visible
from specviz.views.spelling import piece_of, spell

_ELEMENT = {"rejected": "del", "past_end": "del", "accepted": "u", "recovered": "ins"}
_LEGEND: tuple[theme.Kind, ...] = ("accepted", "rejected", "unchecked", "recovered", "bonus")


def still(trace: Trace, count: int) -> Markup:
    """Return the first `count` rounds as HTML without a script, one line each."""
    lines = [_line(trace, event) for event in trace.rounds[:count]]
    legend = [join(_cell(theme.label(kind), kind), " ") for kind in _LEGEND]
    return tag("div", tag("p", *legend), tag("ol", *lines))


def _line(trace: Trace, event: Round) -> Markup:
    """One round as in the pane: what was kept, what was not, the target's own token."""
    kept = [_draft_cell(trace, event, node) for node in event.path]
    own = NOTHING
    if event.last_token is not None:
        own = join(" ", _cell(_text(trace, event.last_token), event.last_kind))
    loose = [
        join(" ", _draft_cell(trace, event, node))
        for node in range(len(event.draft))
        if node not in event.path
    ]
    return tag("li", *kept, *loose, own)


def _draft_cell(trace: Trace, event: Round, node: int) -> Markup:
    return _cell(_text(trace, event.draft.tokens[node]), event.fates[node])


def _text(trace: Trace, token: int) -> str:
    """One token with its white space drawn, bytes that are no text as escapes."""
    shown = spell([piece_of(trace.pieces, token)])[0][0]
    return visible("".join(shown) if isinstance(shown, list) else str(shown))


def _cell(text: str, kind: theme.Kind) -> Markup:
    style = theme.STYLES[kind]
    look = f"background:{style.tint.light};color:{theme.INK.light};padding:0 2px"
    mark = tag("sup", style.mark) if style.mark else NOTHING
    inner = tag(_ELEMENT.get(kind, "span"), text, style=look, title=theme.label(kind))
    return join(inner, mark)
