"""A model folder on disk, made in code: random weights and a tokenizer of bytes."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from specviz.models.llama_config import read_llama_config
from specviz.models.tiny import TinyShape, tiny_tensors

END = 256  # "<|end|>"
VOCAB = 258
CHAT = (
    "{% for m in messages %}<|user|>{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}\n{% endif %}"
)


def write_model(
    folder: Path, *, context: int = 256, layers: int = 1, swap: bool = False, nan: bool = False
) -> Path:
    """Write config, weights and tokenizer.

    `swap` exchanges the bytes of two ids; `nan` puts a NaN into the output head.
    """
    folder.mkdir()
    shape = TinyShape(vocab=VOCAB, context=context, hidden=32, layers=layers, intermediate=32)
    settings = shape.settings("llama") | {"eos_token_id": END}
    (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    tensors = tiny_tensors(read_llama_config(settings, name="tiny"))
    if nan:
        tensors["lm_head.weight"][7, 3] = torch.nan
    save_file(
        {name: t.to(torch.float32).contiguous() for name, t in tensors.items()},
        folder / "model.safetensors",
        metadata={"format": "pt"},
    )
    write_tokenizer(folder, swap=swap)
    return folder


def write_tokenizer(folder: Path, *, swap: bool) -> None:
    """Write a byte-level tokenizer without merges: one token for each byte."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    if swap:
        letters[5], letters[6] = letters[6], letters[5]
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|end|>", "<|user|>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|end|>",
        "chat_template": CHAT,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
