"""One prompt, one drafter, one decode, as slowly as the reader wants."""

from specviz.ui import controls, entry, opening, stage, status
from specviz.ui.state import current

entry.through_app()
state = current()
status.show(state)
ordered = controls.sidebar()
opening.repeat(state, ordered)
stage.show(state, ordered)
opening.greet(state)
