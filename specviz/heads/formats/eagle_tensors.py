"""Tensors of EAGLE-3 heads, whichever layout they come from."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from specviz.errors import ConfigError, ModelCorrupt
from specviz.heads.base import Head
from specviz.heads.checkpoint import Checkpoint, build
from specviz.heads.dflash_vocab import read_draft_ids
from specviz.heads.eagle3 import Eagle3Config, Eagle3Head
from specviz.heads.layers import LayerShape
from specviz.models.llama_config import Settings, whole
from specviz.words import _

_OLD_NORMS = {
    "aux_norm_low": "fc_norm.0",
    "aux_norm_mid": "fc_norm.1",
    "aux_norm_high": "fc_norm.2",
}
_MADE = re.compile(r"rotary_emb\.inv_freq$")  # old exports store what follows from the config


@dataclass(slots=True, kw_only=True)
class Flags:
    """Variants, in the meaning of `Eagle3Config`."""

    norm_before_residual: bool = False
    norm_before_fc: bool = False
    fc_norm: bool = False
    recycle_normed: bool = False
    final_norm: bool = True


def head_tensors(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """Read all tensors under the names of the speculators layout."""
    tensors = {}
    for name in sorted(checkpoint.names):
        if _MADE.search(name):
            continue
        ours = name.removeprefix("model.").replace("midlayer.", "layers.0.")
        for old, new in _OLD_NORMS.items():
            ours = ours.replace(old, new)
        tensors[ours] = checkpoint.get(name)
    return tensors


def make_head(
    settings: Settings,
    layer: LayerShape,
    flags: Flags,
    tensors: Mapping[str, Tensor],
    taps: tuple[int, ...],
) -> Eagle3Head:
    """Check `tensors` against the config and put them into a head."""
    vocab = whole(settings, "vocab_size")
    target_hidden = whole(settings, "target_hidden_size", layer.hidden)
    _check_fc(tensors, taps, target_hidden)
    own_head = "lm_head.weight" in tensors
    draft_vocab = whole(settings, "draft_vocab_size", vocab)
    ids = read_draft_ids(tensors, vocab, draft_vocab)
    if not own_head and draft_vocab != vocab:
        raise ModelCorrupt(
            _(
                "the weights have no tensor lm_head.weight [{draft_vocab}, {hidden}], which "
                "draft_vocab_size asks for; only a head with the whole vocabulary can use the "
                "target's"
            ).format(draft_vocab=draft_vocab, hidden=layer.hidden)
        )
    config = Eagle3Config(
        layer=layer,
        taps=taps,
        target_hidden=target_hidden,
        vocab=vocab,
        draft_vocab=draft_vocab,
        layers=whole(settings, "num_hidden_layers", 1),
        context=whole(settings, "max_position_embeddings", 2048),
        norm_before_residual=flags.norm_before_residual,
        norm_before_fc=flags.norm_before_fc,
        fc_norm=flags.fc_norm,
        fc_bias="fc.bias" in tensors,
        recycle_normed=flags.recycle_normed,
        final_norm=flags.final_norm,
        own_embedding="embed_tokens.weight" in tensors,
        own_head=own_head,
    )
    weights = {name: t for name, t in tensors.items() if name not in ("d2t", "t2d")}
    head = build(lambda: Eagle3Head(config), weights, "EAGLE-3 head")
    head.draft_ids = ids
    return head


def require_eagle3(head: Head) -> Eagle3Head:
    """Return `head` if it is one that EAGLE-3 layouts hold."""
    if not isinstance(head, Eagle3Head):
        raise ConfigError(
            _("this is a {scheme} head; EAGLE-3 layouts hold eagle3 heads").format(
                scheme=head.scheme
            )
        )
    return head


def _check_fc(tensors: Mapping[str, Tensor], taps: tuple[int, ...], target_hidden: int) -> None:
    if "fc.weight" not in tensors:
        raise ModelCorrupt(_("the weights have no tensor fc.weight; is this an EAGLE-3 head?"))
    columns = tensors["fc.weight"].shape[-1]
    if columns != len(taps) * target_hidden:
        raise ModelCorrupt(
            _(
                "tensor fc.weight has {columns} columns; {count} hidden states {taps} of width "
                "{target_hidden} make {needed}. Give the layer ids it was trained on."
            ).format(
                columns=columns,
                count=len(taps),
                taps=taps,
                target_hidden=target_hidden,
                needed=len(taps) * target_hidden,
            )
        )
