"""What every scheme panel is made of: the view itself, its style, and what several schemes say."""

from dataclasses import dataclass

from specviz.events import Round
from specviz.traces.schema import Trace
from specviz.views import theme
from specviz.views.cards import number
from specviz.views.html import NOTHING, Markup, join, tag
from specviz.views.spelling import quote
from specviz.words import _, ngettext

STYLE = """
.sv-excerpt{padding:.6rem .8rem;border:1px solid var(--sv-rule);border-radius:.5rem;
color:var(--sv-ink);line-height:1.9;white-space:pre-wrap;
overflow-wrap:anywhere}
.sv-excerpt span{border-radius:.2em;text-underline-offset:.22em;margin-right:1px}
.sv-excerpt .sv-match{box-shadow:0 0 0 1.5px var(--sv-ink)}
.sv-excerpt .sv-source{box-shadow:0 0 0 1.5px var(--sv-focus);background:var(--sv-now)}
.sv-excerpt .sv-gap{color:var(--sv-quiet)}
.sv-slots{display:flex;flex-wrap:wrap;gap:.5rem;color:var(--sv-ink)}
.sv-slot{min-width:5.5rem;padding:.35rem .5rem;border:1px solid var(--sv-rule);
border-radius:.5rem;display:flex;flex-direction:column;gap:.2rem;line-height:1.4}
.sv-slot small,.sv-node small{color:var(--sv-quiet);font-size:.75rem}
.sv-chip{border-radius:.2em;text-underline-offset:.22em;white-space:pre;width:fit-content}
.sv-bar{display:block;height:.35rem;background:var(--sv-rule);border-radius:.2rem}
.sv-bar span{display:block;height:100%;background:var(--sv-focus);border-radius:.2rem}
.sv-cut{border-style:dashed}
.sv-tree{overflow-x:auto;color:var(--sv-ink);line-height:1.5;padding-bottom:.3rem}
.sv-node{display:flex;align-items:flex-start;gap:.3rem;width:max-content}
.sv-kept>.sv-chip{box-shadow:0 0 0 1.5px var(--sv-ink)}
.sv-children{border-left:2px solid var(--sv-rule);padding-left:.5rem;display:flex;
flex-direction:column;gap:.2rem}
"""


@dataclass(frozen=True, slots=True)
class SchemeView:
    """The scheme panel: sentences, an excerpt of the text as markup, a table."""

    title: str
    lines: tuple[str, ...]
    excerpt: Markup = NOTHING
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()

    @property
    def page(self) -> Markup:
        """The excerpt with the style sheet it needs."""
        return join(tag("style", Markup(theme.css_variables() + STYLE)), self.excerpt)


def named(trace: Trace, event: Round, label: str) -> list[str]:
    """Name what drafted, as `label` says it, with its passes and what it had to read first."""
    lines = [] if trace.draft is None else [label.format(name=trace.draft.name)]
    passes = event.evidence.passes
    if passes:
        text = ngettext("It ran {n} forward pass.", "It ran {n} forward passes.", passes)
        lines.append(text.format(n=passes))
    return lines


def catch_up(trace: Trace, event: Round) -> list[str]:
    """Explain the tokens it had to read first (gpt-fast issue 107)."""
    read = event.evidence.caught_up
    if not read:
        return []
    text = ngettext(
        "Before drafting it read {n} token it had not seen.",
        "Before drafting it read {n} tokens it had not seen.",
        read,
    )
    lines = [text.format(n=read)]
    before = trace.rounds[event.index - 1] if event.index else None
    if before is not None and before.last_kind == "bonus" and read > 1:
        lines.append(
            _(
                "One more than usual: the last draft was accepted whole, and its last token had "
                "been written but never read by the draft model."
            )
        )
    return lines


def score_table(
    trace: Trace, event: Round, name: str
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return columns and rows of the drafted tokens with their scores, called `name`."""
    scores = event.evidence.scores
    if not scores:
        return (), ()
    rows = tuple(
        (str(node + 1), quote(trace.pieces, token), number(score), theme.label(fate))
        for node, (token, score, fate) in enumerate(
            zip(event.draft.tokens, scores, event.fates, strict=False)
        )
    )
    return ("#", _("Token"), name, _("Fate")), rows
