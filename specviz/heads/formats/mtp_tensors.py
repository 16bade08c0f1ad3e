"""What MTP layouts share: shape of the module from a target's config, experts, norms less one."""

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from specviz.errors import ConfigError, ModelCorrupt
from specviz.heads.base import Head
from specviz.heads.checkpoint import build
from specviz.heads.dflash_vocab import read_draft_ids
from specviz.heads.experts import ExpertsShape
from specviz.heads.formats.settings import check_vocab, read_layer
from specviz.heads.layers import LayerShape
from specviz.heads.mtp import MtpConfig, MtpHead
from specviz.models.llama_config import Settings, number, whole
from specviz.models.target import TargetConfig
from specviz.words import _

ZERO_CENTRED = ("qwen3_next", "qwen3_5")  # families whose norms are stored less one
MIMO = ("mimo",)


def text_settings(config: Settings) -> Settings:
    """Return the part of a config that is about text: `text_config` over the rest."""
    nested = config.get("text_config")
    return config if not isinstance(nested, Mapping) else dict(config) | dict(nested)


def is_family(settings: Settings, families: tuple[str, ...]) -> bool:
    """Whether `model_type` is one of `families` or a variant of it."""
    kind = str(settings.get("model_type", ""))
    return any(kind == family or kind.startswith(family + "_") for family in families)


def make_mtp(
    settings: Settings, tensors: Mapping[str, Tensor], target: TargetConfig, trained: int = 1
) -> MtpHead:
    """Put `tensors`, named as in `MtpHead`, into a module of the shape that `settings` say."""
    check_vocab(settings, target)
    hidden = whole(settings, "hidden_size")
    if hidden != target.hidden:
        raise ModelCorrupt(
            _(
                "config.json says hidden_size = {hidden}; {name} has {width}. An MTP module "
                "drafts only for the model it is part of"
            ).format(hidden=hidden, name=target.name, width=target.hidden)
        )
    experts = _experts(settings, frozenset(tensors))
    ids = read_draft_ids(tensors, target.vocab, whole(settings, "draft_vocab_size", target.vocab))
    config = MtpConfig(
        layer=_layer(settings, tensors),
        layers=target.layers,
        vocab=target.vocab,
        trained=trained,
        context=whole(settings, "max_position_embeddings", 2048),
        hidden_first=is_family(settings, MIMO),
        blank_first=is_family(settings, MIMO),
        experts=experts,
        own_embedding="embed_tokens.weight" in tensors,
        own_head="lm_head.weight" in tensors,
        draft_vocab=None if ids is None else len(ids),
    )
    tensors = {name: t for name, t in tensors.items() if name not in ("d2t", "t2d")}
    weights = dict(tensors) if experts is None else _join_experts(tensors, experts)
    if is_family(settings, ZERO_CENTRED):
        # float32: one plus a small bfloat16 would lose most of what is small
        weights = {n: 1 + t.float() if _is_norm(n) else t for n, t in weights.items()}
    head = build(lambda: MtpHead(config), weights, "MTP module")
    head.draft_ids = ids
    return head


def require_mtp(head: Head) -> MtpHead:
    """Return `head` if it is one that MTP layouts hold."""
    if not isinstance(head, MtpHead):
        raise ConfigError(
            _("this is a {scheme} head; MTP layouts hold mtp heads").format(scheme=head.scheme)
        )
    return head


def _is_norm(name: str) -> bool:
    return name.endswith(("norm.weight", "layernorm.weight"))


def _layer(settings: Settings, tensors: Mapping[str, Tensor]) -> LayerShape:
    """Read the layer; gates are told by the rows of q_proj, for no config says them everywhere."""
    factor = settings.get("partial_rotary_factor")
    plain = dict(settings)
    for key in ("rope_scaling", "rope_parameters"):
        nested = settings.get(key)
        if isinstance(nested, Mapping):
            factor = nested.get("partial_rotary_factor", factor)
            # of several position axes text moves along all at once: ordinary positions
            left_out = ("partial_rotary_factor", "mrope_section", "mrope_interleaved")
            plain[key] = {k: v for k, v in nested.items() if k not in left_out and v != "mrope"}
    if plain.get("intermediate_size") is None:
        plain["intermediate_size"] = settings.get("moe_intermediate_size")
    shape = read_layer(plain, frozenset(tensors), latent=True)
    if factor is not None and shape.latent is None:
        turning = int(
            shape.head_dim * number({"partial_rotary_factor": factor}, "partial_rotary_factor")
        )
        shape = replace(shape, rotary=turning)
    q_proj = tensors.get("layers.0.self_attn.q_proj.weight")
    gated = (
        q_proj is not None
        and shape.latent is None
        and len(q_proj) == 2 * shape.heads * shape.head_dim
    )
    return replace(shape, gated=gated)


def _experts(settings: Settings, names: frozenset[str]) -> ExpertsShape | None:
    if "layers.0.mlp.gate.weight" not in names:
        return None
    sigmoid = "layers.0.mlp.gate.e_score_correction_bias" in names
    inner = whole(settings, "moe_intermediate_size")
    if sigmoid:
        shared = inner * whole(settings, "n_shared_experts", 1)
    else:
        shared = whole(settings, "shared_expert_intermediate_size", inner)
    has_shared = any(".mlp.shared_expert" in name for name in names)
    return ExpertsShape(
        count=_first(settings, "num_experts", "n_routed_experts", "num_local_experts"),
        top_k=whole(settings, "num_experts_per_tok"),
        intermediate=inner,
        shared=shared if has_shared else 0,
        shared_gate="layers.0.mlp.shared_expert_gate.weight" in names,
        sigmoid=sigmoid,
        groups=whole(settings, "n_group", 1),
        top_groups=whole(settings, "topk_group", 1),
        normalised=settings.get("norm_topk_prob", True) is True,
        scale=number(settings, "routed_scaling_factor", 1.0),
    )


def _first(settings: Settings, *keys: str) -> int:
    """Read the first of several spellings of a key."""
    return whole(settings, next((key for key in keys if settings.get(key) is not None), keys[0]))


def _join_experts(tensors: Mapping[str, Tensor], shape: ExpertsShape) -> dict[str, Tensor]:
    """Stack experts that are stored one by one; name the shared one as `Experts` does."""
    at = "layers.0.mlp."
    joined: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        ours = name.replace(at + "shared_experts.", at + "shared.")
        ours = ours.replace(at + "shared_expert.", at + "shared.")
        ours = ours.replace(at + "shared_expert_gate.", at + "shared_gate.")
        ours = ours.replace(at + "experts.gate_up_proj", at + "gate_up_proj")
        ours = ours.replace(at + "experts.down_proj", at + "down_proj")
        if not ours.startswith(at + "experts."):
            joined[ours] = tensor
    if at + "gate_up_proj" in joined:
        return joined

    def expert(index: int, kind: str) -> Tensor:
        name = f"{at}experts.{index}.{kind}.weight"
        if name not in tensors:
            raise ModelCorrupt(_("MTP module: the weights have no tensor {name}").format(name=name))
        return tensors[name]

    pairs = [torch.cat((expert(i, "gate_proj"), expert(i, "up_proj"))) for i in range(shape.count)]
    joined[at + "gate_up_proj"] = torch.stack(pairs)
    joined[at + "down_proj"] = torch.stack([expert(i, "down_proj") for i in range(shape.count)])
    return joined
