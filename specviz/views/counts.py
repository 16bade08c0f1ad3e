"""What penalties counted in each row of a round (vllm issue 6718).

Row i is scored as if the drafts before it were text already, so its counts include them. If one of
them is refused, the row is thrown away with it.
"""

from dataclasses import dataclass

from specviz.traces.schema import Trace
from specviz.views.spelling import quote
from specviz.views.theme import label
from specviz.words import _


@dataclass(frozen=True, slots=True)
class Counts:
    """A table: one row per scored row with a draft behind it."""

    reading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def penalty_counts(trace: Trace, index: int) -> Counts:
    """Count each drafted token in the text its own row was conditioned on."""
    event = trace.rounds[index]
    text = trace.tokens[: event.start]
    output = text[len(trace.prompt) :]
    rows = []
    for node, (token, fate) in enumerate(zip(event.draft.tokens, event.fates, strict=True)):
        before = [event.draft.tokens[n] for n in event.draft.path_to(node)[:-1]]
        rows.append(
            (
                str(node + 1),
                quote(trace.pieces, token),
                str(text.count(token) + before.count(token)),
                str(output.count(token) + before.count(token)),
                label(fate),
            )
        )
    return Counts(
        _("Each row counts the drafts before it as text; a refused draft takes its rows with it."),
        ("#", _("Draft"), _("in prompt and output"), _("in the output"), _("Fate")),
        tuple(rows),
    )
