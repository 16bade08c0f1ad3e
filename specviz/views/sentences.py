"""Rounds in words: one sentence each, for screen readers, tables and the live region."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from specviz.events import ROOT, Finish, Round
from specviz.views.spelling import quote
from specviz.words import _, ngettext, retold


@dataclass(frozen=True, slots=True)
class Twin:
    """The token pane as text: one sentence and one table row per round, oldest first."""

    sentences: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def text_twin(rounds: Sequence[Round], pieces: Mapping[int, bytes]) -> Twin:
    """Return what the pane shows of `rounds` in words."""
    return Twin(
        tuple(sentence(event, pieces) for event in rounds),
        (_("Round"), _("Drafted"), _("Accepted"), _("Committed")),
        tuple(_row(event, pieces) for event in rounds),
    )


def _row(event: Round, pieces: Mapping[int, bytes]) -> tuple[str, ...]:
    kept = [event.draft.tokens[node] for node in event.path]
    groups = (event.draft.tokens, kept, event.committed)
    return (str(event.index + 1), *(quote(pieces, *group) if group else "" for group in groups))


def sentence(event: Round, pieces: Mapping[int, bytes]) -> str:
    """Return one round in one sentence."""
    drafted = len(event.draft)
    last = "" if event.last_token is None else quote(pieces, event.last_token)
    if event.last_kind == "forced":
        return _("Round {round}: you put in {token}.").format(round=event.index + 1, token=last)
    if not drafted:
        text = _("Round {round}: nothing drafted, the target wrote {token}.")
        return text.format(round=event.index + 1, token=last)
    start = ngettext(
        "Round {round}: drafted {n}, accepted {accepted}",
        "Round {round}: drafted {n}, accepted {accepted}",
        drafted,
    ).format(round=event.index + 1, n=drafted, accepted=len(event.path))
    return start + _ending(event, pieces, last)


def _ending(event: Round, pieces: Mapping[int, bytes], last: str) -> str:
    if event.last_token is None:
        return _(", then the text ended.")
    refused = refused_nodes(event)
    if not refused:
        return _(", added bonus {token}.").format(token=last)
    old = ", ".join(quote(pieces, event.draft.tokens[node]) for node in refused)
    return _(", replaced {old} by {new}.").format(old=old, new=last)


def refused_nodes(event: Round) -> list[int]:
    """Nodes whose place the target's own token took; several if siblings were tried in turn."""
    fates = event.fates
    end = event.path[-1] if event.path else ROOT
    return [node for node in event.draft.children(end) if fates[node] == "rejected"]


def never_drafted(event: Round, node: int, undraftable: Collection[int]) -> bool:
    """Whether a draft was refused for a token that the draft vocabulary lacks."""
    return event.last_token in undraftable and node in refused_nodes(event)


def ending(finish: Finish | None) -> str:
    """Return why decoding ended, "" while it has not."""
    if finish is None:
        return ""
    text = {
        "stop_token": _("The end: the model wrote its stop token."),
        "stop_string": _("The end: a stop string was reached."),
        "length": _("The end: the token budget is used up."),
        "context": _("The end: the model's context is full."),
        "cancelled": _("Stopped by you."),
        "error": _("Stopped by an error."),
    }[finish.reason]
    detail = finish.detail if finish.reason == "stop_string" else retold(finish.detail)
    return f"{text} ({detail})" if detail else text
