"""Twelve stops through a recording, each about one part of the screen, with its own numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from specviz.cost.tiles import TILE
from specviz.events import Round
from specviz.metrics import predicted_speedup, speedup, summarise
from specviz.traces.schema import Trace
from specviz.traces.timeline import Cursor
from specviz.views.spelling import quote
from specviz.words import _

Part = Literal["head", "text", "decision", "figures", "panel"]
Panel = Literal["drafter", "tiles", "speed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """One stop: what it says, where the reader stands, which part is highlighted."""

    title: str
    text: str
    part: Part
    cursor: Cursor
    node: int | str | None = None  # the decision shown
    panel: Panel = "drafter"


def stops(trace: Trace) -> tuple[Stop, ...]:
    """Return the tour of a run that drafted something.

    Sentences hold for any run; numbers in them are those of this one.
    """
    refused = _first(trace, lambda r: "rejected" in r.fates)
    full = _first(trace, lambda r: r.last_kind == "bonus" and len(r.draft) > 1)
    return (*_before(trace, full), *_deciding(trace, refused, full), *_numbers(trace, full))


def _first(trace: Trace, fits: Callable[[Round], bool]) -> Round:
    """The first round that fits, else the first that drafted, else the first."""
    drafted = next((r for r in trace.rounds if len(r.draft)), trace.rounds[0])
    return next((r for r in trace.rounds if fits(r)), drafted)


def _before(trace: Trace, full: Round) -> tuple[Stop, ...]:
    env = trace.environment
    drafted = quote(trace.pieces, *full.draft.tokens) if len(full.draft) else ""
    read = _(
        "Everything below was measured on {device} in {dtype} on {date}: it is a recording. The "
        "target, {model}, has read a prompt of {n} tokens and written nothing yet."
    )
    propose = _(
        "Round {round} begins: the drafter proposes {n} tokens, {drafted}. They are guesses, "
        "drawn with a question mark. Until the target has looked at them, none is part of the text."
    )
    score = _(
        "Now the target reads all {n} guesses in ONE pass of {rows} rows: one for the last token "
        "of the text and one for each guess. That is the whole trick: the weights are read once."
    )
    return (
        Stop(
            title=_("A recording, before the first token"),
            text=read.format(
                device=env.device_name,
                dtype=env.dtype,
                date=trace.created[:10],
                model=trace.target.name,
                n=len(trace.prompt),
            ),
            part="head",
            cursor=Cursor(0),
        ),
        Stop(
            title=_("Draft"),
            text=propose.format(round=full.index + 1, n=len(full.draft), drafted=drafted),
            part="text",
            cursor=Cursor(full.index, max(0, len(full.draft))),
        ),
        Stop(
            title=_("Where the guesses come from"),
            text=_(
                "The drafter panel shows what was really done for this draft. An n-gram drafter "
                "copies what followed the same words earlier; a head or a draft model computes."
            ),
            part="panel",
            cursor=Cursor(full.index + 1),
        ),
        Stop(
            title=_("Score"),
            text=score.format(n=len(full.draft), rows=len(full.draft) + 1),
            part="text",
            cursor=Cursor(full.index, len(full.draft) + 1),
        ),
    )


def _deciding(trace: Trace, refused: Round, full: Round) -> tuple[Stop, ...]:
    old = next((n for n, fate in enumerate(refused.fates) if fate == "rejected"), None)
    accepted = full.path[0] if full.path else None
    word = "" if old is None else quote(trace.pieces, refused.draft.tokens[old])
    own = "" if refused.last_token is None else quote(trace.pieces, refused.last_token)
    behind = sum(fate == "unchecked" for fate in refused.fates)
    rule = (
        _("At temperature 0 a guess stays if it is the target's favourite.")
        if trace.params.greedy
        else _("A guess stays if a uniform number u is below min(1, p / q).")
    )
    reject = _(
        "In round {round} the guess {old} was refused. The {n} guesses behind it are never looked "
        "at: their rows answered a question that no longer stands."
    )
    recover = _(
        "A refused guess costs no extra pass: the row that refused it already says what the target "
        "wants instead, {new}. So every round adds at least one token."
    )
    bonus = _(
        "In round {round} nothing was refused, so the row behind the last guess gives one more "
        "token for free: {n} guesses accepted, {tokens} tokens written by one pass."
    )
    return (
        Stop(
            title=_("Accept"),
            text=" ".join((rule, _("The panel shows that one decision in numbers."))),
            part="decision",
            cursor=Cursor(full.index + 1),
            node=accepted,
        ),
        Stop(
            title=_("Reject"),
            text=reject.format(round=refused.index + 1, old=word, n=behind),
            part="decision",
            cursor=Cursor(refused.index + 1),
            node=old,
        ),
        Stop(
            title=_("Recover"),
            text=recover.format(new=own),
            part="text",
            cursor=Cursor(refused.index + 1),
            node="last",
        ),
        Stop(
            title=_("Bonus"),
            text=bonus.format(
                round=full.index + 1, n=len(full.path), tokens=full.acceptance_length
            ),
            part="text",
            cursor=Cursor(full.index + 1),
            node="last",
        ),
    )


def _numbers(trace: Trace, full: Round) -> tuple[Stop, ...]:
    s, end = summarise(trace.rounds), Cursor.end(trace.rounds)
    plain = trace.lossless.plain_tpot if trace.lossless else None
    group, rows = trace.target.group_size, trace.target.group_size * (len(full.draft) + 1)
    length = _(
        "E[L] counts every token a round adds, the target's own included: {tokens} tokens in "
        "{rounds} rounds are {length}. The share of guesses accepted is another number: {rate}."
    )
    tiles = _(
        "G = {group} query heads share a KV head, so {n} guesses become G x (1 + D) = {rows} rows "
        "of an attention kernel. In a tile of {tile} rows the others are empty, and cost the same."
    )
    speed = _(
        "Speed is E[L] times the target's plain pass, divided by draft + score + verify + commit. "
        "Predicted {predicted}, measured {measured}; the rest is time outside these parts."
    )
    lossless = _(
        "The text was compared with plain decoding of the same weights: {verdict}. Acceptance says "
        "nothing about this; a broken cache can accept 80% and still write another text."
    )
    return (
        Stop(
            title=_("Two numbers that are not the same"),
            text=length.format(
                tokens=s.output_tokens,
                rounds=s.rounds,
                length=_written(s.acceptance_length, "{:.2f}"),
                rate=_written(s.acceptance_rate, "{:.0%}"),
            ),
            part="figures",
            cursor=end,
        ),
        Stop(
            title=_("Rows and tiles"),
            text=tiles.format(group=group, n=len(full.draft), rows=rows, tile=TILE),
            part="panel",
            panel="tiles",
            cursor=Cursor(full.index + 1),
        ),
        Stop(
            title=_("What it bought"),
            text=speed.format(
                predicted=_written(predicted_speedup(s, plain), "{:.2f}x"),
                measured=_written(speedup(plain, s.tpot), "{:.2f}x"),
            ),
            part="panel",
            panel="speed",
            cursor=end,
        ),
        Stop(
            title=_("And the text is the same"),
            text=lossless.format(verdict=_verdict(trace)),
            part="figures",
            cursor=end,
        ),
    )


def _verdict(trace: Trace) -> str:
    report = trace.lossless
    if report is None or report.kind in ("not-run", "sampled"):
        return _("not checked token by token")
    if report.kind == "identical":
        return _("identical over {n} tokens").format(n=report.compared)
    return _("first difference at token {n}").format(n=report.first_divergence)


def _written(value: float | None, form: str) -> str:
    return _("n/a") if value is None else form.format(value)
