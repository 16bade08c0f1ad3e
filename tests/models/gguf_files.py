"""GGUF files of tiny random models, written as llama.cpp's converter would."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from gguf import GGMLQuantizationType as Type
from gguf import GGUFWriter, quantize
from torch import Tensor

from specviz.models.text import byte_alphabet

HIDDEN, HEADS, KV_HEADS, HEAD_DIM, INNER, LAYERS = 64, 4, 2, 16, 96, 2
MARKUP = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MERGES = ("h e", "l l", "he ll", "hell o", "Ġ w", "Ġ 1", "1 2")
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
VOCABULARY = (*MARKUP, *byte_alphabet(), *(merge.replace(" ", "") for merge in MERGES))


@dataclass
class Recipe:
    arch: str = "llama"
    kind: Type = Type.F32
    metadata: dict[str, float | int | str] = field(default_factory=dict)
    skip: tuple[str, ...] = ()
    extra: dict[str, np.ndarray] = field(default_factory=dict)
    pre: str = "smollm"


def random_weights(arch: str) -> dict[str, Tensor]:
    """Hugging Face names to values that bf16 holds exactly."""
    generator = torch.Generator().manual_seed(0)

    def make(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).mul(0.1).bfloat16().float()

    q, kv = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
    weights = {"model.embed_tokens.weight": make(len(VOCABULARY), HIDDEN)}
    for layer in range(LAYERS):
        parts = {
            "input_layernorm.weight": make(HIDDEN),
            "self_attn.q_proj.weight": make(q, HIDDEN),
            "self_attn.k_proj.weight": make(kv, HIDDEN),
            "self_attn.v_proj.weight": make(kv, HIDDEN),
            "self_attn.o_proj.weight": make(HIDDEN, q),
            "post_attention_layernorm.weight": make(HIDDEN),
            "mlp.gate_proj.weight": make(INNER, HIDDEN),
            "mlp.up_proj.weight": make(INNER, HIDDEN),
            "mlp.down_proj.weight": make(HIDDEN, INNER),
        }
        if arch == "qwen2":
            for name, rows in (("q", q), ("k", kv), ("v", kv)):
                parts[f"self_attn.{name}_proj.bias"] = make(rows)
        if arch == "qwen3":
            parts["self_attn.q_norm.weight"] = make(HEAD_DIM)
            parts["self_attn.k_norm.weight"] = make(HEAD_DIM)
        weights |= {f"model.layers.{layer}.{name}": value for name, value in parts.items()}
    weights["model.norm.weight"] = make(HIDDEN)
    if arch != "llama":  # llama here shares its embedding with the head
        weights["lm_head.weight"] = make(len(VOCABULARY), HIDDEN)
    return weights


_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "model.layers": "blk",
}


def stored_name(name: str) -> str:
    for theirs, stored in _NAMES.items():
        name = name.replace(theirs, stored)
    return name


def interleaved(value: Tensor, heads: int) -> Tensor:
    """Rows as llama.cpp wants them: it rotates rows (2i, 2i + 1), Hugging Face (i, i + d/2)."""
    out = torch.empty_like(value)
    size = len(value) // heads
    for head in range(heads):
        for i in range(size // 2):
            out[head * size + 2 * i] = value[head * size + i]
            out[head * size + 2 * i + 1] = value[head * size + i + size // 2]
    return out


def write_gguf(path: Path, recipe: Recipe | None = None) -> dict[str, Tensor]:
    """Write the file and return the Hugging Face weights it was made of."""
    recipe = recipe or Recipe()
    weights = random_weights(recipe.arch)
    writer = GGUFWriter(path, recipe.arch)
    _write_metadata(writer, recipe)
    for name, value in weights.items():
        stored = stored_name(name)
        if stored in recipe.skip:
            continue
        if recipe.arch == "llama" and (".q_proj." in name or ".k_proj." in name):
            value = interleaved(value, HEADS if ".q_proj." in name else KV_HEADS)
        kind = recipe.kind if value.dim() == 2 else Type.F32
        writer.add_tensor(stored, quantize(value.numpy(), kind), raw_dtype=kind)
    for name, array in recipe.extra.items():
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return weights


def _write_metadata(writer: GGUFWriter, recipe: Recipe) -> None:
    writer.add_block_count(LAYERS)
    writer.add_context_length(256)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(50000.0)
    writer.add_rope_dimension_count(HEAD_DIM)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(recipe.pre)
    writer.add_token_list(list(VOCABULARY))
    writer.add_token_types([3] * len(MARKUP) + [1] * (len(VOCABULARY) - len(MARKUP)))
    writer.add_token_merges(list(MERGES))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(TEMPLATE)
    for key, value in recipe.metadata.items():
        if isinstance(value, str):
            writer.add_string(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        else:
            writer.add_uint32(key, value)
