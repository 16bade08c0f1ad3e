"""Verification on a GPU: one launch decides, and two small copies tell the host everything.

The uniforms are those of the session, drawn on the host and sent along, so a GPU repeats what a
CPU decides and rewinding repeats both.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from specviz.config import SamplingParams
from specviz.events import ROOT, Check, Draft
from specviz.models.own_kernels import find_own_kernels
from specviz.verify.draws import Draws
from specviz.verify.verdict import Verdict

find_own_kernels()  # before the next line, which needs it
from kernels.verify_tree import Chance, Drafted, Sampling, Verdicts, verify_tree  # noqa: E402


def verify_on_device(
    draft: Draft,
    q: Tensor | None,
    logits: Tensor,
    params: SamplingParams,
    draws: tuple[Draws, int],
) -> Verdict:
    """Decide as `verify_sampled` or, at temperature 0, `verify_greedy` would.

    logits [1 + nodes, vocab] are penalised already; q [nodes, vocab] or None; `draws` come with the
    text position of the first drafted token. The only wait for the device is for the verdict.
    """
    uniforms = session_uniforms(draft, *draws)
    device = logits.device
    sent = torch.tensor(uniforms, dtype=torch.float64, pin_memory=device.type == "cuda")
    drafted = Drafted(
        tokens=torch.tensor(draft.tokens, dtype=torch.int64).to(device, non_blocking=True),
        parents=torch.tensor(draft.parents, dtype=torch.int32).to(device, non_blocking=True),
        q=q,
    )
    sampling = Sampling(
        temperature=params.temperature,
        top_k=params.top_k,
        top_p=params.top_p,
        min_p=params.min_p,
    )
    chance = Chance(uniforms=sent.to(device, non_blocking=True))
    return read_verdict(draft, q, uniforms, verify_tree(logits, drafted, sampling, chance), params)


def session_uniforms(draft: Draft, draws: Draws, position: int) -> list[float]:
    """Return what a session draws: to accept each node, then to sample after root and each node."""
    depths = draft.depths
    accept = [0.0] * len(draft)
    for node in (ROOT, *range(len(draft))):
        depth = 0 if node == ROOT else depths[node]
        for sibling, child in enumerate(draft.children(node)):
            accept[child] = draws.uniform(position + depth, "accept", sibling)
    return [*accept, *(draws.uniform(position + depth, "sample") for depth in (0, *depths))]


def read_verdict(
    draft: Draft,
    q: Tensor | None,
    uniforms: Sequence[float],
    found: Verdicts,
    params: SamplingParams,
) -> Verdict:
    """Bring a verdict to the host, with every check on the way."""
    device, nodes = found.whole.device, len(draft)
    drawn = torch.ones(nodes)
    if q is not None and nodes:
        tokens = torch.tensor(draft.tokens, device=device)
        drawn = q.gather(1, tokens[:, None])[:, 0].to("cpu", non_blocking=True)
    whole = found.whole.to("cpu", non_blocking=True)
    parts = found.parts.to("cpu", non_blocking=True)
    if device.type == "cuda":
        torch.cuda.current_stream(device).synchronize()
    accepted, token = int(whole[0]), int(whole[1])
    path: tuple[int, ...] = tuple(whole[3 : 3 + accepted].tolist())
    checks, node = list[Check](), ROOT
    for goal in (*path, None):
        for child in draft.children(node):
            p, q_token, stands = float(parts[child]), float(drawn[child]), child == goal
            u = None if params.greedy else uniforms[child]
            threshold = p if params.greedy else min(1.0, p / q_token)
            checks.append(Check(child, p, q_token, threshold, u, stands))
            if stands:
                break
        node = node if goal is None else goal
    last_u = None if params.greedy else uniforms[nodes + node + 1]
    return Verdict(path, token, tuple(checks), float(parts[nodes + node + 1]), last_u)
