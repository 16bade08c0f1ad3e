"""Our kernel: G * rows packed rows of a KV head share one pass over its keys and values."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.tree_attention.call import Inputs
from kernels.tree_attention.plan import Plan

LOG2_E = 1.4426950408889634

# Sizes that change from call to call. A kernel of its own for each G, or for one row and for rows
# that 16 divides, would be compiled for seconds and run no faster: they set a few integers.
SIZES = ("group", "ancestors_batch", "rows", "words", "kv_heads", "splits")


@triton.jit
def _step(tile, keys, values, visible, top, mass, acc, scale):
    """One block of keys [BLOCK_D, n] and values [n, BLOCK_D] into the running softmax."""
    scores = tl.dot(tile, keys) * scale  # [BLOCK_M, n], in powers of two
    scores = tl.where(visible, scores, float("-inf"))
    higher = tl.maximum(top, tl.max(scores, 1))
    safe = tl.where(higher == float("-inf"), 0.0, higher)  # a row that has seen nothing yet
    weights = tl.exp2(scores - safe[:, None])
    shrink = tl.exp2(top - safe)
    acc = acc * shrink[:, None]
    acc = tl.dot(weights.to(values.dtype), values, acc)
    return higher, mass * shrink + tl.sum(weights, 1), acc


@triton.jit(do_not_specialize=SIZES)
def attend_split(
    q, k, v, past, ancestors, out, top_out, mass_out,
    q_batch, q_row, q_head, k_batch, k_head, k_key, v_batch, v_head, v_key,
    group, ancestors_batch, rows, words, kv_heads, splits, scale,
    HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, TAIL: tl.constexpr, DIRECT: tl.constexpr,
):  # fmt: skip
    """One tile of BLOCK_M packed rows, one KV head, one share of the keys.

    Packed row m is head m % group of token m // group: rows are exact, G need not divide BLOCK_M.
    Whole blocks of cached keys need no mask; what is left of them and the new keys go through the
    tail, in the last split. With DIRECT there is one split and the result is final.
    """
    pair = tl.program_id(1).to(tl.int64)  # offsets pass 2**31 at 64 x 8 heads x 32k keys
    batch, kv_head = pair // kv_heads, pair % kv_heads
    split = tl.program_id(2)
    packed = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)  # [BLOCK_M]
    token = packed // group
    live = packed < rows * group
    d = tl.arange(0, BLOCK_D)
    wide = d < HEAD_DIM
    first = kv_head * group  # query head of this KV head; those of a token follow each other
    q += batch * q_batch + first * q_head
    cell = token * q_row + (packed - token * group) * q_head
    tile = tl.load(q + cell[:, None] + d[None, :], mask=live[:, None] & wide[None, :], other=0.0)
    k += batch * k_batch + kv_head * k_head
    v += batch * v_batch + kv_head * v_head
    cached = tl.load(past + batch)
    blocks = cached // BLOCK_N
    share = tl.cdiv(blocks, splits)
    low, high = tl.minimum(split * share, blocks), tl.minimum((split + 1) * share, blocks)

    top = tl.full([BLOCK_M], float("-inf"), tl.float32)
    mass = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    for start in range(low * BLOCK_N, high * BLOCK_N, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        at_k, at_v = n[None, :] * k_key + d[:, None], n[:, None] * v_key + d[None, :]
        if HEAD_DIM == BLOCK_D:
            keys, values = tl.load(k + at_k), tl.load(v + at_v)
        else:
            keys = tl.load(k + at_k, mask=wide[:, None], other=0.0)
            values = tl.load(v + at_v, mask=wide[None, :], other=0.0)
        top, mass, acc = _step(tile, keys, values, True, top, mass, acc, scale)

    end = cached + rows
    tail = tl.where(split == splits - 1, blocks * BLOCK_N, end)
    ancestors += batch * ancestors_batch
    bits = token * words  # [BLOCK_M]
    for start in range(tail, end, TAIL):
        n = start + tl.arange(0, TAIL)
        there, new = n < end, n - cached
        at_k, at_v = n[None, :] * k_key + d[:, None], n[:, None] * v_key + d[None, :]
        keys = tl.load(k + at_k, mask=there[None, :] & wide[:, None], other=0.0)
        values = tl.load(v + at_v, mask=there[:, None] & wide[None, :], other=0.0)
        drafted = there & (new >= 0)
        word = tl.load(
            ancestors + (bits[:, None] + (new // 32)[None, :]),
            mask=live[:, None] & drafted[None, :], other=0,
        )  # fmt: skip
        seen = ((word >> (new % 32)[None, :]) & 1) != 0
        visible = there[None, :] & ((new < 0)[None, :] | seen)
        top, mass, acc = _step(tile, keys, values, visible, top, mass, acc, scale)

    if DIRECT:
        out += (batch * rows * kv_heads * group + first) * HEAD_DIM
        at = (packed + token * ((kv_heads - 1) * group)) * HEAD_DIM
        result = acc / tl.where(mass == 0.0, 1.0, mass)[:, None]
    else:
        base = (pair * splits + split) * rows * group
        out += base * HEAD_DIM
        at = packed * HEAD_DIM
        result = acc
        tl.store(top_out + base + packed, top, mask=live)
        tl.store(mass_out + base + packed, mass, mask=live)
    result = result.to(out.dtype.element_ty)
    tl.store(out + at[:, None] + d[None, :], result, mask=live[:, None] & wide[None, :])


@triton.jit(do_not_specialize=SIZES)
def combine_splits(
    parts, tops, masses, out, group, rows, kv_heads, splits,
    HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_S: tl.constexpr,
):  # fmt: skip
    """Weigh the splits of one packed row by what each saw: parts [pairs, splits, packed, dim]."""
    packed, pair = tl.program_id(0), tl.program_id(1).to(tl.int64)
    batch, kv_head = pair // kv_heads, pair % kv_heads
    token, head = packed // group, kv_head * group + packed % group
    s, d = tl.arange(0, BLOCK_S), tl.arange(0, BLOCK_D)
    row = (pair * splits + s) * rows * group + packed  # [BLOCK_S]
    top = tl.load(tops + row, mask=s < splits, other=float("-inf"))
    weight = tl.exp2(top - tl.max(top, 0))
    mass = tl.sum(weight * tl.load(masses + row, mask=s < splits, other=0.0), 0)
    there = (s < splits)[:, None] & (d < HEAD_DIM)[None, :]
    part = tl.load(parts + row[:, None] * HEAD_DIM + d[None, :], mask=there, other=0.0)
    result = tl.sum(weight[:, None] * part, 0) / mass
    at = ((batch * rows + token) * kv_heads * group + head) * HEAD_DIM
    tl.store(out + at + d, result.to(out.dtype.element_ty), mask=d < HEAD_DIM)


def tree_attention(inputs: Inputs, plan: Plan) -> Tensor:
    """Run the plan: one launch, two when keys are split."""
    q, k, v, ancestors = inputs.q, inputs.k, inputs.v, inputs.ancestors
    rows, kv_heads, group = inputs.rows, inputs.kv_heads, inputs.group
    pairs, packed, splits = inputs.batch * kv_heads, group * rows, plan.splits
    out = torch.empty_like(q, memory_format=torch.contiguous_format)
    direct = splits == 1
    parts, tops, masses = (out, out, out) if direct else _scratch(q, pairs, splits, packed)
    block_d = max(16, triton.next_power_of_2(inputs.head_dim))
    attend_split[(-(-packed // plan.block_m), pairs, splits)](
        q, k, v, inputs.past, ancestors, parts, tops, masses,
        *q.stride()[:3], *k.stride()[:3], *v.stride()[:3],
        group, 0 if ancestors.dim() == 2 else ancestors.stride(0), rows, ancestors.shape[-1],
        kv_heads, splits, plan.scale * LOG2_E,
        HEAD_DIM=inputs.head_dim, BLOCK_D=block_d, BLOCK_M=plan.block_m,
        BLOCK_N=plan.block_n, TAIL=plan.tail, DIRECT=direct,
        num_warps=plan.warps, num_stages=plan.stages,
    )  # fmt: skip
    if not direct:
        combine_splits[(packed, pairs)](
            parts, tops, masses, out, group, rows, kv_heads, splits,
            HEAD_DIM=inputs.head_dim, BLOCK_D=block_d,
            BLOCK_S=triton.next_power_of_2(splits), num_warps=4,
        )  # fmt: skip
    return out


def _scratch(q: Tensor, pairs: int, splits: int, packed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Make room for what splits leave: sums [.., packed, head_dim], tops and masses, float32."""
    size = (pairs, splits, packed)
    sums = torch.empty((*size, q.shape[-1]), device=q.device)
    return sums, torch.empty(size, device=q.device), torch.empty(size, device=q.device)
