"""A draft model that shares its target's embedding and output head: only its layers are stored.

It may say a part of the vocabulary only: then most of what a draft costs, the product with the
output head, costs a part as well (FR-Spec, arXiv:2502.14856).
"""

from dataclasses import replace
from pathlib import Path

from torch import Tensor

from specviz.errors import ModelCorrupt, UnsupportedModel
from specviz.heads.dflash_vocab import absolute_ids
from specviz.heads.packing import is_packed, unpack
from specviz.models.checkpoint import Checkpoint
from specviz.models.layers import Linear
from specviz.models.llama import LlamaTarget
from specviz.models.llama_config import read_llama_config
from specviz.models.llama_weights import fuse
from specviz.models.rope import RopeTable
from specviz.models.target import Target
from specviz.words import _

SHARED = "shared_with_target"
EMBED, HEAD, D2T = "model.embed_tokens.weight", "lm_head.weight", "d2t"


class SomeRows(Linear):
    """An output head that computes the logits of some ids; all others are -inf."""

    def __init__(self, table: Tensor, ids: Tensor) -> None:
        """Keep the rows `ids` of a table [vocab, hidden]."""
        self._ids, self._vocab = ids.to(table.device), len(table)
        super().__init__(table[self._ids])

    def __call__(self, x: Tensor) -> Tensor:
        logits = x.new_full((*x.shape[:-1], self._vocab), float("-inf"))
        logits[..., self._ids] = super().__call__(x)
        return logits


def is_small_llama(folder: Path) -> bool:
    """Whether a folder holds a model that leaves its tables to the target."""
    return (folder / "config.json").is_file() and SHARED in Checkpoint(folder).settings()


def load_small_llama(folder: Path, target: Target) -> LlamaTarget:
    """Load such a model on the tables of `target`, with its device and dtype.

    Raises:
        ModelNotFound: there is nothing to load.
        ModelCorrupt: it is of a target of another shape, or a tensor is wrong.
        UnsupportedModel: the target is not run by our own decoder.
    """
    if not isinstance(target, LlamaTarget):
        raise UnsupportedModel(
            _(
                "{name} is run by transformers, which keeps its tables to itself; use a whole "
                "draft model"
            ).format(name=target.config.name)
        )
    checkpoint = Checkpoint(folder)
    config = read_llama_config(
        checkpoint.settings(), name=f"{target.config.name} {folder.name}", sha=checkpoint.sha()
    )
    for name in ("vocab", "hidden"):
        here, there = getattr(config.target, name), getattr(target.config, name)
        if here != there:
            raise ModelCorrupt(
                _(
                    "{folder} is a draft model for targets with {name} {here}; {target} has {there}"
                ).format(
                    folder=folder, name=name, here=here, target=target.config.name, there=there
                )
            )
    tied, weights = replace(config, tied=True), target.weights
    settings, tensors = checkpoint.settings(), checkpoint.tensors()
    if is_packed(settings):
        tensors = unpack(tensors, settings, target)
    tensors |= {EMBED: weights.embed}
    d2t = tensors.pop(D2T, None)
    head = weights.head
    if d2t is not None:
        head = SomeRows(head.weight, absolute_ids(d2t, config.target.vocab))
    fused = fuse(tied, tensors, target.device, target.dtype)
    shared = replace(fused, embed=weights.embed, head=head)
    return LlamaTarget(tied, shared, RopeTable(config.rope, config.target.head_dim, target.device))
