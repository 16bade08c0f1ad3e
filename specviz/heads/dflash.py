"""DFlash: the target's hidden states are the keys and values of a block drafted in one pass."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from specviz.heads.base import Head
from specviz.heads.dflash_config import DFlashConfig, View
from specviz.heads.layers import DecoderLayer, Turns


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks to draft within teacher-forced text: what `forward` reads.

    features [batch, length, taps, hidden] of the target; tokens [batch, length]; anchors
    [batch, blocks] are positions, each the first row of a block; -1 pads, and blocks never see
    each other.
    """

    features: Tensor
    tokens: Tensor
    anchors: Tensor


@dataclass(frozen=True, slots=True)
class Owned:
    """Tables a head has beside the target's."""

    embed: int = 0  # rows of its own embedding; 0: the target's
    head: bool = False  # a head for a part of the vocabulary is always its own
    mask: bool = False  # its own row for the mask token


BORROWED = Owned()


def reach(view: View, anchors: Tensor, length: int, rows: int) -> tuple[Tensor, Tensor]:
    """Say who may see whom in a layer: the context before the anchor and one's own block.

    anchors [batch, blocks] are positions. Returns bools for keys of the context
    [batch, blocks, rows or 1, length] and of the block [rows, rows].
    """
    keys = torch.arange(length, device=anchors.device)
    row = torch.arange(rows, device=anchors.device)
    anchors = anchors[..., None, None]
    context, block = keys < anchors, row[:, None] >= row
    if not view.causal:
        block = torch.ones_like(block)
    if view.window is not None and view.from_anchor:
        context = context & (keys >= anchors - view.window)
    elif view.window is not None:
        context = context & (anchors + row[:, None] - keys < view.window)
        block = block & (row[:, None] - row < view.window)
    return context, block


class DFlashHead(Head):
    """The trunk, with tensors named as in z-lab checkpoints.

    `mask_embedding` [hidden] stands for the mask token's row of the embedding table where it is
    set. `embed_tokens` and `lm_head` are None where the target's own are used; `draft_ids`
    [draft vocab] are the target's ids of the rows of `lm_head`, None if they are the same.
    """

    scheme = "dflash"

    def __init__(
        self, config: DFlashConfig, owned: Owned = BORROWED, draft_ids: Tensor | None = None
    ) -> None:
        """Make a head with random weights; `draft_ids` [draft vocab] rise."""
        super().__init__()
        self.config, self.taps, self.draft_ids = config, config.taps, draft_ids
        width, eps = config.layer.hidden, config.layer.eps
        self.fc = nn.Linear(len(config.taps) * width, width, bias=False)
        self.hidden_norm = nn.RMSNorm(width, eps)
        self.layers = nn.ModuleList(DecoderLayer(config.layer) for _ in range(config.layers))
        self.norm = nn.RMSNorm(width, eps)
        self.mask_embedding = nn.Parameter(torch.zeros(width)) if owned.mask else None
        self.embed_tokens = nn.Embedding(owned.embed, width) if owned.embed else None
        own_head = owned.head or config.draft_vocab != config.vocab
        self.lm_head = nn.Linear(width, config.draft_vocab, bias=False) if own_head else None

    @property
    def owned(self) -> Owned:
        """Which tables are the head's own."""
        embed = 0 if self.embed_tokens is None else self.embed_tokens.num_embeddings
        return Owned(embed, self.lm_head is not None, self.mask_embedding is not None)

    def decoder_layers(self) -> tuple[DecoderLayer, ...]:
        """Return the layers with their type."""
        return tuple(layer for layer in self.layers if isinstance(layer, DecoderLayer))

    def context(self, features: Tensor) -> Tensor:
        """Fuse the taps [..., taps, hidden] into what all layers read [..., hidden]."""
        fused: Tensor = self.hidden_norm(self.fc(features.flatten(-2).to(self.fc.weight.dtype)))
        return fused

    def embed(self, anchors: Tensor, rows: int, table: Tensor) -> Tensor:
        """Rows of blocks [..., rows, hidden]: the anchor's embedding, then masks.

        anchors [...] are token ids; table [vocab, hidden] is the target's embedding.
        """
        own = self.embed_tokens.weight if self.embed_tokens is not None else table
        mask, first = own[self.config.mask_token], F.embedding(anchors, own)
        if self.mask_embedding is not None:
            mask = self.mask_embedding
            first = torch.where((anchors == self.config.mask_token)[..., None], mask, first)
        masks = mask.expand(*anchors.shape, rows - 1, -1)
        block = torch.cat((first[..., None, :].to(mask.dtype), masks), dim=-2)
        return block.to(self.fc.weight.dtype)

    def logits(self, hidden: Tensor, table: Tensor) -> Tensor:
        """Logits [..., draft vocab] of rows [..., hidden]; select supervised rows first.

        table [vocab, hidden] is the target's output head; an own one comes first.
        """
        head = self.lm_head.weight if self.lm_head is not None else table
        return F.linear(hidden, head.to(hidden.dtype))

    def forward(self, blocks: Blocks, table: Tensor) -> Tensor:
        """Run all blocks at once; return final-normed hidden [batch, blocks, rows, hidden].

        table [vocab, hidden] is the target's embedding; an own one comes first.
        """
        rows, shape = self.config.block, self.config.layer
        anchors = blocks.anchors.clamp_min(0)
        context = self.context(blocks.features)
        hidden = self.embed(blocks.tokens.gather(1, anchors), rows, table)
        length = blocks.features.shape[1]
        row = torch.arange(rows, device=anchors.device)
        before = Turns.at(shape, torch.arange(length, device=row.device))
        within = Turns.at(shape, anchors[..., None] + row)
        views = [self.config.view(i) for i in range(self.config.layers)]
        reaches = {view: reach(view, anchors, length, rows) for view in set(views)}
        for layer, view in zip(self.decoder_layers(), views, strict=True):
            attention, x = layer.self_attn, layer.input_layernorm(hidden)
            attended = attend_blocks(
                attention.queries(x, within),
                (attention.keys(context, before), attention.values(context)),
                (attention.keys(x, within), attention.values(x)),
                reaches[view],
            )
            hidden = layer.finish(hidden, attended, x)
        out: Tensor = self.norm(hidden)
        return out


def attend_blocks(
    q: Tensor,
    context: tuple[Tensor, Tensor],
    block: tuple[Tensor, Tensor],
    seen: tuple[Tensor, Tensor],
) -> Tensor:
    """Attend to the context and to one's own block under one softmax.

    Other blocks are never multiplied, so the cost grows with blocks * (length + rows), not with
    the square of blocks.

    Args:
        q: [batch, blocks, rows, heads, head_dim], turned, not scaled.
        context: keys and values [batch, length, kv_heads, head_dim].
        block: keys and values [batch, blocks, rows, kv_heads, head_dim].
        seen: who may see whom, of `reach`.
    """
    batch, blocks, rows, heads, head_dim = q.shape
    kv_heads = block[0].shape[-2]
    # [batch, kv_heads, blocks, G, rows, head_dim]: a query group's rows lie side by side
    q = q.reshape(batch, blocks, rows, kv_heads, heads // kv_heads, head_dim)
    q = q.permute(0, 3, 1, 4, 2, 5) * head_dim**-0.5
    far_k, far_v = (x.permute(0, 2, 1, 3) for x in context)
    near_k, near_v = (x.permute(0, 3, 1, 2, 4) for x in block)
    far = (q.flatten(2, 4) @ far_k.mT).view(*q.shape[:-1], -1)
    near = (q.flatten(3, 4) @ near_k.mT).view(*q.shape[:-1], -1)
    far = far.masked_fill(~seen[0][:, None, :, None], float("-inf"))
    near = near.masked_fill(~seen[1], float("-inf"))
    weights = torch.cat((far, near), dim=-1).float().softmax(dim=-1).to(q.dtype)
    far, near = weights[..., :-rows], weights[..., -rows:]
    out = (far.flatten(2, 4) @ far_v).view(q.shape)
    out = out + (near.flatten(3, 4) @ near_v).view(q.shape)
    return out.permute(0, 2, 4, 1, 3, 5).reshape(batch, blocks, rows, heads, head_dim)
