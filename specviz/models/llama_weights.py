"""Tensors of a Llama-family checkpoint, checked against the config and fused."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.errors import ModelCorrupt
from specviz.models.layers import HeadNorm, Linear, RMSNorm
from specviz.models.llama_config import LlamaConfig
from specviz.words import _

IGNORED = "rotary_emb.inv_freq"  # old exports store what follows from the config


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWeights:
    """One decoder layer."""

    input_norm: RMSNorm
    qkv: Linear  # queries, keys and values below each other
    qk_norm: HeadNorm | None  # [heads + kv_heads, head_dim], one row per head
    o: Linear
    post_norm: RMSNorm
    gate_up: Linear
    down: Linear


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaWeights:
    """A whole model."""

    embed: Tensor  # [vocab, hidden]
    layers: tuple[LayerWeights, ...]
    norm: RMSNorm
    head: Linear


def check_tensors(config: LlamaConfig, tensors: Mapping[str, Tensor]) -> None:
    """Raise ModelCorrupt for the first missing, misshaped or unexpected tensor."""
    shapes = config.shapes()
    for name, shape in shapes.items():
        if name not in tensors:
            raise ModelCorrupt(
                _(
                    "the weights have no tensor {name} {shape}, which config.json asks for; fetch "
                    "the model again"
                ).format(name=name, shape=list(shape))
            )
        if tuple(tensors[name].shape) != shape:
            raise ModelCorrupt(
                _(
                    "tensor {name} has shape {shape} and config.json asks for {asked}; config "
                    "and weights are of different models"
                ).format(name=name, shape=list(tensors[name].shape), asked=list(shape))
            )
        if not tensors[name].is_floating_point():
            raise ModelCorrupt(
                _(
                    "tensor {name} is {dtype}; weights must be float32, float16 or bfloat16 "
                    "(quantised checkpoints other than GGUF are not read)"
                ).format(name=name, dtype=tensors[name].dtype)
            )
    for name in tensors:
        spare = config.tied and name == "lm_head.weight"
        if name not in shapes and not spare and not name.endswith(IGNORED):
            raise ModelCorrupt(
                _(
                    "the weights have a tensor {name} {shape} that config.json does not explain; "
                    "config and weights are of different models"
                ).format(name=name, shape=list(tensors[name].shape))
            )


def fuse(
    config: LlamaConfig,
    tensors: Mapping[str, Tensor],
    device: torch.device,
    dtype: torch.dtype,
    *,
    alike: bool = True,
) -> LlamaWeights:
    """Check `tensors` (Hugging Face names) and lay them out for the decoder.

    A model that only drafts need not be `alike`, as `Linear` has it, in its layers.
    """
    check_tensors(config, tensors)

    def get(name: str) -> Tensor:
        return tensors[name].to(device, dtype)

    def join(names: tuple[str, ...]) -> Tensor:
        parts = [get(name) for name in names]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def linear(at: str, *names: str) -> Linear:
        weight = join(tuple(f"{at}{name}.weight" for name in names))
        biases = tuple(f"{at}{name}.bias" for name in names)
        return Linear(weight, join(biases) if biases[0] in tensors else None, alike=alike)

    def layer(index: int) -> LayerWeights:
        at = f"model.layers.{index}."
        attention, mlp = at + "self_attn.", at + "mlp."
        return LayerWeights(
            input_norm=RMSNorm(get(at + "input_layernorm.weight"), config.eps),
            qkv=linear(attention, "q_proj", "k_proj", "v_proj"),
            qk_norm=_qk_norm(config, get, attention) if config.qk_norm else None,
            o=linear(attention, "o_proj"),
            post_norm=RMSNorm(get(at + "post_attention_layernorm.weight"), config.eps),
            gate_up=linear(mlp, "gate_proj", "up_proj"),
            down=linear(mlp, "down_proj"),
        )

    embed = get("model.embed_tokens.weight")
    return LlamaWeights(
        embed=embed,
        layers=tuple(layer(i) for i in range(config.target.layers)),
        norm=RMSNorm(get("model.norm.weight"), config.eps),
        head=Linear(embed if config.tied else get("lm_head.weight")),
    )


def _qk_norm(config: LlamaConfig, get: Callable[[str], Tensor], attention: str) -> HeadNorm:
    queries = get(attention + "q_norm.weight").expand(config.target.heads, -1)
    keys = get(attention + "k_norm.weight").expand(config.target.kv_heads, -1)
    return HeadNorm(torch.cat((queries, keys)), config.eps)
