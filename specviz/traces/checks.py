"""Whether a trace is consistent: nothing in it may surprise a view.

Types are checked by `codec`; here is what types cannot say: ranges, trees, sums.
"""

import math
import re
from dataclasses import fields

from specviz.config import MAX_TOKENS
from specviz.events import (
    ROOT,
    Candidate,
    Check,
    Evidence,
    LosslessReport,
    NodeScore,
    Round,
    Row,
    Timing,
)
from specviz.traces.codec import decode
from specviz.traces.scalars import Damaged, Json, show
from specviz.traces.schema import HIDDEN, Counts, Environment, ModelCard, Trace, count, shown_tokens
from specviz.words import _

SCHEME = re.compile(r"[a-z0-9_]{1,40}")
RUN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
LOOSE = 1e-3  # float32 sums and 6-digit rounding may carry a probability over its limit
MOST_BYTES = 4096  # of one token

P, Q = ("p", 0, 1 + LOOSE), ("q", 0, 1 + LOOSE)
LOGPROB = ("logprob", -math.inf, LOOSE)
RANGES: dict[type, tuple[tuple[str, float, float], ...]] = {
    Check: (P, Q, ("threshold", 0, 1 + LOOSE), ("u", 0, 1)),
    NodeScore: (P, Q, LOGPROB, ("rank", 0, 2**31)),
    Candidate: (P, Q, LOGPROB),
    Row: (("entropy", -LOOSE, 1e3), ("draft_entropy", -LOOSE, 1e3)),
    Evidence: (("passes", 0, 1e9), ("caught_up", 0, 1e9), ("trained", 0, 1e9)),
    Timing: tuple((field.name, 0, 1e9) for field in fields(Timing)),
    Round: (
        ("last_p", 0, 1 + LOOSE),
        ("last_logprob", -math.inf, LOOSE),
        ("last_u", 0, 1),
        ("began", 0, 1e12),
    ),
    LosslessReport: (("worst_gap", 0, math.inf), ("plain_tpot", 0, 1e9)),
    Trace: (("prefill_seconds", 0, 1e9),),
    Environment: (("threads", 0, 2**31),),
}


def check(trace: Trace) -> None:
    """Raise Damaged at the first thing that does not add up."""
    _require(RUN_ID.fullmatch(trace.run_id), "run_id", trace.run_id, _("letters, digits, _ and -"))
    scheme = trace.config.scheme
    _require(SCHEME.fullmatch(scheme), "config.scheme", scheme, _("a-z, 0-9 and _"))
    _require(trace.prompt, "prompt", trace.prompt, _("at least one token"))
    _in_range(trace, "")
    _in_range(trace.environment, "environment")
    for name, card in (("target", trace.target), ("draft", trace.draft)):
        if card is not None:
            _check_card(card, name)
    position = len(trace.prompt)
    for index, r in enumerate(trace.rounds):
        try:
            _require(r.index == index, ".index", r.index, str(index))
            _require(
                r.start == position,
                ".start",
                r.start,
                _("{position}, prompt and rounds before").format(position=position),
            )
            _check_round(r)
        except Damaged as e:
            raise e.inside(f"rounds[{index}]") from None
        position += r.acceptance_length
    _require(
        position - len(trace.prompt) <= MAX_TOKENS,
        "output",
        position,
        _("{max_tokens} tokens").format(max_tokens=MAX_TOKENS),
    )
    _check_end(trace)
    _check_tokens(trace)


def check_counts(counts: Json, trace: Trace) -> None:
    """Raise Damaged where a header does not add up to its trace; seconds are rounded."""
    try:
        said = decode(Counts, counts)
    except Damaged as e:
        raise e.inside("counts") from None
    real = count(trace)
    for field in fields(Counts):
        value, sum_ = getattr(said, field.name), getattr(real, field.name)
        close = abs(value - sum_) <= (1e-3 * (1 + sum_) if isinstance(sum_, float) else 0)
        _require(
            close,
            f"counts.{field.name}",
            value,
            _("{sum_}, the sum of what follows").format(sum_=sum_),
        )


def _require(holds: object, where: str, given: object, allowed: str) -> None:
    if not holds:
        raise Damaged(
            _("is {given}; allowed: {allowed}").format(given=show(given), allowed=allowed), where
        )


def _check_card(card: ModelCard, where: str) -> None:
    for name in ("layers", "hidden", "heads", "kv_heads", "head_dim", "vocab", "context"):
        value = getattr(card, name)
        _require(0 < value < 2**31, f"{where}.{name}", value, _("1 to 2**31 - 1"))
    fits = card.heads % card.kv_heads == 0
    _require(
        fits,
        f"{where}.kv_heads",
        card.kv_heads,
        _("a divisor of {heads} heads").format(heads=card.heads),
    )


def _check_end(trace: Trace) -> None:
    finish, report, parent = trace.finish, trace.lossless, trace.parent
    if finish is not None and finish.text_bytes is not None:
        _require(finish.text_bytes >= 0, "finish.text_bytes", finish.text_bytes, _("0 or more"))
    if parent is not None:
        _require(0 <= parent.round <= len(trace.rounds), "parent.round", parent.round, _("a round"))
    if report is None:
        return
    _in_range(report, "lossless")
    at, size = report.first_divergence, len(trace.output)
    _require(
        0 <= report.compared <= size,
        "lossless.compared",
        report.compared,
        _("0 to {size}").format(size=size),
    )
    if at is not None:
        _require(0 <= at < size, "lossless.first_divergence", at, _("an output index"))
    elif report.kind == "BUG":
        raise Damaged(_("is 'BUG' without a first_divergence"), "lossless.kind")


def _check_round(r: Round) -> None:
    nodes = len(r.draft)
    _require(SCHEME.fullmatch(r.scheme), ".scheme", r.scheme, _("a-z, 0-9 and _"))
    _require(
        0 <= r.budget <= MAX_TOKENS,
        ".budget",
        r.budget,
        _("0 to {max_tokens}").format(max_tokens=MAX_TOKENS),
    )
    chain = (ROOT, *r.path, *r.past_end)
    in_range = all(0 <= node < nodes for node in chain[1:])
    _require(in_range, ".path", max(chain), _("nodes 0 to {nodes}").format(nodes=nodes - 1))
    linked = all(r.draft.parents[node] == chain[i] for i, node in enumerate(chain[1:]))
    _require(linked, ".path", chain[1:], _("each node the child of the one before"))
    _require(r.acceptance_length, ".last_token", None, _("a token, where nothing was accepted"))
    _check_ranges(r)
    _check_shapes(r, nodes)
    _check_decisions(r, set(chain[1:]))


def _check_ranges(r: Round) -> None:
    _in_range(r, "")
    _in_range(r.timing, ".timing")
    _in_range(r.evidence, ".evidence")
    for name, items in (("checks", r.checks), ("nodes", r.nodes), ("rows", r.rows)):
        for i, item in enumerate(items):
            _in_range(item, f".{name}[{i}]")
    for i, row in enumerate(r.rows):
        for j, bar in enumerate(row.top):
            _in_range(bar, f".rows[{i}].top[{j}]")
    for name in ("scores", "confidence", "unbiased_scores"):
        for i, score in enumerate(getattr(r.evidence, name)):
            _require(0 <= score <= 1 + LOOSE, f".evidence.{name}[{i}]", score, _("0 to 1"))


def _in_range(item: object, where: str) -> None:
    for name, low, high in RANGES[type(item)]:
        value = getattr(item, name)
        if value is not None and not low <= value <= high:
            raise Damaged(
                _("is {value}; allowed: {low} to {high}").format(
                    value=show(value), low=low, high=high
                ),
                f"{where}.{name}",
            )


def _check_shapes(r: Round, nodes: int) -> None:
    checked = [each.node for each in r.checks]
    _require(len(set(checked)) == len(checked), ".checks", checked, _("each node once"))
    _require(
        all(0 <= n < nodes for n in checked),
        ".checks",
        checked,
        _("nodes 0 to {nodes}").format(nodes=nodes - 1),
    )
    scores, rows = len(r.nodes), len(r.rows)
    _require(
        scores in (0, nodes),
        ".nodes",
        scores,
        _("a score for each of {nodes} nodes, or none").format(nodes=nodes),
    )
    _require(
        rows in (0, nodes + 1), ".rows", rows, _("{nodes} rows, or none").format(nodes=nodes + 1)
    )
    for name in ("scores", "unbiased", "unbiased_scores"):
        given = len(getattr(r.evidence, name))
        _require(
            given in (0, nodes),
            f".evidence.{name}",
            given,
            _("one of {nodes} nodes each").format(nodes=nodes),
        )
    sure = len(r.evidence.confidence)
    allowed = _("one of {nodes} nodes each, and one more").format(nodes=nodes)
    _require(sure in (0, nodes, nodes + 1), ".evidence.confidence", sure, allowed)
    for name in ("match", "source"):
        span = getattr(r.evidence, name)
        if span is not None:
            _require(0 <= span[0] <= span[1], f".evidence.{name}", span, _("start before end"))


def _check_decisions(r: Round, kept: set[int]) -> None:
    for i, each in enumerate(r.checks):
        stands = each.node in kept
        _require(
            each.accepted == stands,
            f".checks[{i}].accepted",
            each.accepted,
            _("{stands}, as in path").format(stands=stands),
        )
    wrong = [i for i, each in enumerate(r.checks) if _passed(each) not in (each.accepted, None)]
    # Block verification keeps a node whose own test failed if one after it passed.
    passed = [each.node for each in r.checks if _passed(each) is not False]
    if wrong and kept != set(range(max(passed, default=ROOT) + 1)):
        where = f".checks[{wrong[0]}].accepted"
        _require(False, where, r.checks[wrong[0]].accepted, _("what u < threshold says"))


def _passed(each: Check) -> bool | None:
    """What the draw says; None without one, or where u * q < p and u < p / q may differ."""
    if each.u is None or abs(each.u - each.threshold) < 1e-9:
        return None
    return each.u < each.threshold


def _check_tokens(trace: Trace) -> None:
    vocab = trace.target.vocab
    shown = shown_tokens(trace.prompt, trace.rounds, trace.lossless)
    wrong = sorted(t for t in shown if not 0 <= t < vocab)
    _require(not wrong, "a token id", wrong[:1], _("0 to {vocab}").format(vocab=vocab - 1))
    part = trace.redacted and set(trace.prompt) != {HIDDEN}
    _require(not part, "prompt", HIDDEN, _("ids, or -1 everywhere in a redacted trace"))
    lacking = sorted(shown - trace.pieces.keys())
    _require(not lacking, "pieces", lacking[:1], _("the bytes of every token shown"))
    unknown = sorted(set(trace.undraftable) - trace.pieces.keys())
    _require(not unknown, "undraftable", unknown[:1], _("tokens that pieces spell"))
    longest = max(map(len, trace.pieces.values()), default=0)
    _require(
        longest <= MOST_BYTES,
        "pieces",
        longest,
        _("{most_bytes} bytes a token").format(most_bytes=MOST_BYTES),
    )
