"""The token pane's data: what token_pane.js draws. Compact, since it goes to the page each redraw.

A payload has one entry per round shown:

    i   round                     s   position of its first token
    t   committed ids             c   their texts (see `spelling`)       k   their kinds, one letter
    rt  ids of drafts not kept    r   their texts                        f   their kinds
    last  whether the last committed token is the target's own
    p, n  trees: nodes behind c and r    d  depth - 1 of r    b  cells of r that start a branch

Details of hover cards come for the rounds around the cursor only.
"""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field

from specviz.events import ROOT, Finish, Round
from specviz.traces.schema import Trace
from specviz.views import theme
from specviz.views.cards import Card, cards
from specviz.views.sentences import ending, sentence
from specviz.views.spelling import Text, piece_of, spell
from specviz.words import _, ngettext

PROMPT_SHOWN = 2000  # tokens; the end of a longer prompt is shown
CARD_WINDOW = 6  # rounds with hover cards on either side of the cursor

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class Reveal:
    """How much of the current round has happened: drafted nodes, decided checks, the last token."""

    drafted: int
    checked: int = 0
    last: bool = False
    active: int | str | None = None  # node the step is about; "last" for the target's own token


@dataclass(frozen=True, slots=True)
class PaneOptions:
    """What the reader chose to see, and the token that is selected."""

    rejected: bool = True
    whitespace: bool = False
    mono: bool = False
    height: str = "28rem"
    selected: tuple[int, int | str] | None = None  # round, node or "last"


def pane(
    trace: Trace, shown: int, reveal: Reveal | None = None, options: PaneOptions | None = None
) -> Json:
    """Return the payload for the first `shown` rounds, the last of them as far as `reveal` says.

    Without `reveal` the last round is complete.
    """
    options = options or PaneOptions()
    rounds = trace.rounds[:shown]
    story = _Story(trace, rounds, reveal)
    complete = shown == len(trace.rounds) and (reveal is None or reveal.last)
    current = rounds[-1] if rounds else None
    seen: set[theme.Kind] = {event.last_kind for event in rounds}
    if reveal is not None and not reveal.last:
        seen.add("pending")
    return {
        "id": trace.run_id,
        "prompt": _prompt(trace, story),
        "rounds": story.rows(),
        "now": {"round": current.index, "node": reveal and reveal.active} if current else None,
        "selected": _selected(options.selected),
        "details": _details(trace, rounds, reveal, options.selected),
        "end": _visible_end(story, trace.finish) if complete else None,
        "finish": ending(trace.finish) if complete else "",
        "live": sentence(current, trace.pieces) if current and reveal is None else "",
        "height": options.height,
        "reserve": _length(trace),
        "options": {
            "rejected": options.rejected,
            "whitespace": options.whitespace,
            "mono": options.mono,
        },
        **_words(seen),
    }


def _length(trace: Trace) -> tuple[int, int]:
    """About how many characters the whole run takes: what is kept, and drafts that are not."""

    def long(tokens: Iterable[int]) -> int:
        return sum(len(piece_of(trace.pieces, token)) for token in tokens)

    kept = sum(long(event.committed) + 3 for event in trace.rounds)
    drafted = sum(long(event.draft.tokens) for event in trace.rounds)
    accepted = sum(long(event.committed[: len(event.path)]) for event in trace.rounds)
    return kept, drafted - accepted


@dataclass(slots=True)
class _Story:
    """The committed text so far, spelled once over prompt and output together."""

    trace: Trace
    rounds: Sequence[Round]
    reveal: Reveal | None
    texts: list[Text] = field(default_factory=list)
    opened: dict[int, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = self.trace.pieces
        tokens = [*self.trace.prompt]
        for event in self.rounds:
            tokens += self.committed(event)
        self.texts, self.opened = spell([piece_of(known, token) for token in tokens])

    def partial(self, event: Round) -> Reveal | None:
        """How far this round has come, None if it is complete."""
        if self.reveal is None or self.reveal.last or event is not self.rounds[-1]:
            return None
        return self.reveal

    def path(self, event: Round) -> tuple[int, ...]:
        reveal = self.partial(event)
        if reveal is None:
            return event.path
        decided = {check.node for check in event.checks[: reveal.checked]}
        return tuple(node for node in event.path if node in decided)

    def committed(self, event: Round) -> tuple[int, ...]:
        if self.partial(event) is None:
            return event.committed
        return tuple(event.draft.tokens[node] for node in self.path(event))

    def rows(self) -> list[Json]:
        return [self._row(event) for event in self.rounds]

    def _row(self, event: Round) -> Json:
        path, committed = self.path(event), self.committed(event)
        own = len(committed) > len(path)
        row: Json = {
            "i": event.index,
            "s": event.start,
            "t": committed,
            "c": self.texts[event.start : event.start + len(committed)],
            "k": "a" * len(path) + (theme.STYLES[event.last_kind].code if own else ""),
            "last": own,
            "rt": (),
            "r": (),
            "f": "",
        }
        if len(event.draft) > len(path):
            row |= self._loose(event, path)
        return row

    def _loose(self, event: Round, path: tuple[int, ...]) -> Json:
        """Drafts that are not (or not yet) part of the text."""
        reveal = self.partial(event)
        drafted = len(event.draft) if reveal is None else reveal.drafted
        nodes = [node for node in range(drafted) if node not in path]
        texts = _spell_branches(event, nodes, self)
        loose: Json = {
            "rt": [event.draft.tokens[node] for node in nodes],
            "r": texts,
            "f": "".join(self._codes(event, nodes, reveal)),
        }
        if not event.draft.is_chain:
            depths = event.draft.depths
            starts = [
                at
                for at, node in enumerate(nodes)
                if at and event.draft.parents[node] != nodes[at - 1]
            ]
            loose |= {"p": path, "n": nodes, "d": [depths[n] - 1 for n in nodes], "b": starts}
        return loose

    @staticmethod
    def _codes(event: Round, nodes: Sequence[int], reveal: Reveal | None) -> list[str]:
        fates = event.fates
        if reveal is None:
            return [theme.STYLES[fates[node]].code for node in nodes]
        decided = {check.node for check in event.checks[: reveal.checked]}
        return [theme.STYLES[fates[n] if n in decided else "pending"].code for n in nodes]


def _spell_branches(event: Round, nodes: Sequence[int], story: _Story) -> list[Text]:
    """Spell drafts that were not kept; each run of them goes on from the bytes before it."""
    known, draft = story.trace.pieces, event.draft
    left: dict[int, bytes] = {ROOT: story.opened.get(event.start - 1, b"")}
    for depth, node in enumerate(event.path):
        left[node] = story.opened.get(event.start + depth, b"")
    texts: list[Text] = []
    run: list[int] = []
    for at, node in enumerate(nodes):
        run.append(node)
        goes_on = at + 1 < len(nodes) and draft.parents[nodes[at + 1]] == node
        if not goes_on:
            pieces = [piece_of(known, draft.tokens[n]) for n in run]
            spelled, opened = spell(pieces, left.get(draft.parents[run[0]], b""))
            left |= {n: opened.get(i, b"") for i, n in enumerate(run)}
            texts += spelled
            run = []
    return texts


def _prompt(trace: Trace, story: _Story) -> Json:
    length = len(trace.prompt)
    skipped = max(0, length - PROMPT_SHOWN)
    summary = ngettext("Prompt, {n} token", "Prompt, {n} tokens", length).format(n=length)
    if trace.redacted:
        return {"summary": summary, "texts": [], "note": _("The prompt was left out of this file.")}
    note = ngettext("… {n} earlier token", "… {n} earlier tokens", skipped).format(n=skipped)
    return {
        "summary": summary,
        "texts": story.texts[skipped:length],
        "note": note if skipped else "",
    }


def _selected(selected: tuple[int, int | str] | None) -> Json | None:
    return None if selected is None else {"round": selected[0], "node": selected[1]}


def _details(
    trace: Trace,
    rounds: Sequence[Round],
    reveal: Reveal | None,
    selected: tuple[int, int | str] | None,
) -> dict[str, dict[str, Card]]:
    """Cards of the rounds before the cursor and around the selected token."""
    chosen = {event.index: event for event in rounds[-CARD_WINDOW - 1 :]}
    if selected is not None and 0 <= selected[0] < len(rounds):
        near = slice(max(0, selected[0] - CARD_WINDOW), selected[0] + CARD_WINDOW + 1)
        chosen |= {event.index: event for event in rounds[near]}
    found = {str(index): cards(event, trace.pieces) for index, event in chosen.items()}
    if reveal is not None and not reveal.last and rounds:
        current = rounds[-1]
        found[str(current.index)] = cards(current, trace.pieces, reveal.checked)
    return found


def _visible_end(story: _Story, finish: Finish | None) -> tuple[int, int, int] | None:
    """Round, cell and character at which the visible output ends before its last token does."""
    if finish is None or finish.text_bytes is None:
        return None
    left, known = finish.text_bytes, story.trace.pieces
    for event in story.rounds:
        for at, token in enumerate(event.committed):
            piece = piece_of(known, token)
            if left < len(piece):
                return event.index, at, len(piece[:left].decode("utf-8", "ignore"))
            left -= len(piece)
    return None


def _words(seen: Set[theme.Kind]) -> Json:
    """Everything the pane says in words: legend, toggles, labels."""
    kinds = {style.code: theme.label(kind) for kind, style in theme.STYLES.items()}
    legend = [
        (style.code, theme.label(kind), theme.meaning(kind))
        for kind, style in theme.STYLES.items()
        if kind not in ("pending", "plain", "forced") or kind in seen
    ]
    return {
        "legend": legend,
        "toggles": [
            ("rejected", _("Drafts not kept")),
            ("whitespace", _("White space")),
            ("mono", _("Monospace")),
        ],
        "words": {
            "pane": _("Tokens, round by round"),
            "legend": _("Kinds of tokens"),
            "round": _("Round"),
            "id": _("id"),
            "position": _("position"),
            "more": _("Select this token to see its numbers."),
            "kinds": kinds,
        },
    }
