"""A mixture of experts in place of an MLP, as MTP modules of large targets have it."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from specviz.heads.layers import LayerShape, Mlp


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertsShape:
    """How many experts, which of them a row visits, and what it gets from all.

    Qwen routes by softmax and gates its shared expert; DeepSeek and GLM route by sigmoid with a
    correction that chooses but does not weigh, first among groups.
    """

    count: int
    top_k: int
    intermediate: int
    shared: int = 0  # intermediate size of the shared expert, 0 for none
    shared_gate: bool = False
    sigmoid: bool = False
    groups: int = 1
    top_groups: int = 1
    normalised: bool = True
    scale: float = 1.0


class Router(nn.Module):
    """Scores all experts for a row; named as in checkpoints."""

    e_score_correction_bias: Tensor

    def __init__(self, shape: ExpertsShape, hidden: int) -> None:
        super().__init__()
        self.shape = shape
        self.weight = nn.Parameter(torch.zeros(shape.count, hidden))
        if shape.sigmoid:
            self.register_buffer("e_score_correction_bias", torch.zeros(shape.count))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return weights and numbers of the chosen experts [rows, top_k] of x [rows, hidden]."""
        s = self.shape
        logits = F.linear(x.float(), self.weight.float())
        scores = logits.sigmoid() if s.sigmoid else logits.softmax(-1)
        chosen = self._ranked(scores).topk(s.top_k, dim=-1).indices
        weights = scores.gather(-1, chosen)
        if s.normalised:
            weights = weights / weights.sum(-1, keepdim=True)
        return (weights * s.scale).to(x.dtype), chosen

    def _ranked(self, scores: Tensor) -> Tensor:
        s = self.shape
        if not s.sigmoid:
            return scores
        ranked = scores + self.e_score_correction_bias.float()
        if s.groups == 1:
            return ranked
        grouped = ranked.view(-1, s.groups, s.count // s.groups)
        best = grouped.topk(2, dim=-1).values.sum(-1).topk(s.top_groups, dim=-1).indices
        kept = torch.zeros_like(grouped[..., 0], dtype=torch.bool).scatter_(-1, best, True)
        return grouped.masked_fill(~kept[..., None], -torch.inf).flatten(1)


class Experts(nn.Module):
    """Rows go through their chosen experts, and all of them through the shared one."""

    def __init__(self, shape: ExpertsShape, layer: LayerShape) -> None:
        super().__init__()
        self.shape, hidden = shape, layer.hidden
        self.gate = Router(shape, hidden)
        self.gate_up_proj = nn.Parameter(torch.empty(shape.count, 2 * shape.intermediate, hidden))
        self.down_proj = nn.Parameter(torch.empty(shape.count, hidden, shape.intermediate))
        nn.init.normal_(self.gate_up_proj, std=hidden**-0.5)
        nn.init.normal_(self.down_proj, std=shape.intermediate**-0.5)
        self.shared = Mlp(layer, shape.shared) if shape.shared else None
        self.shared_gate = nn.Linear(hidden, 1, bias=False) if shape.shared_gate else None

    def forward(self, x: Tensor) -> Tensor:
        """Return [..., hidden] of x [..., hidden]."""
        rows = x.reshape(-1, x.shape[-1])
        weights, chosen = self.gate(rows)
        out = torch.zeros_like(rows)
        for expert in chosen.unique().tolist():
            at, slot = (chosen == expert).nonzero(as_tuple=True)
            gate, up = F.linear(rows[at], self.gate_up_proj[expert]).chunk(2, dim=-1)
            done = F.linear(F.silu(gate) * up, self.down_proj[expert])
            out = out.index_add(0, at, done * weights[at, slot, None])
        if self.shared is not None:
            shared = self.shared(rows)
            if self.shared_gate is not None:
                shared = shared * torch.sigmoid(self.shared_gate(rows))
            out = out + shared
        return out.view(x.shape)
