"""The choice of a drafted token on the device, so that the next row need not wait for the host."""

from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.config import SamplingParams
from specviz.verify.processors import distribution


@dataclass(frozen=True, slots=True)
class DeviceGuess:
    """What `Guess` says, as tensors: numbers [3] are token, score and best in float64."""

    token: Tensor  # [1] int64, the target's id
    numbers: Tensor
    q: Tensor | None  # [1, vocab] it was drawn from; None if it is the argmax


@dataclass(frozen=True, slots=True, eq=False)
class DeviceRule:
    """How tokens are chosen: the argmax, or a draw by `params`; penalties are left to the host."""

    vocab: int
    ids: Tensor | None  # [draft vocab] target ids of what the head says; None: the same
    params: SamplingParams | None  # None: the argmax

    @property
    def key(self) -> tuple[object, ...]:
        """What a graph of it depends on: the seed is not part of it, draws are sent."""
        p = self.params
        return () if p is None else (p.temperature, p.top_k, p.top_p, p.min_p)

    def choose(self, logits: Tensor, u: Tensor) -> DeviceGuess:
        """Choose after logits [draft vocab] with the uniform `u` [] float64."""
        if self.params is None:
            best, at = logits.softmax(-1).max(-1)
            # index_select: a bracket with a tensor of no dimension would ask the host
            token = at if self.ids is None else self.ids.index_select(0, at[None])[0]
            return _guess(token, best, best, None)
        row = logits.new_full((self.vocab,), -torch.inf)
        if self.ids is None:
            row[: len(logits)] = logits
        else:
            row.index_copy_(0, self.ids, logits)
        q = distribution(row[None], self.params)
        cdf = q[0].double().cumsum(0)
        at = torch.searchsorted(cdf, (u * cdf[-1])[None], right=True)
        spot = torch.arange(len(cdf), device=cdf.device)
        last = torch.where(q[0] > 0, spot, 0).amax()  # u * total may round up to the total itself
        token = torch.minimum(at[0], last)
        return _guess(token, q[0].gather(0, token[None])[0], q.amax(), q)


def _guess(token: Tensor, score: Tensor, best: Tensor, q: Tensor | None) -> DeviceGuess:
    numbers = torch.stack((token.double(), score.double(), best.double()))
    return DeviceGuess(token[None], numbers, q)
