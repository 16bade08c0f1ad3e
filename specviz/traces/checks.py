"""Whether a trace is consistent: nothing in it may surprise a view.

Types are checked by `codec`; here is what types cannot say: ranges, trees, sums.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from specviz.config import MAX_TOKENS
from specviz.events import ROOT, Check, Round
from specviz.traces.scalars import Damaged, show
from specviz.traces.schema import HIDDEN, Counts, ModelCard, Trace, count, shown_tokens

SCHEME = re.compile(r"[a-z0-9_]{1,40}")
RUN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
LOOSE = 1e-3  # float32 sums and 6-digit rounding may carry a probability over its limit
MOST_BYTES = 4096  # of one token


def check(trace: Trace) -> None:
    """Raise Damaged at the first thing that does not add up."""
    _require(RUN_ID.fullmatch(trace.run_id), "run_id", trace.run_id, "letters, digits, _ and -")
    scheme = trace.config.scheme
    _require(SCHEME.fullmatch(scheme), "config.scheme", scheme, "a-z, 0-9 and _")
    _require(trace.prompt, "prompt", trace.prompt, "at least one token")
    _require(trace.prefill_seconds >= 0, "prefill_seconds", trace.prefill_seconds, "0 or more")
    for name, card in (("target", trace.target), ("draft", trace.draft)):
        if card is not None:
            _check_card(card, name)
    _check_end(trace)
    position = len(trace.prompt)
    for index, r in enumerate(trace.rounds):
        try:
            _require(r.index == index, ".index", r.index, str(index))
            _require(
                r.start == position, ".start", r.start, f"{position}, prompt and rounds before"
            )
            _check_round(r)
        except Damaged as e:
            raise e.inside(f"rounds[{index}]") from None
        position += r.acceptance_length
    _require(position - len(trace.prompt) <= MAX_TOKENS, "output", position, f"{MAX_TOKENS} tokens")
    _check_tokens(trace)


def check_counts(said: Counts, trace: Trace) -> None:
    """Raise Damaged where a header does not add up to its trace; seconds are rounded."""
    real = count(trace)
    close = abs(said.decode_seconds - real.decode_seconds) <= 1e-3 * (1 + real.decode_seconds)
    same = replace(said, decode_seconds=real.decode_seconds) == real
    _require(close and same, "counts", said, f"the sum of what follows, {real}")


def _require(holds: object, where: str, given: object, allowed: str) -> None:
    if not holds:
        raise Damaged(f"is {show(given)}; allowed: {allowed}", where)


def _check_card(card: ModelCard, where: str) -> None:
    for name in ("layers", "hidden", "heads", "kv_heads", "head_dim", "vocab", "context"):
        value = getattr(card, name)
        _require(0 < value < 2**31, f"{where}.{name}", value, "1 to 2**31 - 1")
    fits = card.heads % card.kv_heads == 0
    _require(fits, f"{where}.kv_heads", card.kv_heads, f"a divisor of {card.heads} heads")


def _check_end(trace: Trace) -> None:
    finish, report, parent = trace.finish, trace.lossless, trace.parent
    if finish is not None and finish.text_bytes is not None:
        _require(finish.text_bytes >= 0, "finish.text_bytes", finish.text_bytes, "0 or more")
    if parent is not None:
        _require(0 <= parent.round <= len(trace.rounds), "parent.round", parent.round, "a round")
    if report is None:
        return
    at, size = report.first_divergence, len(trace.output)
    _require(0 <= report.compared <= size, "lossless.compared", report.compared, f"0 to {size}")
    if at is not None:
        _require(0 <= at < size, "lossless.first_divergence", at, "an output index")
    elif report.kind == "BUG":
        raise Damaged("is 'BUG' without a first_divergence", "lossless.kind")


def _check_round(r: Round) -> None:
    nodes = len(r.draft)
    _require(SCHEME.fullmatch(r.scheme), ".scheme", r.scheme, "a-z, 0-9 and _")
    _require(0 <= r.budget <= MAX_TOKENS, ".budget", r.budget, f"0 to {MAX_TOKENS}")
    chain = (ROOT, *r.path, *r.past_end)
    in_range = all(0 <= node < nodes for node in chain[1:])
    _require(in_range, ".path", max(chain), f"nodes 0 to {nodes - 1}")
    linked = all(r.draft.parents[node] == chain[i] for i, node in enumerate(chain[1:]))
    _require(linked, ".path", chain[1:], "each node the child of the one before")
    _require(r.acceptance_length, ".last_token", None, "a token, where nothing was accepted")
    for i, (name, low, high, value) in enumerate(_numbers(r)):
        if value is not None and not low <= value <= high:
            raise Damaged(f"is {value}; allowed: {low} to {high}", f".{name} (number {i})")
    _check_shapes(r, nodes)
    kept = set(chain[1:])
    for i, each in enumerate(r.checks):
        try:
            _check_decision(each, each.node in kept)
        except Damaged as e:
            raise e.inside(f".checks[{i}]") from None


def _check_shapes(r: Round, nodes: int) -> None:
    checked = [each.node for each in r.checks]
    _require(len(set(checked)) == len(checked), ".checks", checked, "each node once")
    _require(all(0 <= n < nodes for n in checked), ".checks", checked, f"nodes 0 to {nodes - 1}")
    scores, rows = len(r.nodes), len(r.rows)
    _require(scores in (0, nodes), ".nodes", scores, f"a score for each of {nodes} nodes, or none")
    _require(rows in (0, nodes + 1), ".rows", rows, f"{nodes + 1} rows, or none")
    drafted = len(r.evidence.scores)
    _require(drafted in (0, nodes), ".evidence.scores", drafted, f"one of {nodes} nodes each")
    for name in ("match", "source"):
        span = getattr(r.evidence, name)
        if span is not None:
            _require(0 <= span[0] <= span[1], f".evidence.{name}", span, "start before end")


def _check_decision(each: Check, kept: bool) -> None:
    _require(each.accepted == kept, ".accepted", each.accepted, f"{kept}, as the path says")
    # u * q < p and u < p / q may differ in the last bit
    if each.u is not None and abs(each.u - each.threshold) > 1e-9:
        drawn = each.u < each.threshold
        _require(drawn == each.accepted, ".accepted", each.accepted, f"{drawn}: u < threshold")


def _numbers(r: Round) -> Iterator[tuple[str, float, float, float | None]]:
    """Name, least, most and value of everything that has a range."""
    one, inf = 1 + LOOSE, float("inf")
    yield "last_p", 0, one, r.last_p
    yield "last_logprob", -inf, LOOSE, r.last_logprob
    yield "last_u", 0, 1, r.last_u
    yield "began", 0, 1e12, r.began
    for name in ("draft", "score", "verify", "commit", "record", "total"):
        yield f"timing.{name}", 0, 1e9, getattr(r.timing, name)
    for each in r.checks:
        yield from (("p", 0, one, each.p), ("q", 0, one, each.q), ("u", 0, 1, each.u))
        yield "threshold", 0, one, each.threshold
    for score in r.nodes:
        yield from (("p", 0, one, score.p), ("q", 0, one, score.q))
        yield from (("logprob", -inf, LOOSE, score.logprob), ("rank", 0, 2**31, score.rank))
    for row in r.rows:
        yield "entropy", -LOOSE, 1e3, row.entropy
        yield "draft_entropy", -LOOSE, 1e3, row.draft_entropy
        for bar in row.top:
            yield from (("p", 0, one, bar.p), ("q", 0, one, bar.q))
            yield "logprob", -inf, LOOSE, bar.logprob
    yield from (("evidence.scores", 0, one, score) for score in r.evidence.scores)
    yield "evidence.passes", 0, 1e9, r.evidence.passes
    yield "evidence.caught_up", 0, 1e9, r.evidence.caught_up


def _check_tokens(trace: Trace) -> None:
    vocab = trace.target.vocab
    shown = shown_tokens(trace.prompt, trace.rounds, trace.lossless)
    wrong = sorted(t for t in shown if not 0 <= t < vocab)
    _require(not wrong, "a token id", wrong[:1], f"0 to {vocab - 1}")
    part = trace.redacted and set(trace.prompt) != {HIDDEN}
    _require(not part, "prompt", HIDDEN, "ids, or -1 everywhere in a redacted trace")
    lacking = sorted(shown - trace.pieces.keys())
    _require(not lacking, "pieces", lacking[:1], "the bytes of every token shown")
    longest = max(map(len, trace.pieces.values()), default=0)
    _require(longest <= MOST_BYTES, "pieces", longest, f"{MOST_BYTES} bytes a token")
