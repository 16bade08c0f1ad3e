"""What is known of one token, as the lines of its hover card."""

from collections.abc import Mapping
from math import exp

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
    greedy = bool(event.checks) and event.checks[0].u is None
    note: Card = [("", greedy_note())] if greedy else []
    found = {
        str(node): [
            *_token_lines(event.draft.tokens[node], pieces, event.start + depth - 1),
            *(_verdict_lines(event, node, greedy) if decided is None or node in known else []),
            *_origin_lines(event, node),
            *(note if decided is None or node in known else []),
        ]
        for node, depth in enumerate(event.draft.depths)
    }
    if event.last_token is not None and decided is None:
        found["last"] = _last_card(event, pieces)
    return found


DIGITS = 3  # significant digits of a number that is compared with none
EXACT = 17  # tell any two float64 apart


def number(value: float, digits: int = DIGITS) -> str:
    """Return a probability or a ratio with so many significant digits, never rounded up to 1."""
    if value < 1 and float(f"{value:.{digits}g}") == 1:
        return _("just under 1")
    if 0 < value < 0.001:
        return f"{value:.{max(1, digits - 2)}e}"
    return f"{value:.{digits}g}"


def digits_apart(one: float, other: float) -> int:
    """Return how many digits `number` needs to write two compared values differently."""
    if one == other:
        return DIGITS
    # below 0.001 `number` writes one digit fewer
    return next(n for n in range(DIGITS, EXACT + 2) if _read(one, n) != _read(other, n))


def _read(value: float, digits: int) -> float | str:
    """What a reader takes `number` for: 1.0e-03 and 0.001 are the same."""
    text = number(value, digits)
    return text if text == _("just under 1") else float(text)


def greedy_note() -> str:
    """Say why p is 0 or 1 at temperature 0 while the bars are not."""
    return _(
        "At temperature 0 verification uses a one-hot p: 1 at the target's favourite, else 0. "
        "The bars show the model's own probabilities."
    )


def _token_lines(token: int, pieces: Mapping[int, bytes], position: int) -> Card:
    return [
        (_("token"), quote(pieces, token)),
        (_("id"), str(token)),
        (_("bytes"), piece_of(pieces, token).hex(" ").upper() or _("none")),
        (_("position"), str(position)),
    ]


def _verdict_lines(event: Round, node: int, greedy: bool) -> Card:
    """What target and draft said of a node, and how that was decided."""
    lines = Card()
    check = next((c for c in event.checks if c.node == node), None)
    score = event.nodes[node] if node < len(event.nodes) else None
    if check is not None:
        lines += _check_lines(check)
    elif score is not None:
        lines += [(_p_name(greedy), number(score.p)), ("q", number(score.q))]
    if score is not None:
        lines += _own_lines(score.logprob, greedy)
        if score.rank is not None:
            lines.append((_("rank in target"), rank(score.rank)))
    return lines + _entropy_lines(event, event.draft.parents[node] + 1)


def _p_name(greedy: bool) -> str:
    return _("p, one-hot") if greedy else "p"


def _own_lines(logprob: float, greedy: bool) -> Card:
    """What the model itself said; where p is one-hot, as a probability too."""
    lines: Card = [(_("target's logprob"), f"{logprob:.2f}")]
    if greedy:
        lines.insert(0, (_("p, model's own"), number(exp(logprob))))
    return lines


def _check_lines(check: Check) -> Card:
    if check.u is None:
        return [(_p_name(True), number(check.p)), ("q", number(check.q))]
    digits = check_digits(check)
    lines: Card = [("p", number(check.p, digits)), ("q", number(check.q, digits))]
    if check.q:
        lines.append(("p / q", number(check.p / check.q, digits)))
    sign = "<" if check.accepted else "≥"
    verdict = _("accepted") if check.accepted else _("rejected")
    if check.accepted != (check.u < check.threshold):  # block verification looks ahead
        limit = number(check.threshold, digits)
        return [*lines, ("u", number(check.u, digits)), (_("threshold"), limit)]
    text = f"{number(check.u, digits)} {sign} {number(check.threshold, digits)} → {verdict}"
    return [*lines, ("u", text)]


def check_digits(check: Check) -> int:
    """Return the digits with which the numbers of a check read as they were compared."""
    least = digits_apart(check.p, check.q)
    return least if check.u is None else max(least, digits_apart(check.u, check.threshold))


def _last_card(event: Round, pieces: Mapping[int, bytes]) -> Card:
    assert event.last_token is not None
    lines = _token_lines(event.last_token, pieces, event.start + len(event.path))
    greedy = event.last_u is None and event.last_kind != "forced"
    if event.last_p is not None:
        drawn = event.last_kind == "recovered" and not greedy
        lines.append((_("p in the residual") if drawn else _p_name(greedy), number(event.last_p)))
    if event.last_logprob is not None:
        lines += _own_lines(event.last_logprob, greedy)
    if event.last_u is not None:
        lines.append(("u", number(event.last_u)))
    row = event.path[-1] + 1 if event.path else 0
    lines += _entropy_lines(event, row)
    return [*lines, ("", greedy_note())] if greedy else lines


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
        lines.append((_("parent"), _("root") if parent < 0 else str(parent + 1)))
    return lines
