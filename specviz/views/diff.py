"""Two runs side by side, in words, tables and two token panes."""

from collections.abc import Sequence

from specviz.metrics import Summary, speedup, summarise
from specviz.traces.diff import Diff, Divergence, Side
from specviz.traces.schema import Trace
from specviz.traces.timeline import Cursor
from specviz.views.html import visible
from specviz.views.tokens import Json, PaneOptions, pane
from specviz.words import _

Sheet = tuple[tuple[str, ...], Sequence[tuple[str, ...]]]  # headings and rows

HEIGHT = "20rem"


def headline(found: Diff) -> str:
    """Return in one sentence whether and where the texts part."""
    at = found.divergence
    if at is None:
        same = _("Both runs wrote the same text, {n} and {m} tokens.")
        return same.format(n=len(found.left.output), m=len(found.right.output))
    text = _(
        "The texts part at byte {byte} of the output: {left} at the left (token {i}), {right} at "
        "the right (token {j})."
    )
    return text.format(
        byte=at.byte,
        left=_token(at.left),
        right=_token(at.right),
        i=at.left.index,
        j=at.right.index,
    )


def _token(side: Side) -> str:
    if side.token is None:
        return _("the end")
    return f"'{visible(side.text, spaces=False)}'"


def margins(at: Divergence) -> str:
    """Say how sure each run was of its own token, as far as that was recorded."""
    left, right = (_margin(side) for side in (at.left, at.right))
    text = _("How much each target preferred its own token there: left {left}, right {right}.")
    return text.format(left=left, right=right)


def _margin(side: Side) -> str:
    if side.margin is None:
        return _("not recorded")
    return _("{x} nats").format(x=f"{side.margin:.3g}")


def side_pane(trace: Trace, cursor: Cursor, side: Side | None) -> Json:
    """Return the token pane up to a cursor; the token at which the runs part is marked."""
    marked = None
    if side is not None and side.round is not None and side.node is not None:
        marked = (side.round, side.node) if side.round < cursor.rounds else None
    return pane(trace, cursor.rounds, None, PaneOptions(height=HEIGHT, selected=marked))


def settings_table(found: Diff) -> Sheet:
    """Return the settings that differ, under their headings."""
    rows = [(s.name, s.left or _("none"), s.right or _("none")) for s in found.settings]
    return (_("Setting"), _("Left"), _("Right")), rows


def numbers_table(runs: Sequence[Trace]) -> Sheet:
    """Return the numbers of two runs side by side."""
    columns = (_("Number"), _("Left"), _("Right"))
    lists = [_numbers(trace) for trace in runs]
    return columns, [(name, *(each[name] for each in lists)) for name in lists[0]]


def _numbers(trace: Trace) -> dict[str, str]:
    s = summarise(trace.rounds)
    plain = trace.lossless.plain_tpot if trace.lossless else None
    return {
        _("Output tokens"): str(s.output_tokens),
        _("Rounds"): str(s.rounds),
        _("Tokens per round, E[L]"): _written(s.acceptance_length, "{:.2f}"),
        _("Drafts accepted"): _accepted(s),
        _("Per output token, recorded"): _written(s.tpot and 1000 * s.tpot, "{:.1f} ms"),
        _("Speedup, recorded"): _written(speedup(plain, s.tpot), "{:.2f}x"),
    }


def _accepted(s: Summary) -> str:
    rate = _written(s.acceptance_rate, "{:.0%}")
    return _("{rate}, {n} of {all}").format(rate=rate, n=s.accepted, all=s.drafted)


def _written(value: float | None, form: str) -> str:
    return _("n/a") if value is None else form.format(value)
