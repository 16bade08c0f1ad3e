"""Loading and saving EAGLE-3 heads: every layout, every convention, every refusal."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from specviz.errors import (
    ConfigError,
    ModelCorrupt,
    UnsupportedModel,
)
from specviz.heads.load import save
from specviz.heads.yarn import Yarn
from specviz.models.rope import Rope
from tests.heads.folders import Folder, read
from tests.heads.random_heads import IDS, LATENT, SHAPE, VOCAB, eagle3_head
from tests.heads.test_eagle3 import VARIANTS

LLAMA3 = Rope(
    kind="llama3",
    theta=5e5,
    factor=8.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_context=64,
)
SAVED = VARIANTS | {
    "llama3": {"layer": replace(SHAPE, rope=LLAMA3)},
    "linear": {"layer": replace(SHAPE, rope=Rope(kind="linear", factor=2.0))},
    "yarn": {"layer": replace(SHAPE, rope=Yarn(factor=32.0, original_context=2048, amplitude=1.3))},
    "biases": {"layer": replace(SHAPE, qkv_bias=True, o_bias=True, mlp_bias=True)},
}
for name in ("window", "latent"):  # no layout says the one; the other is read only
    del SAVED[name]


@pytest.mark.parametrize("layout", ["eagle", "speculators-eagle3"])
@pytest.mark.parametrize("name", SAVED)
def test_loading_what_was_saved_is_the_identity(tmp_path: Path, layout: str, name: str) -> None:
    head = eagle3_head(**SAVED[name]).to(torch.bfloat16)
    if layout == "speculators-eagle3" and not head.config.final_norm:
        with pytest.raises(ConfigError, match="no key for a head without its last norm"):
            save(head, tmp_path / "head", layout)
        return
    save(head, tmp_path / "head", layout)
    again = read(tmp_path / "head")
    assert again.layout == layout
    assert again.config == head.config
    assert again.state_dict().keys() == head.state_dict().keys()
    for key, tensor in again.state_dict().items():
        assert torch.equal(tensor, head.state_dict()[key]), key
        assert tensor.dtype == torch.bfloat16
    assert (again.draft_ids is None) == (head.draft_ids is None)
    if head.draft_ids is not None:
        assert torch.equal(again.draft_ids, head.draft_ids)


def test_the_original_layout_has_its_names_offsets_and_mask(folder: Folder) -> None:
    assert {name.split(".")[0] for name in folder.tensors} == {
        "midlayer",
        "fc",
        "norm",
        "lm_head",
        "d2t",
        "t2d",
    }
    assert torch.equal(folder.tensors["d2t"] + torch.arange(32), IDS)
    assert folder.tensors["t2d"].nonzero().flatten().tolist() == IDS.tolist()
    assert folder.config["architectures"] == ["LlamaForCausalLMEagle3"]


def test_layer_ids_count_inputs_or_outputs_by_where_they_stand(folder: Folder) -> None:
    key = "eagle_aux_hidden_state_layer_ids"
    assert read(folder.write()).taps == (1, 2, 3)
    del folder.config[key]
    assert read(folder.write()).taps == (2, 6, 9)  # EAGLE's default for 12 layers
    folder.config["eagle_config"] = {key: [1, 5, 8]}
    assert read(folder.write()).taps == (2, 6, 9)  # SpecForge: outputs of layers
    folder.config[key] = [9, 6, 2]
    assert read(folder.write()).taps == (2, 6, 9)  # in layer order, and the top level comes first
    assert read(folder.write(), layer_ids=(3, 4, 5)).taps == (3, 4, 5)


def test_deepspec_counts_outputs_and_has_q_and_k_norms(tmp_path: Path) -> None:
    five = (1, 3, 5, 7, 9)
    made = Folder(tmp_path / "head", taps=five, draft_ids=None, layer=replace(SHAPE, qk_norm=True))
    del made.config["eagle_aux_hidden_state_layer_ids"]
    del made.config["draft_vocab_size"]
    made.config |= {"architectures": ["Qwen3Eagle3Model"], "target_layer_ids": [0, 2, 4, 6, 8]}
    made.tensors = {n.replace("midlayer.", "layers.0."): t for n, t in made.tensors.items()}
    head = read(made.write())
    assert head.taps == five
    assert head.shape.qk_norm
    assert head.draft_ids is None


@pytest.mark.parametrize("said", [True, False])
def test_norm_output_means_two_things(folder: Folder, said: bool) -> None:
    folder.config["norm_output"] = said
    specforge = read(folder.write()).config
    assert (specforge.final_norm, specforge.recycle_normed) == (said, False)
    folder.config["architectures"] = ["Eagle3LlamaForCausalLM"]
    elsewhere = read(folder.write()).config
    assert (elsewhere.final_norm, elsewhere.recycle_normed) == (True, said)


def test_modelopt_names_layers_by_number_and_has_no_mask(folder: Folder) -> None:
    del folder.tensors["t2d"]
    folder.tensors = {n.replace("midlayer.", "layers.0."): t for n, t in folder.tensors.items()}
    folder.config["eagle_config"] = {
        "eagle_aux_hidden_state_layer_ids": [0, 1, 2],
        "use_input_layernorm_in_first_layer": True,
        "use_last_layernorm": True,
        "norm_before_residual": True,
    }
    del folder.config["eagle_aux_hidden_state_layer_ids"]
    head = read(folder.write())
    assert (head.taps, head.config.norm_before_residual) == ((1, 2, 3), True)
    folder.config["eagle_config"]["use_last_layernorm"] = False
    with pytest.raises(UnsupportedModel, match="eagle_config says use_last_layernorm = false"):
        read(folder.write())


def test_old_exports_are_read(tmp_path: Path) -> None:
    made = Folder(tmp_path / "head", fc_norm=True)
    old = {"fc_norm.0": "aux_norm_low", "fc_norm.1": "aux_norm_mid", "fc_norm.2": "aux_norm_high"}
    for new, name in old.items():
        made.tensors[f"{name}.weight"] = made.tensors.pop(f"{new}.weight")
    made.tensors = {f"model.{n}" if "fc" in n else n: t for n, t in made.tensors.items()}
    made.tensors["midlayer.self_attn.rotary_emb.inv_freq"] = torch.ones(4)
    made.config["use_aux_norm"] = made.config.pop("fc_norm")
    assert read(made.write()).config.fc_norm


def test_speculators_layers_are_a_difference_to_their_class(tmp_path: Path) -> None:
    made = Folder(tmp_path / "head", "speculators-eagle3", layer=replace(SHAPE, eps=1e-6))
    for key in ("rms_norm_eps", "rope_theta", "rope_parameters", "rope_scaling"):
        del made.config["transformer_layer_config"][key]
    del made.config["norm_before_residual"]
    head = read(made.write())
    assert head.shape.eps == 1e-6
    assert head.shape.rope == Rope(theta=10_000.0)
    assert head.config.norm_before_residual is False
    del made.config["transformer_layer_config"]
    with pytest.raises(ModelCorrupt, match="transformer_layer_config = None"):
        read(made.write())


def test_an_identity_map_over_the_whole_vocabulary_is_no_map(tmp_path: Path) -> None:
    made = Folder(tmp_path / "head", draft_ids=None)
    made.tensors["d2t"] = torch.zeros(VOCAB, dtype=torch.int64)
    assert read(made.write()).draft_ids is None


@torch.no_grad()
def test_heads_with_latent_attention_are_read(tmp_path: Path) -> None:
    made, path = eagle3_head(layer=LATENT), tmp_path / "head"
    with pytest.raises(ConfigError, match="are read, not written"):
        save(made, path, "eagle")
    config = Folder(path).config | {
        "architectures": ["Eagle3DeepseekV2ForCausalLM"],
        "kv_lora_rank": 12,
        "qk_rope_head_dim": 4,
        "qk_nope_head_dim": 8,
        "v_head_dim": 6,
        "q_lora_rank": 10,
    }
    (path / "config.json").write_text(json.dumps(config))
    save_file(made.tensors(), path / "model.safetensors")
    head, text = read(path), torch.tensor([[3, 1, 4, 1, 5]])
    assert head.config == made.config
    features, table = torch.randn(1, 5, 3, 32), torch.randn(VOCAB, 32)
    assert torch.equal(next(head(features, text, table)), next(made(features, text, table)))
