"""DSpark's sequential heads: what the token before says of the next, and how sure to be."""

from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from specviz.heads.dflash_config import DSparkShape


@dataclass(frozen=True, slots=True)
class Cell:
    """The maps of a gated or rnn head; a vanilla head has neither."""

    gate: nn.Module | None
    joint: nn.Module | None

    def to(self, device: torch.device, dtype: torch.dtype) -> "Cell":
        """Copy it for drafting."""
        gate, joint = (
            None if part is None else deepcopy(part).to(device, dtype).requires_grad_(False)
            for part in (self.gate, self.joint)
        )
        return Cell(gate, joint)


def advance(cell: Cell, embedded: Tensor, hidden: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """One slot: the latent [..., rank] that `markov_w2` reads, and the state after it.

    embedded [..., rank] is W1 of the token before, hidden [..., hidden] the slot's own; the state
    before the first slot is zero.
    """
    if cell.gate is not None:
        gate = torch.sigmoid(cell.gate(torch.cat((hidden, embedded), dim=-1)))
        return gate * embedded, state
    if cell.joint is not None:
        joint = cell.joint(torch.cat((state, embedded, hidden), dim=-1))
        gate, candidate, out = joint.chunk(3, dim=-1)
        gate = torch.sigmoid(gate)
        state = gate * state + (1 - gate) * torch.tanh(candidate)
        return torch.tanh(out), state
    return embedded, state


class MarkovHead(nn.Module):
    """A low-rank bias on the logits of slot k from the token in slot k - 1.

    vanilla: W2 W1[token]. gated: W2 (g * W1[token]), g from the slot's hidden state too. rnn: W2 of
    a state carried from slot to slot. `markov_w1` is indexed by target ids, `markov_w2` has a row
    per draft token (arXiv:2607.05147, section 3).
    """

    def __init__(self, shape: DSparkShape, hidden: int, vocab: int, draft_vocab: int) -> None:
        super().__init__()
        rank, self.kind = shape.rank, shape.kind
        self.markov_w1 = nn.Embedding(vocab, rank)
        self.markov_w2 = nn.Linear(rank, draft_vocab, bias=False)
        gated, rnn = shape.kind == "gated", shape.kind == "rnn"
        self.gate_proj = nn.Linear(hidden + rank, rank) if gated else None
        self.joint_proj = nn.Linear(2 * rank + hidden, 3 * rank) if rnn else None

    @property
    def cell(self) -> "Cell":
        """What runs between the two large tables."""
        return Cell(self.gate_proj, self.joint_proj)

    def latents(self, embedded: Tensor, hidden: Tensor) -> Tensor:
        """Latents of whole blocks [..., slots, rank], teacher-forced: embedded is known."""
        if self.joint_proj is None:
            return advance(self.cell, embedded, hidden, embedded)[0]
        state, found = torch.zeros_like(embedded[..., 0, :]), list[Tensor]()
        for slot in range(embedded.shape[-2]):
            latent, state = advance(self.cell, embedded[..., slot, :], hidden[..., slot, :], state)
            found.append(latent)
        return torch.stack(found, dim=-2)


class ConfidenceHead(nn.Module):
    """Logit of the chance that a slot's token is accepted once all before it are."""

    def __init__(self, shape: DSparkShape, hidden: int) -> None:
        super().__init__()
        self.sees_markov = shape.confidence_sees_markov and shape.rank > 0
        self.proj = nn.Linear(hidden + shape.rank * self.sees_markov, 1)

    def forward(self, hidden: Tensor, embedded: Tensor | None) -> Tensor:
        """Logits [...] of hidden [..., hidden] and W1 of the token before [..., rank]."""
        if self.sees_markov and embedded is not None:
            hidden = torch.cat((hidden, embedded.to(hidden.dtype)), dim=-1)
        out: Tensor = self.proj(hidden)
        return out[..., 0]
