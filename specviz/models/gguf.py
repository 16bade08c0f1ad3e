"""Any GGUF file of the Llama family as a folder of bf16 safetensors, converted once."""

import json
import struct
from collections.abc import Iterator
from math import prod
from pathlib import Path

import numpy as np
import torch
from gguf.quants import dequantize
from numpy.typing import NDArray

from specviz.errors import ModelCorrupt, ModelNotFound, UnsupportedModel
from specviz.models.gguf_config import VERSION, hf_config, rope_scaling
from specviz.models.gguf_file import GgufFile, StoredTensor, read_gguf
from specviz.models.gguf_tokenizer import end_ids, write_tokenizer
from specviz.models.store import Progress, cache_dir, make_folder, sha256, silent, write_atomically
from specviz.words import _

Values = NDArray[np.float32]

CHUNK_VALUES = 1 << 24  # values dequantised at a time (64 MiB in fp32)

_LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_TOP_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_REQUIRED = ("attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate")


def convert_gguf(path: Path, progress: Progress | None = None) -> Path:
    """Return the converted folder of a GGUF file; the first call makes it.

    Args:
        path: the file.
        progress: told how far the work has come.

    Raises:
        ModelNotFound: no such file.
        ModelCorrupt: not GGUF, truncated, or contradicting itself.
        UnsupportedModel: an architecture, quantisation or tokenizer not known here.
        CacheError: the cache folder cannot be written.
    """
    progress = progress or silent
    if not path.is_file():
        raise ModelNotFound(
            _("{path} is not a file; give a GGUF file, a model folder or a hub id").format(
                path=path
            )
        )
    key = _content_hash(path, progress)
    final = cache_dir() / "models" / f"{path.stem}-{key[:12]}-v{VERSION}"
    return make_folder(final, lambda folder: write_model(path, folder, progress), progress)


def write_model(path: Path, folder: Path, progress: Progress = silent) -> None:
    """Convert a GGUF file into the empty `folder`, a few rows at a time."""
    progress(_("Reading the model file"), 0.0)
    file = read_gguf(path)
    config = hf_config(file.metadata, file.shapes, path)
    _check_names(file, config["num_hidden_layers"])
    if scaling := rope_scaling(file.metadata, _rope_factors(file), path):
        config["rope_scaling"] = scaling
    write_tokenizer(file.metadata, folder)
    ends = end_ids(file.metadata)
    generation = {"bos_token_id": config.get("bos_token_id"), "eos_token_id": ends}
    _write_json(folder / "config.json", config)
    _write_json(folder / "generation_config.json", generation)
    _write_safetensors(file, folder / "model.safetensors", progress)


def hf_name(name: str) -> str | None:
    """Name of a tensor in a Hugging Face checkpoint; None if it has no place there."""
    if name in _TOP_NAMES:
        return _TOP_NAMES[name]
    parts = name.split(".")
    if len(parts) == 4 and parts[0] == "blk" and parts[2] in _LAYER_NAMES:
        return f"model.layers.{parts[1]}.{_LAYER_NAMES[parts[2]]}.{parts[3]}"
    return None


def _rope_factors(file: GgufFile) -> list[float] | None:
    stored = file.tensors.get("rope_freqs.weight")
    return None if stored is None else [float(v) for v in dequantize(stored.data, stored.kind)[0]]


def _check_names(file: GgufFile, layers: object) -> None:
    assert isinstance(layers, int)
    path = file.path
    unknown = [n for n in file.tensors if hf_name(n) is None and n != "rope_freqs.weight"]
    if unknown:
        raise UnsupportedModel(
            _(
                "{path} has tensors that no dense Llama-like model has ({unknown}). Mixtures of "
                "experts and other layouts are not read from GGUF: use safetensors."
            ).format(path=path, unknown=", ".join(unknown[:3]))
        )
    needed = ["token_embd.weight", "output_norm.weight"]
    parts = (*_REQUIRED, "ffn_up", "ffn_down")
    needed += [f"blk.{layer}.{part}.weight" for layer in range(layers) for part in parts]
    missing = [name for name in needed if name not in file.tensors]
    if missing:
        raise ModelCorrupt(
            _(
                "{path} lacks {count} tensors, {missing} the first. Download it again; a model "
                "split into several GGUF files has to be merged first."
            ).format(path=path, count=len(missing), missing=missing[0])
        )


def _write_safetensors(file: GgufFile, out: Path, progress: Progress) -> None:
    """Write bf16 values one chunk at a time: the format is a JSON header, then the bytes."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    kept = {name: t for t in file.tensors.values() if (name := hf_name(t.name)) is not None}
    for name, tensor in kept.items():
        end = offset + 2 * prod(tensor.shape)
        header[name] = {
            "dtype": "BF16",
            "shape": list(tensor.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    blob = json.dumps(header, separators=(",", ":")).encode()
    blob += b" " * (-len(blob) % 8)  # readers map the file: keep the data aligned
    with out.open("wb") as stream:
        stream.write(struct.pack("<Q", len(blob)) + blob)
        done = 0
        for tensor in kept.values():
            for values in _values(tensor, _interleaved_heads(tensor.name, file), file.path):
                done += stream.write(_bf16_bytes(values))
                progress(_("Converting the model, once"), done / max(1, offset))


def _interleaved_heads(name: str, file: GgufFile) -> int | None:
    """Heads of a q or k tensor whose rows are stored in interleaved order, as only "llama" has."""
    if file.metadata["general.architecture"] != "llama":
        return None
    part = hf_name(name) or ""
    keys = {"self_attn.q_proj": "head_count", "self_attn.k_proj": "head_count_kv"}
    for projection, key in keys.items():
        if projection in part:
            heads = file.metadata["llama.attention.head_count"]
            count = file.metadata.get(f"llama.attention.{key}", heads)
            assert isinstance(count, int)  # hf_config has checked it
            return count
    return None


def _values(tensor: StoredTensor, heads: int | None, path: Path) -> Iterator[Values]:
    """Dequantised values in rows; all at once where rows have to change places."""
    data = tensor.data
    step = len(data) if heads else max(1, CHUNK_VALUES // tensor.shape[-1])
    for start in range(0, len(data), step):
        try:
            values = dequantize(data[start : start + step], tensor.kind)
        except NotImplementedError as error:
            raise UnsupportedModel(
                _(
                    "{path} stores {name} as {kind}, which cannot be dequantised here. Use "
                    "another quantisation of this model, such as Q8_0 or Q4_K_M."
                ).format(path=path, name=tensor.name, kind=tensor.kind.name)
            ) from error
        if not np.isfinite(values).all():
            raise ModelCorrupt(
                _("{path} has NaN or Inf in {name}. Download it again.").format(
                    path=path, name=tensor.name
                )
            )
        if heads:
            # A bias is one stored row: its values are what has to change places.
            values = _rotary_halves(values.reshape(tensor.shape), heads)
        yield values


def _rotary_halves(values: Values, heads: int) -> Values:
    """Undo interleaving: rows of a head from (0, d/2, 1, d/2 + 1, ...) to (0, 1, 2, ...)."""
    grouped = values.reshape(heads, -1, 2, *values.shape[1:])
    return grouped.swapaxes(1, 2).reshape(values.shape)


def _bf16_bytes(values: Values) -> bytes:
    writable = np.require(values, requirements=["C", "W"])
    return torch.from_numpy(writable).to(torch.bfloat16).view(torch.int16).numpy().tobytes()


def _content_hash(path: Path, progress: Progress) -> str:
    """Hash of the file, remembered by path, size and time: large files take seconds."""
    stat = path.stat()
    memo_path = cache_dir() / "models" / "hashes.json"
    key = f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}"
    try:
        memo = json.loads(memo_path.read_text("utf-8"))
    except (OSError, ValueError):
        memo = {}
    if not isinstance(memo, dict) or not isinstance(memo.get(key), str):
        digest = sha256(path, progress, _("Reading the model file"))
        memo = {**memo, key: digest} if isinstance(memo, dict) else {key: digest}
        write_atomically(memo_path, json.dumps(memo, indent=1))
    return str(memo[key])


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False), "utf-8")
