"""A draft model that shares its target's embedding and output head: only its layers are stored."""

from dataclasses import replace
from pathlib import Path

from specviz.errors import ModelCorrupt, UnsupportedModel
from specviz.heads.packing import is_packed, unpack
from specviz.models.checkpoint import Checkpoint
from specviz.models.llama import LlamaTarget
from specviz.models.llama_config import read_llama_config
from specviz.models.llama_weights import fuse
from specviz.models.rope import RopeTable
from specviz.models.target import Target
from specviz.words import _

SHARED = "shared_with_target"
EMBED, HEAD = "model.embed_tokens.weight", "lm_head.weight"


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
    fused = fuse(tied, tensors, target.device, target.dtype)
    shared = replace(fused, embed=weights.embed, head=weights.head)
    return LlamaTarget(tied, shared, RopeTable(config.rope, config.target.head_dim, target.device))
