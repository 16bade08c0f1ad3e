"""What cannot be a head is refused, and the key or tensor that is wrong is named."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from specviz.errors import (
    ConfigError,
    ModelCorrupt,
    ModelNotFound,
    UnsupportedModel,
    VocabMismatch,
)
from specviz.heads.load import FORMATS, load, save
from tests.heads.folders import TARGET, Folder, read
from tests.heads.random_heads import IDS, VOCAB, eagle3_head


@pytest.mark.parametrize(
    ("name", "tensor", "said"),
    [
        ("d2t", IDS, "d2t holds offsets"),
        ("d2t", torch.zeros(5, dtype=torch.int64), r"tensor d2t is \[5\]"),
        ("d2t", torch.tensor([1, 0] + [30] * 30), "two draft tokens to one"),
        ("d2t", None, r"no tensor d2t \[32\]"),
        ("t2d", torch.ones(VOCAB, dtype=torch.bool), "tensor t2d .* does not mark"),
        ("fc.weight", torch.zeros(32, 64), r"fc.weight has 64 columns; 3 hidden states"),
        ("fc.weight", None, "no tensor fc.weight"),
        ("lm_head.weight", None, "no tensor lm_head.weight"),
        ("lm_head.weight", torch.zeros(31, 32), r"lm_head.weight has shape \[31, 32\]"),
        ("midlayer.mlp.up_proj.weight", None, "no tensor layers.0.mlp.up_proj.weight"),
        ("input_norm.weight", torch.ones(96), "a tensor input_norm.weight .* does not explain"),
    ],
)
def test_wrong_tensors_are_named(folder: Folder, name: str, tensor: Tensor | None, said: str):
    folder.tensors.pop(name, None)
    if tensor is not None:
        folder.tensors[name] = tensor
    with pytest.raises(ModelCorrupt, match=said):
        read(folder.write())


@pytest.mark.parametrize(
    ("key", "value", "error", "said"),
    [
        ("vocab_size", 65, VocabMismatch, "vocab_size = 65; t has 64"),
        ("hidden_act", "gelu", UnsupportedModel, "hidden_act is 'gelu'"),
        ("eagle_aux_hidden_state_layer_ids", "all", ModelCorrupt, "a list of layer numbers"),
        ("eagle_aux_hidden_state_layer_ids", [2, 13, 9], ConfigError, "t has 0 to 12"),
        ("num_key_value_heads", 3, ModelCorrupt, "num_key_value_heads = 3 does not divide"),
        ("architectures", ["PEagleLlamaForCausalLMEagle3"], UnsupportedModel, "P-EAGLE"),
        ("intermediate_size", None, ModelCorrupt, "intermediate_size = None"),
        ("rope_parameters", {"rope_type": "su"}, UnsupportedModel, "rope scaling is 'su'"),
    ],
)
def test_wrong_keys_are_named(folder: Folder, key: str, value: object, error, said: str) -> None:
    folder.config[key] = value
    with pytest.raises(error, match=said):
        read(folder.write())


def test_quantised_heads_are_refused(folder: Folder) -> None:
    name = "midlayer.mlp.up_proj.weight"
    folder.tensors[name] = folder.tensors[name].to(torch.int8)
    with pytest.raises(UnsupportedModel, match=r"up_proj.weight is torch.int8"):
        read(folder.write())


def test_too_few_layers_for_the_default_are_told_to_give_ids(folder: Folder) -> None:
    del folder.config["eagle_aux_hidden_state_layer_ids"]
    with pytest.raises(ModelCorrupt, match="has 4 layers, too few"):
        load(folder.write(), replace(TARGET, layers=4))


def test_c4_pickles_are_never_opened(folder: Folder) -> None:
    (folder.path / "model.safetensors").unlink()
    (folder.path / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    with pytest.raises(UnsupportedModel, match=r"pytorch_model.bin, a pickle"):
        read(folder.path)


def test_damage_and_absence_are_told_apart(folder: Folder, tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="nowhere"):
        read(tmp_path / "nowhere")
    whole = (folder.path / "model.safetensors").read_bytes()
    (folder.path / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelCorrupt, match="damaged or cut short"):
        read(folder.path)
    (folder.path / "config.json").write_text("{")
    with pytest.raises(ModelCorrupt, match="is not JSON"):
        read(folder.path)


def test_what_is_no_head_is_told_which_layouts_are_read(folder: Folder) -> None:
    folder.config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
    folder.tensors = {"model.norm.weight": torch.ones(2)}
    with pytest.raises(UnsupportedModel, match="layouts read: speculators-eagle3, "):
        read(folder.write())


def test_only_layouts_that_hold_a_head_are_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="format is 'gguf'; heads are written as"):
        save(eagle3_head(), tmp_path, "gguf")
    for layout in FORMATS:
        if layout.write and not layout.name.endswith(("eagle", "eagle3")):
            with pytest.raises(ConfigError, match="eagle3"):
                layout.write(eagle3_head(), tmp_path)
