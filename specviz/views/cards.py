"""What is known of one token, as the lines of its hover card."""

from collections.abc import Mapping

from specviz.events import Check, Round
from specviz.views.spelling import piece_of, quote
from specviz.words import _

Line = tuple[str, str]  # label and value; a line without label is a sentence
Card = list[Line]


def cards(event: Round, pieces: Mapping[int, bytes], decided: int | None = None) -> dict[str, Card]:
    """Return the cards of one round by node, and by "last" for the target's own token.

    `decided` checks have happened so far, None: all, and the round is complete.
    """
    known = {check.node for check in event.checks[:decided]}
    found = {
        str(node): [
            *_token_lines(event.draft.tokens[node], pieces, event.start + depth - 1),
            *(_verdict_lines(event, node) if decided is None or node in known else []),
            *_origin_lines(event, node),
        ]
        for node, depth in enumerate(event.draft.depths)
    }
    if event.last_token is not None and decided is None:
        found["last"] = _last_card(event, pieces)
    return found


def number(value: float) -> str:
    """Return a probability or a ratio with three significant digits, never rounded up to 1."""
    if 0.9995 <= value < 1:
        return _("just under 1")
    return f"{value:.3g}" if value >= 0.001 or value == 0 else f"{value:.1e}"


def _token_lines(token: int, pieces: Mapping[int, bytes], position: int) -> Card:
    return [
        (_("token"), quote(pieces, token)),
        (_("id"), str(token)),
        (_("bytes"), piece_of(pieces, token).hex(" ").upper() or _("none")),
        (_("position"), str(position)),
    ]


def _verdict_lines(event: Round, node: int) -> Card:
    """What target and draft said of a node, and how that was decided."""
    lines = Card()
    check = next((c for c in event.checks if c.node == node), None)
    score = event.nodes[node] if node < len(event.nodes) else None
    if check is not None:
        lines += _check_lines(check)
    elif score is not None:
        lines += [("p", number(score.p)), ("q", number(score.q))]
    if score is not None:
        lines.append((_("target's logprob"), f"{score.logprob:.2f}"))
        if score.rank is not None:
            lines.append((_("rank in target"), rank(score.rank)))
    return lines + _entropy_lines(event, event.draft.parents[node] + 1)


def _check_lines(check: Check) -> Card:
    lines: Card = [("p", number(check.p)), ("q", number(check.q))]
    if check.u is None:
        return lines
    if check.q:
        lines.append(("p / q", number(check.p / check.q)))
    sign = "<" if check.accepted else "≥"
    verdict = _("accepted") if check.accepted else _("rejected")
    if check.accepted != (check.u < check.threshold):  # block verification looks ahead
        return [*lines, ("u", number(check.u)), (_("threshold"), number(check.threshold))]
    text = f"{number(check.u)} {sign} {number(check.threshold)} → {verdict}"
    return [*lines, ("u", text)]


def _last_card(event: Round, pieces: Mapping[int, bytes]) -> Card:
    assert event.last_token is not None
    lines = _token_lines(event.last_token, pieces, event.start + len(event.path))
    if event.last_p is not None:
        name = _("p in the residual") if event.last_kind == "recovered" else "p"
        lines.append((name, number(event.last_p)))
    if event.last_logprob is not None:
        lines.append((_("target's logprob"), f"{event.last_logprob:.2f}"))
    if event.last_u is not None:
        lines.append(("u", number(event.last_u)))
    row = event.path[-1] + 1 if event.path else 0
    return lines + _entropy_lines(event, row)


def rank(value: int) -> str:
    """Return a rank that counts from 1, with a word for the favourite."""
    return _("1 (favourite)") if value == 0 else str(value + 1)


def _entropy_lines(event: Round, at: int) -> Card:
    if at >= len(event.rows):
        return []
    row = event.rows[at]
    lines: Card = [(_("target's entropy"), _("{n} nats").format(n=f"{row.entropy:.2f}"))]
    if row.draft_entropy is not None:
        lines.append((_("draft's entropy"), _("{n} nats").format(n=f"{row.draft_entropy:.2f}")))
    return lines


def _origin_lines(event: Round, node: int) -> Card:
    evidence, lines = event.evidence, Card()
    if evidence.source is not None and event.draft.is_chain:
        text = _("copied from position {n}").format(n=evidence.source[0] + node)
        lines.append((_("came from"), text))
    elif evidence.store == "history":
        lines.append((_("came from"), _("earlier outputs")))
    elif evidence.passes:
        lines.append((_("came from"), _("pass {n} of the draft model").format(n=node + 1)))
    if node < len(evidence.scores):
        lines.append((_("drafter's score"), number(evidence.scores[node])))
    if not event.draft.is_chain:
        parent = event.draft.parents[node]
        lines.append((_("parent"), _("root") if parent < 0 else str(parent)))
    return lines
