"""What a head did in a round: EAGLE-3's tree, MTP's depths, the blocks of DFlash and DSpark."""

from specviz.events import ROOT, Round
from specviz.traces.schema import Trace
from specviz.views import theme
from specviz.views.cards import number
from specviz.views.html import NOTHING, Markup, join, tag
from specviz.views.scheme_panel import SchemeView, catch_up, named, score_table
from specviz.views.spelling import quote
from specviz.words import _, ngettext, retold


def eagle3(trace: Trace, event: Round) -> SchemeView:
    """Show a chain as slots, a tree with its branches; both with the head's probabilities."""
    lines, found, draft = _lines(trace, event), event.evidence, event.draft
    if draft.is_chain:
        title = _("EAGLE-3: a head writes ahead from the target's hidden states")
        excerpt = _slots(trace, event)
    else:
        title = _("EAGLE-3: a tree of the head's favourites")
        nodes, deep = len(draft), max(draft.depths)
        text = ngettext(
            "{nodes} nodes in {deep} level; the numbers are the head's probability of a token "
            "after its parent. A frame marks what was accepted.",
            "{nodes} nodes in {deep} levels; the numbers are the head's probability of a token "
            "after its parent. A frame marks what was accepted.",
            deep,
        )
        lines.append(text.format(nodes=nodes, deep=deep))
        excerpt = _tree(trace, event)
    lines += [retold(found.message)] if found.message else []
    columns, rows = score_table(trace, event, _("head's probability"))
    return SchemeView(title, tuple(lines), excerpt, columns, rows)


def mtp(trace: Trace, event: Round) -> SchemeView:
    """Show each depth, and from which one on the module is reused."""
    title = _("MTP: the target's own module for the token after the next")
    lines, found = _lines(trace, event), event.evidence
    lines += [retold(text) for text in (found.note, found.message) if text]
    labels = [_depth(depth, found.trained) for depth in event.draft.depths]
    columns, rows = score_table(trace, event, _("module's probability"))
    table = tuple((label, *row[1:]) for label, row in zip(labels, rows, strict=False))
    excerpt = _slots(trace, event, labels)
    return SchemeView(title, tuple(lines), excerpt, (_("Depth"), *columns[1:]), table)


def _depth(depth: int, trained: int) -> str:
    return _("{n}, reused").format(n=depth) if 0 < trained < depth else str(depth)


def dflash(trace: Trace, event: Round) -> SchemeView:
    """Show the block: slots that were all filled in the same pass."""
    title = _("DFlash: a block of slots filled in one pass")
    lines, found = _lines(trace, event), event.evidence
    lines.append(_("All slots were filled at once: none knows what stands in another."))
    lines += [retold(found.message)] if found.message else []
    columns, rows = score_table(trace, event, _("slot's probability"))
    return SchemeView(title, tuple(lines), _slots(trace, event), columns, rows)


def dspark(trace: Trace, event: Round) -> SchemeView:
    """Show the block, what the Markov head changed in it, and where confidence ended it."""
    title = _("DSpark: a block filled at once, then corrected from left to right")
    lines, found = _lines(trace, event), event.evidence
    changed = sum(a != b for a, b in zip(event.draft.tokens, found.unbiased, strict=False))
    if found.unbiased and not changed:
        lines.append(_("Every drafted token is the block's own favourite."))
    elif found.unbiased:
        text = ngettext(
            "In {n} slot the drafted token is not the block's own favourite: its Markov head, "
            "which knows the token before, or a draw chose otherwise.",
            "In {n} slots the drafted token is not the block's own favourite: its Markov head, "
            "which knows the token before, or a draw chose otherwise.",
            changed,
        )
        lines.append(text.format(n=changed))
    lines += [retold(found.message)] if found.message else []
    columns, rows = score_table(trace, event, _("slot's probability"))
    if rows and found.unbiased:
        columns = (*columns, _("Block's favourite"))
        rows = tuple((*row, _before(trace, event, node)) for node, row in enumerate(rows))
    if rows and found.confidence:
        columns = (*columns, _("Confidence"))
        rows = tuple((*row, number(found.confidence[i])) for i, row in enumerate(rows))
    return SchemeView(title, tuple(lines), _slots(trace, event), columns, rows)


def _lines(trace: Trace, event: Round) -> list[str]:
    lines = named(trace, event, _("Head: {name}"))
    known = trace.draft.vocab if trace.draft else trace.target.vocab
    if known < trace.target.vocab:
        text = _("It can draft {known} of the target's {all} ids; the target's token can be any.")
        lines.append(text.format(known=known, all=trace.target.vocab))
    return lines + catch_up(trace, event)


def _before(trace: Trace, event: Round, node: int) -> str:
    found = event.evidence
    return f"{quote(trace.pieces, found.unbiased[node])} {number(found.unbiased_scores[node])}"


def _slots(trace: Trace, event: Round, labels: list[str] | None = None) -> Markup:
    """Return a chain as a row of slots, and behind it the slot that confidence cut off."""
    if not event.draft.tokens and not event.evidence.confidence:
        return NOTHING
    slots = [
        _slot(trace, event, node, labels[node] if labels else f"+{node + 1}")
        for node in range(len(event.draft))
    ]
    refused = event.evidence.confidence[len(event.draft) :]
    slots += [_cut(sure) for sure in refused]
    return tag("div", *slots, class_="sv-root sv-slots")


def _slot(trace: Trace, event: Round, node: int, label: str) -> Markup:
    found = event.evidence
    parts = [tag("small", label), _chip(trace, event, node)]
    if node < len(found.scores):
        parts += _bar(number(found.scores[node]), found.scores[node])
    if node < len(found.unbiased) and found.unbiased[node] != event.draft.tokens[node]:
        text = _("block alone: {token}").format(token=_before(trace, event, node))
        parts.append(tag("small", text))
    if node < len(found.confidence):
        sure = found.confidence[node]
        parts += _bar(_("confidence {p}").format(p=number(sure)), sure)
    return tag("div", *parts, class_="sv-slot")


def _cut(sure: float) -> Markup:
    parts = (tag("small", _("cut here")), *_bar(_("confidence {p}").format(p=number(sure)), sure))
    return tag("div", *parts, class_="sv-slot sv-cut")


def _bar(text: str, share: float) -> list[Markup]:
    width = min(1.0, max(0.0, share))
    filled = tag("span", style=f"width:{100 * width:.0f}%")
    return [tag("small", text), tag("span", filled, class_="sv-bar", aria_hidden="true")]


def _chip(trace: Trace, event: Round, node: int) -> Markup:
    fate = event.fates[node]
    text = quote(trace.pieces, event.draft.tokens[node])
    return tag(
        "span", text, class_=f"sv-chip sv-{theme.STYLES[fate].code}", title=theme.label(fate)
    )


def _tree(trace: Trace, event: Round) -> Markup:
    """Return the tree from left to right: children stand behind their parent."""
    draft, scores = event.draft, event.evidence.scores
    below: dict[int, list[Markup]] = {}
    for node in reversed(range(len(draft))):  # children come after their parents
        parts = [_chip(trace, event, node)]
        if node < len(scores):
            parts.append(tag("small", number(scores[node])))
        if node in below:
            parts.append(tag("div", *reversed(below[node]), class_="sv-children"))
        kind = "sv-node sv-kept" if node in event.path else "sv-node"
        below.setdefault(draft.parents[node], []).append(tag("div", *parts, class_=kind))
    return tag("div", join(*reversed(below[ROOT])), class_="sv-root sv-tree")
