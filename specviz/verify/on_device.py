"""Verification on a GPU: one launch decides, and one small copy tells the host everything.

The uniforms are those of the session, drawn on the host and sent along, so a GPU repeats what a
CPU decides and rewinding repeats both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from specviz.config import SamplingParams
from specviz.events import EMPTY, ROOT, Check, Draft
from specviz.models.own_kernels import find_own_kernels
from specviz.models.transfer import fetch, send
from specviz.verify.draws import Draws
from specviz.verify.processors import check_mass, numerics_error, of_tokens
from specviz.verify.verdict import Verdict

find_own_kernels()  # before the next line, which needs it
from kernels.verify_tree import Chance, Drafted, Sampling, verify_tree  # noqa: E402


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a run a draft is decided: what draws depend on, and what errors name."""

    draws: Draws
    start: int  # text position of the first drafted token
    index: int = 0  # of the round
    target: str = ""
    drafter: str = ""


def verify_on_device(
    draft: Draft, q: Tensor | None, logits: Tensor, params: SamplingParams, place: Place
) -> Verdict:
    """Decide as `verify_sampled` or, at temperature 0, `verify_greedy` would.

    logits [1 + nodes, vocab] are penalised already; q [nodes, vocab] or None. The only wait for
    the device is for the verdict.

    Raises:
        NumericsError: a row holds NaN or Inf.
        DraftError: a token was drawn to which its q gives no mass.
    """
    uniforms, device = session_uniforms(draft, place.draws, place.start), logits.device
    drafted = Drafted(
        tokens=send(draft.tokens, device),
        parents=send(draft.parents, device, torch.int32),
        q=q,
    )
    sampling = Sampling(
        temperature=params.temperature,
        top_k=params.top_k,
        top_p=params.top_p,
        min_p=params.min_p,
    )
    chance = Chance(uniforms=send(uniforms, device, torch.float64))
    found = verify_tree(logits, drafted, sampling, chance)
    drawn = found.parts[:0] if q is None else of_tokens(q, draft)
    whole, parts, masses = fetch((found.whole, found.parts, drawn))
    if whole[2] >= 0:
        what = f"logits of {place.target}"
        raise numerics_error(what, int(whole[2]), place.index, place.start)
    if q is not None:
        check_mass(place.drafter, draft.tokens, masses)
    read = _Read(whole, parts, masses or [1.0] * len(draft), uniforms)
    return read.verdict(draft, greedy=params.greedy)


@lru_cache
def refusal(device: torch.device) -> str:
    """Return why the kernel cannot run on this device, "" if it can; tried once."""
    row = torch.zeros(1, 8, device=device)
    try:
        verify_on_device(EMPTY, None, row, SamplingParams(), Place(Draws(0), 1))
    except Exception as error:  # of triton, its compiler, the one of C, or the driver
        return f"{type(error).__name__}: {error}"
    return ""


def session_uniforms(draft: Draft, draws: Draws, position: int) -> list[float]:
    """Return what a session draws: to accept each node, then to sample after root and each node."""
    depths = draft.depths
    accept = [0.0] * len(draft)
    for node in (ROOT, *range(len(draft))):
        depth = 0 if node == ROOT else depths[node]
        for sibling, child in enumerate(draft.children(node)):
            accept[child] = draws.uniform(position + depth, "accept", sibling)
    return [*accept, *(draws.uniform(position + depth, "sample") for depth in (0, *depths))]


@dataclass(frozen=True, slots=True)
class _Read:
    """A verdict of the kernel on the host, as `Verdicts` lays it out, and what was drawn."""

    whole: Sequence[float]
    parts: Sequence[float]
    masses: Sequence[float]  # q of each node
    uniforms: Sequence[float]

    def verdict(self, draft: Draft, *, greedy: bool) -> Verdict:
        """Walk the tree again for the checks on the way."""
        nodes, node, checks = len(draft), ROOT, list[Check]()
        path = tuple(int(n) for n in self.whole[3 : 3 + int(self.whole[0])])
        for goal in (*path, None):
            for child in draft.children(node):
                checks.append(self._check(child, child == goal, greedy=greedy))
                if child == goal:
                    break
            node = node if goal is None else goal
        last_u = None if greedy else self.uniforms[nodes + node + 1]
        last_p = self.parts[nodes + node + 1]
        return Verdict(path, int(self.whole[1]), tuple(checks), last_p, last_u)

    def _check(self, child: int, stands: bool, *, greedy: bool) -> Check:
        p, q = self.parts[child], self.masses[child]
        if greedy:
            return Check(child, p, q, p, None, stands)
        return Check(child, p, q, min(1.0, p / q), self.uniforms[child], stands)
