"""Random models small enough to reason about, made in code: for tests and for first looks."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch
from torch import Tensor

from specviz.models.layers import Linear
from specviz.models.llama import LlamaTarget
from specviz.models.llama_config import LlamaConfig, read_llama_config
from specviz.models.llama_weights import LayerWeights, LlamaWeights

Family = Literal["llama", "llama3", "mistral", "qwen2", "qwen3", "smollm2"]
FAMILIES: tuple[Family, ...] = get_args(Family)

_SPECIAL: dict[Family, dict[str, object]] = {
    "llama": {"model_type": "llama"},
    "llama3": {
        "model_type": "llama",
        "rope_theta": 500_000.0,
        "rope_scaling": {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        },
    },
    "mistral": {"model_type": "mistral", "sliding_window": 8},
    "qwen2": {"model_type": "qwen2"},
    "qwen3": {"model_type": "qwen3", "head_dim": 12, "rope_theta": 1_000_000.0},
    "smollm2": {"model_type": "llama", "tie_word_embeddings": True},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TinyShape:
    """Size of a random model."""

    vocab: int = 64
    hidden: int = 32
    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    context: int = 512
    intermediate: int = 64

    def settings(self, family: Family) -> dict[str, object]:
        """Return the config.json of such a model of `family`."""
        return {
            "architectures": ["LlamaForCausalLM"],
            "vocab_size": self.vocab,
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "max_position_embeddings": self.context,
            "intermediate_size": self.intermediate,
            "rms_norm_eps": 1e-5,
            "rope_theta": 10_000.0,
            "hidden_act": "silu",
            "tie_word_embeddings": False,
            "bos_token_id": None,
            "eos_token_id": None,
        } | _SPECIAL[family]


def tiny_tensors(config: LlamaConfig, seed: int = 0) -> dict[str, Tensor]:
    """Make random weights under Hugging Face names; next tokens are neither flat nor sure."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, shape in config.shapes().items():
        noise = torch.randn(shape, generator=generator)
        if "norm" in name:
            tensors[name] = 1 + 0.2 * noise
        elif "embed_tokens" in name or "lm_head" in name:
            tensors[name] = 0.5 * noise
        else:
            tensors[name] = noise * shape[-1] ** -0.5
    return tensors


def tiny_llama(
    *,
    seed: int = 0,
    family: Family = "llama",
    dtype: torch.dtype = torch.float32,
    eos: tuple[int, ...] = (),
    **shape: int,
) -> LlamaTarget:
    """Make a random model; `shape` sets fields of TinyShape."""
    settings = TinyShape(**shape).settings(family)
    config = read_llama_config(settings, name=f"tiny-{family}-{seed}")
    config = replace(config, target=replace(config.target, eos=eos))
    return LlamaTarget.from_tensors(config, tiny_tensors(config, seed), dtype=dtype)


def perturb(target: LlamaTarget, scale: float = 0.1, seed: int = 1) -> LlamaTarget:
    """Return a copy with noise of `scale` times the spread of each matrix, and an empty cache."""
    generator = torch.Generator().manual_seed(seed)

    def noisy(value: Tensor) -> Tensor:
        noise = torch.randn(value.shape, generator=generator)
        return (value.float() + scale * value.float().std() * noise).to(value.dtype)

    def linear(old: Linear) -> Linear:
        return Linear(noisy(old.weight), old.bias)

    def layer(old: LayerWeights) -> LayerWeights:
        return replace(
            old,
            qkv=linear(old.qkv),
            o=linear(old.o),
            gate_up=linear(old.gate_up),
            down=linear(old.down),
        )

    w = target.weights
    embed = noisy(w.embed)
    weights = LlamaWeights(
        embed=embed,
        layers=tuple(layer(old) for old in w.layers),
        norm=w.norm,
        head=Linear(embed) if target.llama.tied else linear(w.head),
    )
    return target.with_weights(weights, name=f"{target.config.name}+{scale:g}")
