"""A draft model that shares its target's embedding and output head: only its layers are stored.

It may say a part of the vocabulary only: then most of what a draft costs, the product with the
output head, costs a part as well (FR-Spec, arXiv:2502.14856).
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from specviz.errors import ModelCorrupt, UnsupportedModel
from specviz.heads.dflash_vocab import absolute_ids
from specviz.heads.packing import PACKED, is_packed, unpack
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
COPIED = (
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "generation_config.json",
)


class SomeRows(Linear):
    """An output head that computes the logits of some ids; all others are -inf."""

    def __init__(self, table: Tensor, ids: Tensor) -> None:
        """Keep the rows `ids` of a table [vocab, hidden]."""
        self.ids, self._vocab = ids.to(table.device), len(table)
        super().__init__(table[self.ids], alike=False)

    def __call__(self, x: Tensor) -> Tensor:
        logits = x.new_full((*x.shape[:-1], self._vocab), float("-inf"))
        return logits.index_copy_(-1, self.ids, super().__call__(x))


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
    fused = fuse(tied, tensors, target.device, target.dtype, alike=False)
    shared = replace(fused, embed=weights.embed, head=head)
    return LlamaTarget(tied, shared, RopeTable(config.rope, config.target.head_dim, target.device))


def write_whole(folder: Path, out: Path, target: Target, target_folder: Path) -> None:
    """Write such a model to `out` as an ordinary Hugging Face folder in bfloat16.

    The target's tables are written with it, its tokenizer is copied from `target_folder`. The
    folder says the whole vocabulary, also if the model says a part of it: Llama's config has no
    word for that.

    Raises:
        ModelError: the model or the target cannot be used.
    """
    model = load_small_llama(folder, target)
    assert isinstance(target, LlamaTarget)  # it was loaded on its tables
    checkpoint, tied = Checkpoint(folder), target.llama.tied
    settings, tensors = checkpoint.settings(), checkpoint.tensors()
    if is_packed(settings):
        tensors = unpack(tensors, settings, target)
    tensors |= {EMBED: model.weights.embed}
    if not tied:
        tensors[HEAD] = target.weights.head.weight
    whole = {
        name: tensor.to(torch.bfloat16).contiguous().cpu()
        for name, tensor in tensors.items()
        if name != D2T
    }
    out.mkdir(parents=True, exist_ok=True)
    save_file(whole, out / "model.safetensors", metadata={"format": "pt"})
    kept = {k: v for k, v in settings.items() if k not in (SHARED, PACKED, "target_layers")}
    kept |= {"tie_word_embeddings": tied, "torch_dtype": "bfloat16"}
    text = json.dumps(kept, indent=2, sort_keys=True)
    (out / "config.json").write_text(text + "\n", "utf-8")
    for name in COPIED:
        if (target_folder / name).is_file():
            shutil.copy(target_folder / name, out / name)
