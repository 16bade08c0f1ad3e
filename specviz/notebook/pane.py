"""The app's token pane in a notebook; plain HTML or text where no widget can run."""

import logging
from typing import TYPE_CHECKING

from specviz.notebook.still import still
from specviz.traces.schema import Trace
from specviz.views.cards import cards
from specviz.views.html import tag
from specviz.views.sentences import sentence, text_twin
from specviz.views.tokens import PaneOptions, pane
from specviz.words import _

if TYPE_CHECKING:
    from specviz.notebook.widget import PaneWidget

Json = dict[str, object]
HEIGHT = "22rem"


def payload(trace: Trace) -> Json:
    """Return what the widget draws: the whole run; it shows as many rounds as it is asked to."""
    whole = pane(trace, len(trace.rounds), None, PaneOptions(height=HEIGHT))
    details = {str(event.index): cards(event, trace.pieces) for event in trace.rounds}
    return {
        "pane": whole | {"details": details, "live": ""},
        "says": [sentence(event, trace.pieces) for event in trace.rounds],
        "words": {
            "start": _("The prompt is read; nothing is drafted yet. Step forward to begin."),
            "back": _("Round back"),
            "forward": _("Round"),
            "place": _("{n} of {all} rounds"),
            "rounds": _("Rounds"),
        },
    }


class Pane:
    """Show a run token by token: `Pane(trace)` as the last line of a cell.

    Viewers show what they can: the live pane, the same tokens as HTML, or a sentence per round.
    `rounds` is how many rounds are on screen; `selected` is the token that was clicked.
    """

    def __init__(self, trace: Trace, rounds: int | None = None) -> None:
        """Draw the first `rounds` rounds of `trace`, all of them by default."""
        count = len(trace.rounds)
        self.trace = trace
        self._rounds = count if rounds is None else max(0, min(rounds, count))
        self._widget: PaneWidget | None = None

    @property
    def rounds(self) -> int:
        """Rounds on screen, as the reader left the slider."""
        return self._rounds if self._widget is None else int(self._widget.shown)

    @property
    def selected(self) -> tuple[int, int | str] | None:
        """Round and node ("last" for the target's own token) that was clicked, if any."""
        picked = self._widget.selected if self._widget is not None else None
        return (picked["round"], picked["node"]) if picked else None

    def _ipython_display_(self) -> None:
        from IPython.display import display

        for bundle in self.outputs():
            display(bundle, raw=True)  # type: ignore[no-untyped-call]

    def outputs(self) -> tuple[Json, ...]:
        """Return what the cell puts out, as MIME bundles: the widget if there is one, the twin.

        Two outputs, since viewers take a widget's entry of a bundle even where they cannot run it.
        The twin is open; the widget folds it once it runs.
        """
        twin = text_twin(self.trace.rounds[: self._rounds], self.trace.pieces)
        picture = still(self.trace, self._rounds)
        live = self._live()
        if live:
            live = live | {"text/plain": _("The token pane, where widgets run.")}
            title = tag("summary", _("Round by round, without a script"))
            picture = tag("details", title, picture, open="", class_="nb-still")
        text: Json = {"text/plain": "\n".join(twin.sentences), "text/html": picture}
        return (live, text) if live else (text,)

    def _live(self) -> Json:
        """Return the bundle of the widget; nothing where anywidget is not installed."""
        try:
            from specviz.notebook.widget import PaneWidget
        except ImportError as error:
            logging.getLogger(__name__).info("no live token pane: %s", error)
            return {}
        if self._widget is None:
            self._widget = PaneWidget(run=payload(self.trace), shown=self._rounds)
        return self._widget.view()
