"""One prompt, one drafter, one decode, as slowly as the reader wants."""

from specviz.ui import controls, opening, stage, status
from specviz.ui.state import current

state = current()
ordered = controls.sidebar()
opening.repeat(state, ordered)
stage.show(state, ordered)
status.show(state)
opening.greet(state)
