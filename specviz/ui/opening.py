"""What happens by itself when a tab opens: the model loads, a shared live run is repeated."""

from specviz.ui.controls import Ordered, chosen_target
from specviz.ui.state import State, setting
from specviz.ui.weights import DEFAULT
from specviz.words import _


def greet(state: State) -> None:
    """Load the embedded model once the page is drawn, so that it never waits for it."""
    if not state.greeted and chosen_target() == DEFAULT:
        state.engine.load()
    state.greeted = True


def repeat(state: State, ordered: Ordered) -> None:
    """Compute the live run of a link again; with other models only when asked to.

    A link must not make this machine fetch or open a model that its author chose.
    """
    if not state.repeat:
        return
    state.repeat = False
    if setting("target") or setting("draft"):
        state.notes.append(
            _("This link is of a live run with another model. Press Run live to load it.")
        )
    elif ordered.order is not None:
        awaited = state.awaited
        state.start(ordered.order)
        state.awaited, state.follow = awaited, awaited is None
        state.notes.append(_("The run of this link is being repeated with the same settings."))
