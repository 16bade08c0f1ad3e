"""One accept-or-reject decision of the round at the cursor, never one that is still to come."""

from collections.abc import Mapping

import streamlit as st

from specviz.events import Round
from specviz.traces.schema import Trace
from specviz.traces.timeline import Cursor, micro_steps, state_at
from specviz.ui.messages import literal
from specviz.ui.state import State
from specviz.ui.table import table
from specviz.views.charts import decision_chart
from specviz.views.decision import Settings, decision
from specviz.views.spelling import quote
from specviz.words import _

LAST = "last"  # the target's own token
Node = int | str


def show(state: State, trace: Trace) -> None:
    """Draw the decision on one token: words, arithmetic, bars."""
    at = state.cursor.clamp(trace.rounds)
    event, nodes = trace.rounds[at.shown], decided(trace, at)
    st.markdown(f"**{literal(_('Decision'))}**")
    if not nodes:
        st.markdown(_("Nothing is decided yet in this round."))
        return
    node = st.selectbox(
        _("Token"),
        nodes,
        index=nodes.index(default(state, event, nodes, at)),
        format_func=lambda node: name(event, node, trace.pieces),
        key=f"decision-{at}-{state.chosen}",
        label_visibility="collapsed",
    )
    shown = decision(
        event, node, Settings(trace.pieces, trace.params, trace.config, trace.undraftable)
    )
    for line in shown.lines:
        st.markdown(literal(line))
    if shown.bars:
        st.plotly_chart(
            decision_chart(shown),
            key="decision-chart",
            config={"displayModeBar": False},
            alt=shown.reading,
        )
        with st.expander(_("As a table")):
            table(shown.columns, shown.rows, shown.title)


def decided(trace: Trace, at: Cursor) -> list[Node]:
    """Return the tokens whose fate is known at a place, in the order of the rows."""
    event = trace.rounds[at.shown]
    if not at.micro:
        return [*range(len(event.draft)), LAST]
    fates = state_at(trace.rounds, at).nodes
    return [node for node, fate in enumerate(fates) if fate in ("accepted", "rejected")]


def default(state: State, event: Round, nodes: list[Node], at: Cursor) -> Node:
    """Return the token to explain first: the one picked, just decided, or most telling.

    That is the first draft refused; what stands behind the end of the text tells least.
    """
    if state.chosen is not None and state.chosen[0] == event.index and state.chosen[1] in nodes:
        return state.chosen[1]
    if at.micro:
        return nodes[-1]
    refused = [node for node, fate in enumerate(event.fates) if fate == "rejected"]
    if refused and not event.past_end:
        return refused[0]
    return event.path[-1] if event.path else LAST


def name(event: Round, node: Node, pieces: Mapping[int, bytes]) -> str:
    """Return the name of a token in the list."""
    if isinstance(node, int):
        token = quote(pieces, event.draft.tokens[node])
        return _("Draft {n}: {token}").format(n=event.draft.depths[node], token=token)
    if event.last_token is None:
        return _("The target's own token: none")
    token = quote(pieces, event.last_token)
    return _("The target's own token: {token}").format(token=token)


def under_way(event: Round, at: Cursor, pieces: Mapping[int, bytes]) -> str:
    """Say in one sentence what the small step before the cursor did."""
    step = micro_steps(event)[at.micro - 1]
    if step.node is None:
        text = _("Round {round}: the target scores {rows} rows in one pass.")
        return text.format(round=event.index + 1, rows=len(event.draft) + 1)
    token = quote(pieces, event.draft.tokens[step.node])
    depth = event.draft.depths[step.node]
    if step.kind == "draft":
        text = _("Round {round}: the drafter proposes {token} as draft {n}.")
        return text.format(round=event.index + 1, token=token, n=depth)
    accepted = next(check.accepted for check in event.checks if check.node == step.node)
    if accepted:
        text = _("Round {round}: draft {n}, {token}, is accepted.")
    else:
        text = _("Round {round}: draft {n}, {token}, is rejected.")
    return text.format(round=event.index + 1, token=token, n=depth)
