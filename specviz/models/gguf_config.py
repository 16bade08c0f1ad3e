"""The config.json that belongs to the metadata of a GGUF file."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from specviz.errors import ModelCorrupt, UnsupportedModel
from specviz.models.refusals import MOST_LAYERS
from specviz.words import _

Shapes = Mapping[str, tuple[int, ...]]
_CLASSES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}
VERSION = 1  # raise it when the converter changes: cached conversions are then made again
ARCHITECTURES = ("llama", "qwen2", "qwen3")  # Mistral files say "llama"


@dataclass(frozen=True, slots=True)
class _Metadata:
    """Typed access to the values of one architecture."""

    values: Mapping[str, object]
    arch: str
    path: Path

    def number(self, key: str, default: float | None = None) -> float:
        value = self.values.get(f"{self.arch}.{key}", default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ModelCorrupt(
                _(
                    "{path}: {arch}.{key} is {value!r}, not one number. Download the file again; "
                    "layers that differ in shape are not supported."
                ).format(path=self.path, arch=self.arch, key=key, value=value)
            )
        return float(np.float32(value)) if isinstance(value, float) else value

    def count(self, key: str, default: float | None = None) -> int:
        value = self.number(key, default)
        if not 0 < value <= (MOST_LAYERS if key == "block_count" else 2**31 - 1):
            raise ModelCorrupt(
                _("{path}: {arch}.{key} is {value}. Download it again.").format(
                    path=self.path, arch=self.arch, key=key, value=value
                )
            )
        return int(value)


def hf_config(values: Mapping[str, object], shapes: Shapes, path: Path) -> dict[str, object]:
    """Return config.json of a dense Llama-like model.

    Raises:
        ModelCorrupt: a value is missing or does not fit the tensors.
        UnsupportedModel: another architecture, or a rope scaling that is not known here.
    """
    arch = values.get("general.architecture")
    if not isinstance(arch, str) or arch not in ARCHITECTURES:
        raise UnsupportedModel(
            _(
                "{path} has architecture {arch!r}; GGUF files are read for {architectures} (Llama, "
                "SmolLM, Mistral, Qwen2, Qwen3). Use the safetensors version of this model."
            ).format(path=path, arch=arch, architectures=", ".join(ARCHITECTURES))
        )
    of = _Metadata(values, arch, path)
    hidden, heads = of.count("embedding_length"), of.count("attention.head_count")
    head_dim = of.count("attention.key_length", hidden // max(1, heads))
    kv_heads = of.count("attention.head_count_kv", heads)
    vocab = shapes.get("token_embd.weight", (0,))[0]
    window = values.get(f"{arch}.attention.sliding_window")
    kind = "mistral" if arch == "llama" and window else arch
    config: dict[str, object] = {
        "architectures": [_CLASSES[kind]],
        "model_type": kind,
        "hidden_size": hidden,
        "intermediate_size": of.count("feed_forward_length"),
        "num_hidden_layers": of.count("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
        "vocab_size": vocab,
        "max_position_embeddings": of.count("context_length"),
        "rms_norm_eps": _shortest(of.number("attention.layer_norm_rms_epsilon")),
        "rope_theta": _shortest(of.number("rope.freq_base", 10000.0)),
        "hidden_act": "silu",
        "tie_word_embeddings": "output.weight" not in shapes,
        "attention_bias": "blk.0.attn_q.bias" in shapes,
        "dtype": "bfloat16",
    }
    if kind == "mistral":
        config["sliding_window"] = window
    for role in ("bos", "eos"):
        config[f"{role}_token_id"] = values.get(f"tokenizer.ggml.{role}_token_id")
    _check_shapes(config, shapes, path)
    return config


def rope_scaling(
    values: Mapping[str, object], factors: list[float] | None, path: Path
) -> dict[str, object] | None:
    """Return the rope_scaling entry of config.json, None for plain rope.

    Args:
        values: metadata of the file.
        factors: content of rope_freqs.weight, by which each frequency is divided.
        path: for messages.
    """
    of = _Metadata(values, str(values.get("general.architecture")), path)
    if factors is not None:
        return _llama3_scaling(of, factors)
    kind = values.get(f"{of.arch}.rope.scaling.type", "none")
    if kind == "none":
        return None
    if kind not in ("linear", "yarn"):
        raise UnsupportedModel(
            _(
                "{path} scales rope by {kind!r}; known are none, linear, yarn and the factors of "
                "Llama 3. Use the safetensors version of this model."
            ).format(path=path, kind=kind)
        )
    scaling: dict[str, object] = {"rope_type": kind, "factor": of.number("rope.scaling.factor")}
    if kind == "yarn":
        original = of.count("rope.scaling.original_context_length")
        scaling["original_max_position_embeddings"] = original
    return scaling


def _llama3_scaling(of: _Metadata, factors: list[float]) -> dict[str, object]:
    """Recover Llama 3's settings from the factors; the file keeps only what they led to."""
    head_dim = of.count("rope.dimension_count")
    theta = of.number("rope.freq_base", 10000.0)
    if len(factors) != head_dim // 2:
        raise ModelCorrupt(
            _(
                "{path} has {count} rope factors, where heads of {head_dim} numbers need "
                "{needed}. Download it again."
            ).format(path=of.path, count=len(factors), head_dim=head_dim, needed=head_dim // 2)
        )
    factor = round(max(factors), 4)
    for original in (8192, 4096, 2048, 16384, 32768):
        made = [
            llama3_factor(2 * math.pi * theta ** (2 * i / head_dim), factor, original)
            for i in range(head_dim // 2)
        ]
        if np.allclose(made, factors, rtol=1e-3):
            return {
                "rope_type": "llama3",
                "factor": factor,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": original,
            }
    raise UnsupportedModel(
        _(
            "{path} has rope factors that no Llama 3 setting makes (largest {factor}). Use the "
            "safetensors version of this model."
        ).format(path=of.path, factor=factor)
    )


def llama3_factor(wavelength: float, factor: float, original: int) -> float:
    """Return by how much Llama 3.1 divides the frequency of one wavelength.

    Short waves stay, long ones are stretched by `factor`, those between are blended; the
    boundaries are `original` / 4 and `original` / 1.
    """
    if wavelength < original / 4.0:
        return 1.0
    if wavelength > original:
        return factor
    smooth = (original / wavelength - 1.0) / 3.0
    return 1.0 / ((1.0 - smooth) / factor + smooth)


def _shortest(value: float) -> float:
    """Undo the noise of fp32 storage: 9.999999747e-06 was written as 1e-05."""
    return float(str(np.float32(value)))


def _check_shapes(config: Mapping[str, object], shapes: Shapes, path: Path) -> None:
    def size(key: str) -> int:
        value = config[key]
        assert isinstance(value, int)
        return value

    hidden, head_dim = size("hidden_size"), size("head_dim")
    q, kv = size("num_attention_heads") * head_dim, size("num_key_value_heads") * head_dim
    if size("num_attention_heads") % size("num_key_value_heads"):
        raise ModelCorrupt(
            _("{path}: heads do not divide into KV heads. Download it again.").format(path=path)
        )
    expected = {
        "token_embd.weight": (size("vocab_size"), hidden),
        "blk.0.attn_q.weight": (q, hidden),
        "blk.0.attn_k.weight": (kv, hidden),
        "blk.0.ffn_gate.weight": (size("intermediate_size"), hidden),
    }
    for name, shape in expected.items():
        if name in shapes and shapes[name] != shape:
            raise ModelCorrupt(
                _(
                    "{path}: {name} has shape {shapes}, its metadata says {shape}. Download the "
                    "file again."
                ).format(path=path, name=name, shapes=shapes[name], shape=shape)
            )
