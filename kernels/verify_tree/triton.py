"""Our kernel: one program for each row decides what happens there; the last to finish walks.

What happens at a row (which child is accepted, or which token is sampled) depends on the row
alone, so all rows work at once and the walk is a chase of pointers.
"""

from functools import lru_cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.verify_tree.call import Chance, Drafted, Sampling, Verdicts
from kernels.verify_tree.triton_probs import row_p, row_support, survey

BLOCK = 2048  # tokens at a time
WARPS = 8
SMALL = 16  # lanes for nodes, at least: fewer kernels to compile
VARYING = ("nodes", "top_k", "seed", "position")  # nor is one compiled for each kind of number


@triton.jit
def _next_child(parents, node, row, after, BIG: tl.constexpr):
    """First child of `row` past node `after`, BIG if there is none."""
    return tl.min(tl.where((parents == row - 1) & (node > after), node, BIG), 0)


@triton.jit
def _left(
    p, x, q, tokens, parents, masses, node, row, upto, vocab,
    BIG: tl.constexpr, DENSE: tl.constexpr,
):  # fmt: skip
    """What is left of p at tokens x after the children of `row` before node `upto` were refused.

    masses [NODES] is what each refusal left; 0 where rounding left nothing and p stays.
    """
    child = _next_child(parents, node, row, -1, BIG)
    while child < upto:
        mass = tl.sum(tl.where(node == child, masses, 0.0), 0)
        if DENSE:
            taken = tl.load(q + child.to(tl.int64) * vocab + x, mask=x < vocab, other=0.0)
        else:
            token = tl.sum(tl.where(node == child, tokens, 0), 0)
            taken = tl.where(x == token, 1.0, 0.0)
        rest = tl.maximum(p - taken, 0.0) / tl.where(mass > 0.0, mass, 1.0)
        p = tl.where(mass > 0.0, rest, p)
        child = _next_child(parents, node, row, child, BIG)
    return p


@triton.jit
def _uniform(uniforms, at, seed, position, purpose, sibling, PHILOX: tl.constexpr):
    """Number `at` of those given, or Philox 4x32-10 of (position, purpose, sibling): 53 bits."""
    if PHILOX:
        a, b, _, _ = tl.philox(seed, position, purpose, sibling, 0)
        high, low = (a >> 5).to(tl.uint64), (b >> 6).to(tl.uint64)
        u = (high * 67108864 + low).to(tl.float64) / 9007199254740992.0
    else:
        u = tl.load(uniforms + at)
    return u


@triton.jit
def _try_children(
    row, index, q, uniforms, parts, tokens, parents, node, edge, last, share, min_p, top, best,
    vocab, temperature, seed, position,
    GREEDY: tl.constexpr, DENSE: tl.constexpr, PHILOX: tl.constexpr, BIG: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Children in turn: the accepted one or -1, and what each refusal left of p."""
    masses = tl.zeros([BIG - 1], tl.float32)
    child = _next_child(parents, node, index, -1, BIG)
    chosen, sibling = tl.full([], -1, tl.int32), tl.full([], 0, tl.int32)
    while (child < BIG) & (chosen < 0):
        token = tl.sum(tl.where(node == child, tokens, 0), 0)
        mass = tl.full([], 0.0, tl.float64)
        if GREEDY:
            mine = tl.where(token == best, 1.0, 0.0)
            accepted = token == best
        else:
            weight = row_p(row, token, edge, last, min_p, top, vocab, temperature)
            mine = _left(
                weight * share, token, q, tokens, parents, masses, node, index, child, vocab,
                BIG, DENSE,
            )  # fmt: skip
            drawn = tl.full([], 1.0, tl.float32)
            if DENSE:
                drawn = tl.load(q + child.to(tl.int64) * vocab + token)
                for start in range(0, vocab, BLOCK):
                    x = start + tl.arange(0, BLOCK)
                    p = row_p(row, x, edge, last, min_p, top, vocab, temperature) * share
                    p = _left(
                        p, x, q, tokens, parents, masses, node, index, child, vocab, BIG, DENSE
                    )
                    taken = tl.load(q + child.to(tl.int64) * vocab + x, mask=x < vocab, other=0.0)
                    mass += tl.sum(tl.maximum(p - taken, 0.0), 0).to(tl.float64)
            else:
                mass += 1.0 - mine  # the rest of a distribution
            u = _uniform(uniforms, child, seed, position, 1, sibling, PHILOX)
            accepted = u * drawn < mine
        tl.store(parts + child, mine)
        chosen = tl.where(accepted, child, chosen)
        masses = tl.where(node == child, mass.to(tl.float32), masses)
        sibling += 1
        child = _next_child(parents, node, index, child, BIG)
    return chosen, masses


@triton.jit
def _sample(
    row, index, q, tokens, parents, masses, node, edge, last, share, min_p, top, vocab,
    temperature, u, DENSE: tl.constexpr, BIG: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Invert the distribution function of what is left at u: a token and its probability."""
    mass = tl.full([], 0.0, tl.float64)
    for start in range(0, vocab, BLOCK):
        x = start + tl.arange(0, BLOCK)
        p = row_p(row, x, edge, last, min_p, top, vocab, temperature) * share
        p = _left(p, x, q, tokens, parents, masses, node, index, BIG, vocab, BIG, DENSE)
        mass += tl.sum(p, 0).to(tl.float64)
    goal, below = u * mass, tl.full([], 0.0, tl.float64)
    start, found = tl.full([], 0, tl.int32), tl.full([], 0, tl.int32)
    searching = mass >= 0.0  # false at NaN
    while (start < vocab) & searching:
        x = start + tl.arange(0, BLOCK)
        p = row_p(row, x, edge, last, min_p, top, vocab, temperature) * share
        p = _left(p, x, q, tokens, parents, masses, node, index, BIG, vocab, BIG, DENSE)
        here = tl.sum(p, 0).to(tl.float64)
        final = tl.max(tl.where(p > 0.0, x, -1), 0)
        found = tl.where(final >= 0, final, found)  # rounding may leave the goal unreached
        if below + here > goal:
            climb = below + tl.cumsum(p.to(tl.float64), 0)
            crossed = tl.min(tl.where((climb > goal) & (p > 0.0), x, vocab), 0)
            found = tl.where(crossed < vocab, crossed, final)
            searching = False
        below += here
        start += BLOCK
    weight = row_p(row, found, edge, last, min_p, top, vocab, temperature) * share
    chance = _left(weight, found, q, tokens, parents, masses, node, index, BIG, vocab, BIG, DENSE)
    return found, chance


@triton.jit
def _walk(steps, whole, rows, NODES: tl.constexpr):
    """Follow the accepted children from the root and write the verdict.

    What other programs wrote is read past the L1 cache: volatile.
    """
    at, length = tl.full([], 0, tl.int32), tl.full([], 0, tl.int32)
    following = tl.load(steps, volatile=True).to(tl.int32)
    while following >= 0:
        tl.store(whole + 3 + length, following.to(tl.int64))
        length += 1
        at = following + 1
        following = tl.load(steps + at, volatile=True).to(tl.int32)
    spot = tl.arange(0, NODES)
    spare = (spot >= length) & (spot < rows - 1)
    tl.store(whole + 3 + spot, tl.full([NODES], -1, tl.int64), mask=spare)
    bad = tl.full([], -1, tl.int32)
    for i in range(rows):
        flag = tl.load(steps + 2 * rows + i, volatile=True)
        bad = tl.where((flag != 0) & (bad < 0), i, bad)
    tl.store(whole, length.to(tl.int64))
    tl.store(whole + 1, tl.load(steps + rows + at, volatile=True))
    tl.store(whole + 2, bad.to(tl.int64))


@triton.jit(do_not_specialize=VARYING)
def verify_rows(
    logits, tokens_in, parents_in, q, uniforms, steps, whole, parts, arrived,
    stride, vocab, nodes, temperature, top_k, top_p, min_p, seed, position,
    GREEDY: tl.constexpr, TOP_K: tl.constexpr, TOP_P: tl.constexpr, DENSE: tl.constexpr,
    PHILOX: tl.constexpr, NODES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One program, one row. steps [3, rows] int64: next node or -1, token, whether it is bad."""
    index, rows = tl.program_id(0), nodes + 1
    BIG: tl.constexpr = NODES + 1
    row = logits + index.to(tl.int64) * stride
    node = tl.arange(0, NODES)  # [NODES] one lane per node
    parents = tl.load(parents_in + node, mask=node < nodes, other=-2)
    tokens = tl.load(tokens_in + node, mask=node < nodes, other=-1).to(tl.int32)
    top, best, least, finite, nan = survey(row, vocab, temperature, BLOCK)
    edge, last, share = top, best, top
    if not GREEDY:
        edge, last, share = row_support(
            row, top_k, top_p, min_p, top, least, finite, vocab, temperature, TOP_K, TOP_P, BLOCK
        )
    if PHILOX:  # its counter is the text position, which the depth adds to
        up = index - 1
        while up >= 0:
            position += 1
            up = tl.load(parents_in + up)
    chosen, masses = _try_children(
        row, index, q, uniforms, parts, tokens, parents, node, edge, last, share, min_p, top, best,
        vocab, temperature, seed, position, GREEDY, DENSE, PHILOX, BIG, BLOCK,
    )  # fmt: skip
    picked, chance = best, tl.full([], 1.0, tl.float32)
    if not GREEDY:
        if chosen < 0:
            u = _uniform(uniforms, nodes + index, seed, position, 2, 0, PHILOX)
            picked, chance = _sample(
                row, index, q, tokens, parents, masses, node, edge, last, share, min_p, top, vocab,
                temperature, u, DENSE, BIG, BLOCK,
            )  # fmt: skip
    bad = (nan != 0) | (tl.abs(top) == float("inf"))
    tl.store(parts + nodes + index, chance)
    tl.store(steps + index, chosen.to(tl.int64))
    tl.store(steps + rows + index, picked.to(tl.int64))
    tl.store(steps + 2 * rows + index, bad.to(tl.int64))
    tl.debug_barrier()
    if tl.atomic_add(arrived, 1, sem="acq_rel") == nodes:
        tl.store(arrived, 0)
        _walk(steps, whole, rows, NODES)


def verify_tree(logits: Tensor, drafted: Drafted, sampling: Sampling, chance: Chance) -> Verdicts:
    """One launch of 1 + nodes programs; shapes as in the contract."""
    rows, vocab = logits.shape
    nodes, device = rows - 1, logits.device
    whole = torch.empty(3 + nodes, dtype=torch.int64, device=device)
    parts = torch.full((nodes + rows,), torch.nan, device=device)
    steps = torch.empty(3, rows, dtype=torch.int64, device=device)
    q = logits if drafted.q is None else drafted.q
    uniforms = parts if chance.uniforms is None else chance.uniforms
    verify_rows[(rows,)](
        logits, drafted.tokens, drafted.parents, q, uniforms, steps, whole, parts, _arrived(device),
        logits.stride(0), vocab, nodes, sampling.temperature or 1.0, sampling.top_k,
        sampling.top_p, sampling.min_p, chance.seed, chance.position,
        GREEDY=sampling.temperature == 0, TOP_K=0 < sampling.top_k < vocab,
        TOP_P=sampling.top_p < 1, DENSE=drafted.q is not None, PHILOX=chance.uniforms is None,
        NODES=triton.next_power_of_2(max(nodes, SMALL)), BLOCK=BLOCK, num_warps=WARPS,
    )  # fmt: skip
    return Verdicts(whole, parts)


@lru_cache
def _arrived(device: torch.device) -> Tensor:
    """Count of finished programs, zero between launches: a launch leaves it as it found it."""
    return torch.zeros((), dtype=torch.int32, device=device)
