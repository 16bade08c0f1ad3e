"""One accept-or-reject decision: its arithmetic in sentences, its distributions as numbers."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import exp

from specviz.config import SamplingParams, SessionConfig
from specviz.events import Candidate, Check, Round
from specviz.views.cards import check_digits, digits_apart, greedy_note, number, rank
from specviz.views.sentences import never_drafted, refused_nodes
from specviz.views.spelling import quote
from specviz.words import _

BARS = 8  # tokens shown; what is left of p and q is one more bar


@dataclass(frozen=True, slots=True)
class Bar:
    """Probabilities of one token in one row, and what the rule makes of them."""

    token: int | None  # None: all other tokens together
    label: str
    p: float
    q: float
    chosen: bool = False  # the drafted token, or the target's own

    @property
    def overlap(self) -> float:
        """min(p, q): the mass that can be accepted."""
        return min(self.p, self.q)

    @property
    def residual(self) -> float:
        """max(p - q, 0): the mass a recovered token is drawn from."""
        return max(self.p - self.q, 0.0)


@dataclass(frozen=True, slots=True)
class Decision:
    """What the decision panel shows."""

    title: str
    lines: tuple[str, ...]
    bars: tuple[Bar, ...]  # empty if no distribution was recorded
    own: bool  # p is the model's own (temperature 1): a greedy p is all on one token
    drawn_from_p: bool = False  # no draft has a say in this row: a bonus, or plain decoding

    @property
    def series(self) -> tuple[str, ...]:
        """What the bars show of a token, attributes of `Bar` in the order of the table."""
        if self.drawn_from_p:
            return ("p",)
        return ("p", "q") if self.own else ("p", "q", "overlap", "residual")

    @property
    def columns(self) -> tuple[str, ...]:
        names = {
            "p": _("p, model's own") if self.own else "p",
            "q": "q",
            "overlap": "min(p, q)",
            "residual": "max(p - q, 0)",
        }
        return (_("Token"), *(names[series] for series in self.series))

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The chart as a table."""
        return tuple(
            (b.label, *(number(getattr(b, series)) for series in self.series)) for b in self.bars
        )

    @property
    def reading(self) -> str:
        """The chart in one sentence."""
        named = [bar for bar in self.bars if bar.token is not None]
        if not named:
            return _("No distribution was recorded for this decision.")
        first = max(named, key=lambda bar: bar.p)
        if "overlap" not in self.series:
            return _favourite(first, next((bar for bar in named if bar.chosen), first))
        text = _("The target likes {token} best (p = {p}); target and draft share {shared} of 1.")
        shared = min(1.0, sum(bar.overlap for bar in self.bars))
        return text.format(token=first.label, p=number(first.p), shared=number(shared))


def _favourite(first: Bar, other: Bar) -> str:
    if other is first:
        text = _("The target likes {token} best (p = {p}).")
        return text.format(token=first.label, p=number(first.p))
    digits = digits_apart(first.p, other.p)
    text = _("The target likes {token} best (p = {p}); {other} has p = {q}.")
    p, q = number(first.p, digits), number(other.p, digits)
    return text.format(token=first.label, p=p, other=other.label, q=q)


@dataclass(frozen=True, slots=True)
class Settings:
    """What decisions depend on beside the round itself."""

    pieces: Mapping[int, bytes]
    params: SamplingParams
    config: SessionConfig
    undraftable: Collection[int] = ()  # tokens that the draft vocabulary lacks


def decision(event: Round, node: int | str, settings: Settings) -> Decision:
    """Explain what became of a node, or of the target's own token for node "last"."""
    if isinstance(node, str):
        return _own_token(event, settings)
    token = quote(settings.pieces, event.draft.tokens[node])
    title = _("Round {round}, draft {n}: {token}").format(
        round=event.index + 1, n=event.draft.depths[node], token=token
    )
    check = next((c for c in event.checks if c.node == node), None)
    row = event.draft.parents[node] + 1
    lines = (
        [_unchecked(event, node)] if check is None else _check_lines(event, check, row, settings)
    )
    if check is not None and node in event.past_end:
        lines.append(_("It lies behind the end of the text, so it does not count."))
    if never_drafted(event, node, settings.undraftable):
        lines.append(_("What the target put in its place is not in the draft vocabulary."))
    lines += _processor_lines(event, node, settings)
    bars = _bars(event, row, event.draft.tokens[node], settings)
    if bars and settings.params.greedy:
        lines.append(greedy_note())
    return Decision(title, tuple(lines), bars, settings.params.greedy)


def _unchecked(event: Round, node: int) -> str:
    if node in event.past_end:
        return _("It lies behind the end of the text: nobody looked at it.")
    return _("Never checked: a draft before it was refused, so its row answers the wrong question.")


def _check_lines(event: Round, check: Check, row: int, settings: Settings) -> list[str]:
    if check.u is None:
        return _greedy_lines(event, check, row, settings.pieces)
    if settings.config.verifier == "block":
        return _block_lines(event, check)
    verdict = _("accepted") if check.accepted else _("rejected")
    sign = "<" if check.accepted else "≥"
    digits = check_digits(check)
    lines = []
    if event.q_kind == "point":
        lines.append(_("The drafter named one token (q = 1), so the threshold is p itself."))
    numbers = _("p = {p}, q = {q}, threshold = min(1, p / q) = {threshold}")
    limit = number(check.threshold, digits)
    p, q = number(check.p, digits), number(check.q, digits)
    lines.append(numbers.format(p=p, q=q, threshold=limit))
    lines.append(f"u = {number(check.u, digits)} {sign} {limit} → {verdict}")
    return lines


def _greedy_lines(event: Round, check: Check, row: int, pieces: Mapping[int, bytes]) -> list[str]:
    drafted = quote(pieces, event.draft.tokens[check.node])
    if check.accepted:
        text = _("The target's favourite is {token}{logprob}, which is what was drafted → accepted")
        return [text.format(token=drafted, logprob=_logprob(event, check.node))]
    best = _best(event, row, pieces)
    if best is None:
        return [_("{token} is not the target's favourite → rejected").format(token=drafted)]
    text = _("The target's favourite is {best}; the draft was {token}{logprob} → rejected")
    return [text.format(best=best, token=drafted, logprob=_logprob(event, check.node))]


def _best(event: Round, row: int, pieces: Mapping[int, bytes]) -> str | None:
    """Return the target's favourite of a row with its log-probability, None if unrecorded."""
    end = event.path[-1] + 1 if event.path else 0
    if row < len(event.rows):
        best = event.rows[row].best
        known = [c.logprob for c in event.rows[row].top if c.token == best]
    elif row == end and event.last_token is not None:
        best, known = event.last_token, []
        if event.last_logprob is not None:
            known = [event.last_logprob]
    else:
        return None
    logprob = _(" (logprob {x})").format(x=f"{known[0]:.2f}") if known else ""
    return quote(pieces, best) + logprob


def _logprob(event: Round, node: int) -> str:
    if node >= len(event.nodes):
        return ""
    score = event.nodes[node]
    if score.rank is None:
        return _(" (logprob {x})").format(x=f"{score.logprob:.2f}")
    text = _(" (rank {rank}, logprob {x})")
    return text.format(rank=rank(score.rank), x=f"{score.logprob:.2f}")


def _block_lines(event: Round, check: Check) -> list[str]:
    """Rebuild the weights of block verification (arXiv:2403.10444) from the checks."""
    weight = before = 1.0
    for each in event.checks[: check.node + 1]:
        before, weight = weight, min(weight * each.p / each.q, 1.0) if each.q else 1.0
    assert check.u is not None
    passes, digits = check.u < check.threshold, digits_apart(check.u, check.threshold)
    sign = "<" if passes else "≥"
    first = _("p = {p}, q = {q}; weight = min({before} · p / q, 1) = {weight}")
    lines = [
        first.format(
            p=number(check.p), q=number(check.q), before=number(before), weight=number(weight)
        ),
        _("test of the first {n}: u = {u} {sign} h = {h} → {verdict}").format(
            n=check.node + 1,
            u=number(check.u, digits),
            sign=sign,
            h=number(check.threshold, digits),
            verdict=_("passes") if passes else _("fails"),
        ),
    ]
    kept = sum(each.accepted for each in event.checks)
    verdict = _("accepted") if check.accepted else _("rejected")
    text = _("The longest prefix that passes has {n} → {verdict}")
    return [*lines, text.format(n=kept, verdict=verdict)]


def _processor_lines(event: Round, node: int, settings: Settings) -> list[str]:
    if not settings.params.penalised or node >= len(event.nodes):
        return []
    text = _(
        "Penalties and bias count the text and the drafts in front of this row; before them, at "
        "temperature 1, the model gave this token {p}."
    )
    return [text.format(p=number(exp(event.nodes[node].logprob)))]


def _own_token(event: Round, settings: Settings) -> Decision:
    title = _("Round {round}: the target's own token").format(round=event.index + 1)
    if event.last_token is None:
        ended = _("The text ended on a draft, so this round has no token of the target's own.")
        return Decision(title, (ended,), (), settings.params.greedy)
    row = event.path[-1] + 1 if event.path else 0
    token = quote(settings.pieces, event.last_token)
    title = _("Round {round}, the target's own token: {token}").format(
        round=event.index + 1, token=token
    )
    lines = [_why(event, settings, row)]
    if event.last_kind != "forced":
        lines.append(_drawn(event, token))
    if settings.params.penalised and event.last_logprob is not None:
        text = _("Before penalties and bias, at temperature 1, the model gave it {p}.")
        lines.append(text.format(p=number(exp(event.last_logprob))))
    bars = _bars(event, row, event.last_token, settings)
    if bars and settings.params.greedy and event.last_kind != "forced":
        lines.append(greedy_note())
    drawn_from_p = event.last_kind != "recovered"
    return Decision(title, tuple(lines), bars, settings.params.greedy, drawn_from_p)


def _why(event: Round, settings: Settings, row: int) -> str:
    """Say which row the target's own token comes from (gpt-fast#107: why there is one more)."""
    if event.last_kind == "forced":
        return _("You put this token in; nothing was drafted and nothing was drawn.")
    if event.last_kind == "plain":
        return _("Nothing was drafted: this is one step of plain decoding.")
    if event.last_kind == "bonus":
        text = _(
            "Nothing was refused. The pass scored {rows} rows for {n} drafts, and the row behind "
            "the last accepted draft gives this token without a pass of its own."
        )
        return text.format(rows=len(event.draft) + 1, n=len(event.draft))
    old = ", ".join(
        quote(settings.pieces, event.draft.tokens[node]) for node in refused_nodes(event)
    )
    if event.last_u is None:
        return _("{old} was refused; the target's favourite takes its place.").format(old=old)
    text = _("{old} was refused; the target draws again from what the draft left: max(p - q, 0).")
    return text.format(old=old)


def _drawn(event: Round, token: str) -> str:
    if event.last_u is None:
        text = _("{token} is the favourite of that row{logprob}.")
        known = event.last_logprob
        logprob = "" if known is None else _(" (logprob {x})").format(x=f"{known:.2f}")
        return text.format(token=token, logprob=logprob)
    text = _("u = {u} picks {token}, which had probability {p}.")
    p = "?" if event.last_p is None else number(event.last_p)
    return text.format(u=number(event.last_u), token=token, p=p)


def _bars(event: Round, row: int, token: int, settings: Settings) -> tuple[Bar, ...]:
    """Return the likeliest tokens of a row, the token in question among them, then the rest."""
    if row >= len(event.rows):
        return ()
    own = settings.params.greedy

    def bar(candidate: Candidate) -> Bar:
        p = exp(candidate.logprob) if own else candidate.p
        label = quote(settings.pieces, candidate.token)
        return Bar(candidate.token, label, p, candidate.q, candidate.token == token)

    ranked = sorted(map(bar, event.rows[row].top), key=lambda b: (not b.chosen, -max(b.p, b.q)))
    shown = sorted(ranked[:BARS], key=lambda b: -b.p)
    p_left = max(0.0, 1 - sum(b.p for b in shown))
    q_left = max(0.0, 1 - sum(b.q for b in shown)) if any(b.q for b in shown) else 0.0
    return (*shown, Bar(None, _("all other tokens"), p_left, q_left))
