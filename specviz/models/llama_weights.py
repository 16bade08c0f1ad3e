"""Tensors of a Llama-family checkpoint, checked against the config and fused."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.errors import ModelCorrupt
from specviz.models.llama_config import LlamaConfig

IGNORED = "rotary_emb.inv_freq"  # old exports store what follows from the config


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWeights:
    """One decoder layer; linear weights are [out, in]."""

    input_norm: Tensor
    qkv: Tensor  # queries, keys and values below each other
    qkv_bias: Tensor | None
    qk_norm: Tensor | None  # [heads + kv_heads, head_dim], one row per head
    o: Tensor
    o_bias: Tensor | None
    post_norm: Tensor
    gate_up: Tensor
    gate_up_bias: Tensor | None
    down: Tensor
    down_bias: Tensor | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaWeights:
    """A whole model."""

    embed: Tensor  # [vocab, hidden]
    layers: tuple[LayerWeights, ...]
    norm: Tensor
    head: Tensor  # [vocab, hidden]; the embedding itself when tied


def check_tensors(config: LlamaConfig, tensors: Mapping[str, Tensor]) -> None:
    """Raise ModelCorrupt for the first missing, misshaped or unexpected tensor."""
    shapes = config.shapes()
    for name, shape in shapes.items():
        if name not in tensors:
            raise ModelCorrupt(
                f"the weights have no tensor {name} {list(shape)}, which config.json asks for; "
                "fetch the model again"
            )
        if tuple(tensors[name].shape) != shape:
            raise ModelCorrupt(
                f"tensor {name} has shape {list(tensors[name].shape)} and config.json asks for "
                f"{list(shape)}; config and weights are of different models"
            )
        if not tensors[name].is_floating_point():
            raise ModelCorrupt(
                f"tensor {name} is {tensors[name].dtype}; weights must be float32, float16 or "
                "bfloat16 (quantised checkpoints other than GGUF are not read)"
            )
    for name in tensors:
        spare = config.tied and name == "lm_head.weight"
        if name not in shapes and not spare and not name.endswith(IGNORED):
            raise ModelCorrupt(
                f"the weights have a tensor {name} {list(tensors[name].shape)} that config.json "
                "does not explain; config and weights are of different models"
            )


def fuse(
    config: LlamaConfig, tensors: Mapping[str, Tensor], device: torch.device, dtype: torch.dtype
) -> LlamaWeights:
    """Check `tensors` (Hugging Face names) and lay them out for the decoder."""
    check_tensors(config, tensors)

    def get(name: str) -> Tensor:
        return tensors[name].to(device, dtype)

    def join(at: str, names: tuple[str, ...], kind: str) -> Tensor | None:
        if f"{at}{names[0]}.{kind}" not in tensors:
            return None
        parts = [get(f"{at}{name}.{kind}") for name in names]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def linear(at: str, *names: str) -> tuple[Tensor, Tensor | None]:
        weight = join(at, names, "weight")
        assert weight is not None  # check_tensors saw it
        return weight, join(at, names, "bias")

    def layer(index: int) -> LayerWeights:
        at = f"model.layers.{index}."
        attention, mlp = at + "self_attn.", at + "mlp."
        qkv, qkv_bias = linear(attention, "q_proj", "k_proj", "v_proj")
        o, o_bias = linear(attention, "o_proj")
        gate_up, gate_up_bias = linear(mlp, "gate_proj", "up_proj")
        down, down_bias = linear(mlp, "down_proj")
        return LayerWeights(
            input_norm=get(at + "input_layernorm.weight"),
            qkv=qkv,
            qkv_bias=qkv_bias,
            qk_norm=_head_norms(config, get, attention) if config.qk_norm else None,
            o=o,
            o_bias=o_bias,
            post_norm=get(at + "post_attention_layernorm.weight"),
            gate_up=gate_up,
            gate_up_bias=gate_up_bias,
            down=down,
            down_bias=down_bias,
        )

    embed = get("model.embed_tokens.weight")
    return LlamaWeights(
        embed=embed,
        layers=tuple(layer(i) for i in range(config.target.layers)),
        norm=get("model.norm.weight"),
        head=embed if config.tied else get("lm_head.weight"),
    )


def _head_norms(config: LlamaConfig, get: Callable[[str], Tensor], attention: str) -> Tensor:
    queries = get(attention + "q_norm.weight").expand(config.target.heads, -1)
    keys = get(attention + "k_norm.weight").expand(config.target.kv_heads, -1)
    return torch.cat((queries, keys))
