"""Which tokens anchored blocks are taught, and where blocks may start."""

from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.heads.dflash_config import DFlashConfig


@dataclass(frozen=True, slots=True)
class Labels:
    """Targets of the slots of blocks, all [batch, blocks, slots].

    `tokens` are the true ones; `supervised` is the contiguous start of each block inside the
    supervised text; `teacher` is the text position whose target logits are the distribution of
    that token (final hidden state of that position through the target's head); `depth` [slots]
    counts drafted tokens from 0, as loss weights do.
    """

    tokens: Tensor
    supervised: Tensor
    teacher: Tensor
    depth: Tensor


def label(config: DFlashConfig, tokens: Tensor, supervised: Tensor, anchors: Tensor) -> Labels:
    """Label blocks in tokens [batch, length] with mask supervised [batch, length].

    anchors [batch, blocks]; -1 pads. Row k of DFlash says the token k after the anchor and row 0
    nothing; row k of DSpark says the one k + 1 after. A slot counts only if all before it do.
    """
    first = 1 if config.anchor_predicts else 0
    row = torch.arange(config.block, device=tokens.device)
    at = anchors[..., None] + row + first
    length = tokens.shape[1]
    inside = (at < length) & (anchors >= 0)[..., None]
    flat = at.clamp(0, length - 1).flatten(1)
    seen = supervised.gather(1, flat).view(at.shape).bool() & inside
    if not config.anchor_predicts:
        seen[..., 0] = True  # the anchor is known; it only starts the run
    run = seen.int().cumprod(dim=-1).bool()
    if not config.anchor_predicts:
        run[..., 0] = False
    return Labels(
        tokens=tokens.gather(1, flat).view(at.shape),
        supervised=run & (anchors >= 0)[..., None],
        teacher=(at - 1).clamp(0, length - 1),
        depth=row + first - 1,
    )


def choose_anchors(supervised: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Draw up to `count` anchors per text without replacement [batch, count], padded with -1.

    supervised [batch, length]. An anchor is a position whose next token is supervised, so each
    block teaches at least one slot. Sorted, so that equal draws are equal batches.
    """
    batch, length = supervised.shape
    able = torch.zeros(batch, length, dtype=torch.bool)
    able[:, :-1] = supervised[:, 1:].bool().cpu()
    order = torch.rand(batch, length, generator=generator).masked_fill(~able, 2.0)
    count = min(count, length)
    drawn, at = order.topk(count, dim=1, largest=False)
    at = at.masked_fill(drawn > 1, length).sort(dim=1).values
    return at.masked_fill(at == length, -1).to(supervised.device)
