"""What the drafter of a round really did. One function per scheme."""

from collections.abc import Callable, Sequence

from specviz.events import Round
from specviz.traces.schema import Trace
from specviz.views import theme
from specviz.views.head_schemes import dflash, dspark, eagle3, mtp
from specviz.views.html import Markup, join, tag
from specviz.views.scheme_panel import SchemeView, catch_up, named, score_table
from specviz.views.spelling import REST, piece_of, quote, spell
from specviz.words import _, ngettext, retold

AROUND = 14  # tokens of text shown on either side of a match
TAIL = 18  # tokens of the end of the text


def scheme_view(trace: Trace, index: int) -> SchemeView:
    """Show what the drafter of round `index` did."""
    event = trace.rounds[index]
    if event.last_kind == "forced":
        return SchemeView(_("A token of yours"), (_("The drafter was not asked in this round."),))
    return _VIEWS.get(event.scheme, _other)(trace, event)


def _none(trace: Trace, event: Round) -> SchemeView:
    return SchemeView(
        _("Plain decoding"), (_("Nothing is drafted: each round adds the target's own token."),)
    )


def _other(trace: Trace, event: Round) -> SchemeView:
    lines = (_("There is no picture of this scheme yet; its drafts are in the token pane."),)
    return SchemeView(event.scheme, lines)


def _ngram(trace: Trace, event: Round) -> SchemeView:
    title = _("n-gram: copy what followed the same words earlier")
    found = event.evidence
    if found.match is None:
        return SchemeView(title, (retold(found.message) or _("No match was found."),))
    tail = quote(trace.pieces, *_tokens(trace, event)[slice(*found.match)])
    n = found.match[1] - found.match[0]
    line = ngettext(
        "The text ends with {tail} ({n} token), which also stands at position {at}.",
        "The text ends with {tail} ({n} tokens), which also stands at position {at}.",
        n,
    ).format(tail=tail, n=n, at=found.match[0])
    return SchemeView(title, (line, *_copied(trace, event)), _excerpt(trace, event))


def _copied(trace: Trace, event: Round) -> list[str]:
    drafted = len(event.draft)
    lines = [retold(event.evidence.message)] if event.evidence.message else []
    if drafted:
        text = ngettext(
            "What followed it there is the draft: {text} ({n} token).",
            "What followed it there is the draft: {text} ({n} tokens).",
            drafted,
        )
        lines.append(text.format(text=quote(trace.pieces, *event.draft.tokens), n=drafted))
    return lines


def _suffix(trace: Trace, event: Round) -> SchemeView:
    title = _("suffix: what most often followed the longest matching ending")
    found = event.evidence
    if found.match is None:
        return SchemeView(title, (retold(found.message) or _("No match was found."),))
    where = _("in this text") if found.store == "context" else _("in earlier outputs")
    n = found.match[1] - found.match[0]
    line = ngettext(
        "The last {n} token was found {where}; the draft is its likeliest continuation.",
        "The last {n} tokens were found {where}; the draft is their likeliest continuation.",
        n,
    ).format(n=n, where=where)
    score = _("Expected accepted tokens, by its counts: {x}").format(x=f"{sum(found.scores):.2f}")
    lines = (line, score) if found.scores else (line,)
    columns, rows = score_table(trace, event, _("seen this often"))
    return SchemeView(title, lines, _excerpt(trace, event), columns, rows)


def _draft_model(trace: Trace, event: Round) -> SchemeView:
    title = _("draft model: a smaller model writes ahead")
    found = event.evidence
    lines = named(trace, event, _("Draft model: {name}"))
    lines += [retold(found.message)] if found.message else []
    lines += catch_up(trace, event)
    columns, rows = score_table(trace, event, _("draft's probability"))
    return SchemeView(title, tuple(lines), _excerpt(trace, event), columns, rows)


def _tokens(trace: Trace, event: Round) -> tuple[int, ...]:
    """Return the text this round's drafter saw."""
    return trace.tokens[: event.start]


def _excerpt(trace: Trace, event: Round) -> Markup:
    """Return match, source and the end of the text with the draft behind it."""
    tokens, found = _tokens(trace, event), event.evidence
    end = len(tokens)
    kinds: dict[int, str] = {}
    tail = max(0, end - TAIL)
    windows = [(tail, end)]
    if found.match is not None:
        start, stop = found.match
        length = stop - start
        kinds |= dict.fromkeys(range(end - length, end), "sv-match")
        last = min(found.source[1] if found.source else stop, end)
        windows = [
            (max(0, start - AROUND), min(end, last + AROUND)),
            (min(tail, max(0, end - length - 4)), end),
        ]
        kinds |= dict.fromkeys(range(start, stop), "sv-match")
        if found.source:
            kinds |= dict.fromkeys(range(found.source[0], last), "sv-source")
    body: list[Markup] = []
    for window in _merged(windows):
        if window[0]:
            body.append(tag("span", "\n…\n" if body else "… ", class_="sv-gap"))
        body.append(_window(trace, tokens, window, kinds))
    return tag("div", *body, *_drafted(trace, event), class_="sv-root sv-excerpt")


def _merged(windows: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(windows):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _window(
    trace: Trace, tokens: Sequence[int], window: tuple[int, int], kinds: dict[int, str]
) -> Markup:
    """Return tokens [start, end) with neighbours of one kind in one element."""
    start, end = window
    texts, _opened = spell([piece_of(trace.pieces, t) for t in tokens[start:end]])
    parts: list[Markup] = []
    run, kind = "", kinds.get(start, "")
    for at, text in enumerate(texts, start):
        if kinds.get(at, "") != kind:
            parts.append(_piece(run, kind))
            run, kind = "", kinds.get(at, "")
        run += _plain(text)
    return join(*parts, _piece(run, kind))


def _piece(text: str, kind: str) -> Markup:
    return tag("span", text, class_=kind) if kind else join(text)


def _plain(text: str | int | list[str]) -> str:
    if isinstance(text, str):
        return text
    return "" if text == REST or isinstance(text, int) else text[0]


def _drafted(trace: Trace, event: Round) -> list[Markup]:
    texts, _opened = spell([piece_of(trace.pieces, t) for t in event.draft.tokens])
    return [
        tag("span", _plain(text), class_=f"sv-{theme.STYLES[fate].code}", title=theme.label(fate))
        for text, fate in zip(texts, event.fates, strict=True)
    ]


_VIEWS: dict[str, Callable[[Trace, Round], SchemeView]] = {
    "none": _none,
    "ngram": _ngram,
    "suffix": _suffix,
    "draft_model": _draft_model,
    "eagle3": eagle3,
    "mtp": mtp,
    "dflash": dflash,
    "dspark": dspark,
}
