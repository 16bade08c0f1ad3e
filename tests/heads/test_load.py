"""Loading and saving EAGLE-3 heads: every layout, every convention, every refusal."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from specviz.errors import (
    ConfigError,
    ModelCorrupt,
    ModelNotFound,
    UnsupportedModel,
    VocabMismatch,
)
from specviz.heads.eagle3 import Eagle3Head
from specviz.heads.load import FORMATS, load, save
from specviz.heads.yarn import Yarn
from specviz.models.rope import Rope
from specviz.models.target import TargetConfig
from tests.heads.random_heads import IDS, LATENT, SHAPE, VOCAB, eagle3_head
from tests.heads.test_eagle3 import VARIANTS

TARGET = TargetConfig(
    name="t", layers=12, hidden=32, heads=4, kv_heads=2, head_dim=8, vocab=VOCAB, context=512
)
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


def read(folder: Path, layer_ids: tuple[int, ...] | None = None) -> Eagle3Head:
    head = load(folder, TARGET, layer_ids)
    assert isinstance(head, Eagle3Head)
    return head


class Folder:
    """A saved head whose config and tensors can be changed."""

    def __init__(self, path: Path, layout: str = "eagle", **changes: object) -> None:
        self.path = path
        save(eagle3_head(**changes), path, layout)
        self.config = json.loads((path / "config.json").read_text())
        self.tensors: dict[str, Tensor] = load_file(path / "model.safetensors")

    def write(self) -> Path:
        (self.path / "config.json").write_text(json.dumps(self.config))
        save_file(self.tensors, self.path / "model.safetensors")
        return self.path


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "head")


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
