"""The first half of our kernel: what is left of a row of logits after top-k, top-p and min-p.

No row is sorted. An edge is found by halving between values of the row, about twelve passes over
real logits, which stay in the L2 cache.
"""

import triton
import triton.language as tl


@triton.jit
def scaled(row, x, vocab, temperature):
    """Logits over temperature [BLOCK], -inf past the end."""
    value = tl.load(row + x, mask=x < vocab, other=float("-inf")).to(tl.float32)
    return tl.where(x < vocab, value / temperature, float("-inf"))


@triton.jit
def survey(row, vocab, temperature, BLOCK: tl.constexpr):
    """Greatest value and its first token, least finite value, how many finite, any NaN."""
    top, best = tl.full([], float("-inf"), tl.float32), tl.full([], 0, tl.int32)
    least, finite = tl.full([], float("inf"), tl.float32), tl.full([], 0, tl.int32)
    nan = tl.full([], 0, tl.int32)
    for start in range(0, vocab, BLOCK):
        x = start + tl.arange(0, BLOCK)
        y = scaled(row, x, vocab, temperature)
        nan = tl.maximum(nan, tl.max((y != y).to(tl.int32), 0))
        high = tl.max(y, 0)
        first = tl.min(tl.where(y == high, x, vocab), 0)
        best = tl.where(high > top, first, best)
        top = tl.maximum(top, high)
        there = y > float("-inf")
        least = tl.minimum(least, tl.min(tl.where(there, y, float("inf")), 0))
        finite += tl.sum(there.to(tl.int32), 0)
    return top, best, least, finite, nan


@triton.jit
def mass_from(row, edge, floor, top, vocab, temperature, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    """Mass (or number) of values at `edge` and above, least of them, greatest below `edge`.

    Values below `floor` are out already. Mass is exp(y - top), summed in float64.
    """
    total = tl.full([], 0.0, tl.float64)
    above, below = tl.full([], float("inf"), tl.float32), tl.full([], float("-inf"), tl.float32)
    for start in range(0, vocab, BLOCK):
        y = scaled(row, start + tl.arange(0, BLOCK), vocab, temperature)
        y = tl.where(y >= floor, y, float("-inf"))
        over = (y >= edge) & (y > float("-inf"))
        weight = tl.where(over, 1.0 if COUNT else tl.exp(y - top), 0.0)
        total += tl.sum(weight, 0).to(tl.float64)
        above = tl.minimum(above, tl.min(tl.where(over, y, float("inf")), 0))
        below = tl.maximum(below, tl.max(tl.where(over, float("-inf"), y), 0))
    return total, above, below


@triton.jit
def find_edge(
    row, needed, floor, least, top, vocab, temperature, COUNT: tl.constexpr, BLOCK: tl.constexpr
):
    """Greatest value of the row such that it and all above weigh `needed`: a search by halves.

    Both ends are values of the row, so it ends when they meet: about 12 passes over real logits.
    """
    low, high = least, top
    while low < high:
        middle = low + (high - low) * 0.5
        middle = tl.where(middle > low, middle, high)
        mass, above, below = mass_from(row, middle, floor, top, vocab, temperature, COUNT, BLOCK)
        enough = mass >= needed
        low = tl.where(enough, above, low)
        high = tl.where(enough, high, below)
    return low


@triton.jit
def _tie_end(row, edge, keep, vocab, temperature, BLOCK: tl.constexpr):
    """Token id of the `keep`-th value equal to `edge`: later ones are out."""
    seen, end = tl.full([], 0, tl.int32), tl.full([], 0, tl.int32) + vocab
    start = tl.full([], 0, tl.int32)
    while (start < vocab) & (end == vocab):
        x = start + tl.arange(0, BLOCK)
        tie = (scaled(row, x, vocab, temperature) == edge).to(tl.int32)
        order = seen + tl.cumsum(tie, 0)
        end = tl.min(tl.where((tie == 1) & (order == keep), x, vocab), 0)
        seen += tl.sum(tie, 0)
        start += BLOCK
    return end


@triton.jit
def nucleus(row, top_p, floor, top, vocab, temperature, BLOCK: tl.constexpr):
    """Edge and last tie of the smallest set of mass top_p (arXiv:1904.09751)."""
    whole, lowest, _ = mass_from(row, floor, floor, top, vocab, temperature, False, BLOCK)
    needed = whole * top_p
    edge = find_edge(row, needed, floor, lowest, top, vocab, temperature, False, BLOCK)
    upto, _, _ = mass_from(row, edge, floor, top, vocab, temperature, False, BLOCK)
    each = tl.exp(edge - top).to(tl.float64)
    # of n ties the i-th is in if what comes before it falls short of top_p
    spare = tl.maximum((upto - needed) / each, 0.0)
    last = tl.full([], 0, tl.int32) + vocab
    if spare >= 1.0:
        ties = tl.full([], 0, tl.int32)
        for start in range(0, vocab, BLOCK):
            y = scaled(row, start + tl.arange(0, BLOCK), vocab, temperature)
            ties += tl.sum((y == edge).to(tl.int32), 0)
        keep = tl.maximum(ties - spare.to(tl.int32), 1)
        last = _tie_end(row, edge, keep, vocab, temperature, BLOCK)
    return edge, last


@triton.jit
def row_p(row, x, edge, last, min_p, top, vocab, temperature):
    """exp(y - top) [like x] of the tokens that are in, 0 of the others."""
    y = scaled(row, x, vocab, temperature)
    weight = tl.exp(y - top)
    kept = ((y > edge) | ((y == edge) & (x <= last))) & (y > float("-inf")) & (weight >= min_p)
    return tl.where(kept, weight, 0.0)


@triton.jit
def row_support(
    row, top_k, top_p, min_p, top, least, finite, vocab, temperature,
    TOP_K: tl.constexpr, TOP_P: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Edge and last tie of what is in, and 1 / its mass in units of exp(y - top)."""
    edge, last = tl.full([], float("-inf"), tl.float32), tl.full([], 0, tl.int32) + vocab
    if TOP_K:
        if top_k < finite:
            edge = find_edge(row, top_k, least, least, top, vocab, temperature, True, BLOCK)
    if TOP_P:
        edge, last = nucleus(row, top_p, edge, top, vocab, temperature, BLOCK)
    total = tl.full([], 0.0, tl.float64)
    for start in range(0, vocab, BLOCK):
        x = start + tl.arange(0, BLOCK)
        weight = row_p(row, x, edge, last, min_p, top, vocab, temperature)
        total += tl.sum(weight, 0).to(tl.float64)
    return edge, last, (1.0 / total).to(tl.float32)
