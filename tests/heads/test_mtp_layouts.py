"""MTP modules read from the layouts of their families say what transformers' modules say."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from specviz.errors import ConfigError, ModelCorrupt, UnsupportedModel
from specviz.heads.load import load, save
from specviz.heads.mtp import MtpHead
from specviz.models.target import TargetConfig
from tests.heads.random_heads import SHAPE, VOCAB, mtp_head, random_text
from tests.heads.test_mtp import ROUTED

LAYERS = 4
TARGET = TargetConfig(
    name="t", layers=LAYERS, hidden=32, heads=4, kv_heads=2, head_dim=16, vocab=VOCAB, context=512
)
ROWS = 10


def glm():
    from transformers import Glm4MoeConfig, Glm4MoeForCausalLM

    config = Glm4MoeConfig(
        **_shape(),
        n_routed_experts=4,
        n_shared_experts=2,
        n_group=2,
        topk_group=1,
        routed_scaling_factor=1.5,
        first_k_dense_replace=1,
        use_qk_norm=True,
        attention_bias=True,
        num_mtp_layers=1,
    )
    return Glm4MoeForCausalLM(config)


def deepseek():
    from transformers import DeepseekV3Config, DeepseekV3ForCausalLM

    config = DeepseekV3Config(
        **_shape() | {"num_key_value_heads": 4, "head_dim": 4},
        n_routed_experts=4,
        n_shared_experts=1,
        n_group=2,
        topk_group=1,
        first_k_dense_replace=1,
        q_lora_rank=12,
        kv_lora_rank=10,
        qk_nope_head_dim=8,
        qk_rope_head_dim=4,
        v_head_dim=6,
        num_mtp_layers=1,
        rope_parameters={
            "rope_type": "yarn",
            "rope_theta": 10_000.0,
            "factor": 4.0,
            "original_max_position_embeddings": 32,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
        },
    )
    return DeepseekV3ForCausalLM(config)


def qwen3_next():
    from transformers import Qwen3NextConfig, Qwen3NextForCausalLM

    config = Qwen3NextConfig(
        **_shape(),
        num_experts=4,
        shared_expert_intermediate_size=20,
        linear_key_head_dim=8,
        linear_value_head_dim=8,
        linear_num_key_heads=2,
        linear_num_value_heads=2,
        num_mtp_layers=1,
        mtp_layer_types=["full_attention"],
    )
    return Qwen3NextForCausalLM(config)


def _shape() -> dict[str, int]:
    return {
        "vocab_size": VOCAB,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "moe_intermediate_size": 24,
        "num_experts_per_tok": 2,
        "max_position_embeddings": 128,
    }


GLM = {"": f"model.layers.{LAYERS}.", "post_norm": "shared_head.norm", "mtp_block.": ""}
QWEN = {
    "": "mtp.",
    "enorm": "pre_fc_norm_embedding",
    "hnorm": "pre_fc_norm_hidden",
    "eh_proj": "fc",
    "post_norm": "norm",
    "mtp_block.": "layers.0.",
}


def published(module, renamed: dict[str, str], *, fused: bool) -> dict[str, Tensor]:
    """The tensors of transformers' module as the family's checkpoints name them."""
    tensors = {}
    for name, tensor in module.layers[0].state_dict().items():
        for ours, theirs in renamed.items():
            name = name.replace(ours, theirs) if ours else name
        name = renamed[""] + name
        if fused or ".experts." not in name:
            tensors[name] = tensor.clone()
            continue
        stem = name.rsplit(".", 1)[0]
        for index, expert in enumerate(tensor):
            if name.endswith("gate_up_proj"):
                for kind, half in zip(("gate_proj", "up_proj"), expert.chunk(2), strict=True):
                    tensors[f"{stem}.{index}.{kind}.weight"] = half.clone()
            else:
                tensors[f"{stem}.{index}.down_proj.weight"] = expert.clone()
    return tensors


def write(folder: Path, config: dict[str, object], tensors: dict[str, Tensor]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors, folder / "model.safetensors")
    return folder


@pytest.mark.parametrize(
    ("make", "renamed", "fused"),
    [
        (glm, GLM, False),
        (glm, GLM, True),
        (deepseek, GLM, False),
        (qwen3_next, QWEN, False),
    ],
    ids=["glm", "glm-fused", "deepseek", "qwen3_next"],
)
@torch.no_grad()
def test_a_published_module_says_what_transformers_says(
    tmp_path: Path, make, renamed: dict[str, str], fused: bool
) -> None:
    from transformers.cache_utils import MtpCache
    from transformers.modeling_layers import MtpModel

    torch.manual_seed(0)
    main = make().eval()
    module = MtpModel(main, 1).eval()
    for name, weight in module.layers[0].state_dict().items():
        weight.copy_(torch.randn_like(weight) * (0.2 if "norm" in name else 0.3))
        if "norm" in name and make is not qwen3_next:
            weight.add_(1)
    tensors = published(module, renamed, fused=fused)
    tensors["model.embed_tokens.weight"] = torch.zeros(1)  # the target's own: not of the module
    if make is not qwen3_next:
        tensors[f"model.layers.{LAYERS}.embed_tokens.weight"] = torch.zeros(VOCAB, 32)
        tensors[f"model.layers.{LAYERS}.shared_head.head.weight"] = torch.zeros(VOCAB, 32)
    head = load(write(tmp_path / "target", main.config.to_dict(), tensors), TARGET)
    assert isinstance(head, MtpHead)
    assert (head.layout, head.taps) == ("mtp", (LAYERS,))
    hidden, tokens = torch.randn(1, ROWS, 32), torch.tensor([random_text(ROWS)])
    following = torch.cat((tokens[:, 1:], tokens[:, :1] * 0), dim=1)
    theirs = module.forward_layer(
        0,
        hidden,
        torch.arange(1, ROWS + 1)[None],
        MtpCache(config=main.config.get_mtp_config()),
        input_ids=following,
    )
    ours = next(head(hidden[:, :, None], tokens, main.get_input_embeddings().weight))
    assert torch.allclose(ours, theirs, atol=2e-5)


def mimo_tensors(head: MtpHead) -> dict[str, Tensor]:
    own = ("token_", "hidden_", "input_proj", "final_")
    return {
        "model.mtp_layers.0." + name.removeprefix("layers.0."): tensor
        for name, tensor in head.state_dict().items()
        if name.startswith(own) or name.startswith("layers.0.")
    }


def mimo_config(**changes: object) -> dict[str, object]:
    return {
        "model_type": "mimo",
        "architectures": ["MiMoForCausalLM"],
        "num_nextn_predict_layers": 1,
        "vocab_size": VOCAB,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "rms_norm_eps": 1e-5,
        "rope_theta": 5000.0,
        "max_position_embeddings": 128,
    } | changes


@torch.no_grad()
def test_mimo_has_the_hidden_state_first_and_the_first_embedding_blank(tmp_path: Path) -> None:
    made = mtp_head(layer=SHAPE, hidden_first=True, blank_first=True)
    folder = write(tmp_path / "mimo", mimo_config(), mimo_tensors(made))
    head = load(folder, TARGET)
    assert isinstance(head, MtpHead)
    assert head.config.hidden_first
    assert head.config.blank_first
    features, tokens = torch.randn(1, ROWS, 1, 32), torch.tensor([random_text(ROWS)])
    table = torch.randn(VOCAB, 32)
    assert torch.equal(next(head(features, tokens, table)), next(made(features, tokens, table)))


@torch.no_grad()
def test_qwen3_5_keeps_its_text_apart_and_its_norms_less_one(tmp_path: Path) -> None:
    made = mtp_head(layer=replace(SHAPE, qk_norm=True, rotary=4, gated=True))
    renamed = {
        "token_layernorm.weight": "pre_fc_norm_embedding.weight",
        "hidden_layernorm.weight": "pre_fc_norm_hidden.weight",
        "input_proj.weight": "fc.weight",
        "final_layernorm.weight": "norm.weight",
    }
    tensors = {
        "mtp." + renamed.get(name, name): tensor - 1 if "norm" in name else tensor
        for name, tensor in made.state_dict().items()
    }
    text = mimo_config(model_type="qwen3_5_text", mtp_num_hidden_layers=1)
    del text["num_nextn_predict_layers"]
    text["rope_parameters"] = {
        "rope_type": "default",
        "rope_theta": 5000.0,
        "partial_rotary_factor": 0.5,
        "mrope_section": [1, 1, 0],
    }
    config = {"model_type": "qwen3_5", "text_config": text}
    head = load(write(tmp_path / "target", config, tensors), TARGET)
    assert isinstance(head, MtpHead)
    assert head.config.layer == made.config.layer
    features, tokens = torch.randn(1, ROWS, 1, 32), torch.tensor([random_text(ROWS)])
    table = torch.randn(VOCAB, 32)
    ours, theirs = (next(h(features, tokens, table)) for h in (head, made))
    assert torch.allclose(ours, theirs, atol=1e-5)
    text["mtp_num_hidden_layers"] = 0
    with pytest.raises(UnsupportedModel, match="holds no head that is known here"):
        load(write(tmp_path / "target", config, tensors), TARGET)


def test_refusals_name_what_is_wrong(tmp_path: Path) -> None:
    tensors, at = mimo_tensors(mtp_head()), "model.mtp_layers.0."
    latent = tensors | {at + "self_attn.kv_a_proj_with_mqa.weight": torch.zeros(2, 2)}
    with pytest.raises(ModelCorrupt, match="kv_lora_rank = None"):
        load(write(tmp_path / "a", mimo_config(), latent), TARGET)
    strange = tensors | {at + "mlp.extra": torch.zeros(2, 2)}
    with pytest.raises(ModelCorrupt, match=r"tensor layers.0.mlp.extra \[2, 2\]"):
        load(write(tmp_path / "b", mimo_config(), strange), TARGET)
    with pytest.raises(ModelCorrupt, match="hidden_size = 48; t has 32"):
        load(write(tmp_path / "c", mimo_config(hidden_size=48), tensors), TARGET)
    with pytest.raises(ConfigError, match=r"reads the last hidden state, 4"):
        load(write(tmp_path / "d", mimo_config(), tensors), TARGET, layer_ids=(2,))
    with pytest.raises(ModelCorrupt, match=r"q_proj.weight has shape \[32, 32\]"):
        load(write(tmp_path / "e", mimo_config(head_dim=16), tensors), TARGET)


@pytest.mark.parametrize("changes", [{}, {"trained": 3, "own_head": True}], ids=["one", "fastmtp"])
def test_loading_what_was_saved_is_the_identity(tmp_path: Path, changes) -> None:
    head = mtp_head(**changes)
    save(head, tmp_path / "head", "speculators-mtp")
    again = load(tmp_path / "head", TARGET)
    assert isinstance(again, MtpHead)
    assert again.layout == "speculators-mtp"
    assert again.config == head.config
    assert again.state_dict().keys() == head.state_dict().keys()
    for name, tensor in again.state_dict().items():
        assert torch.equal(tensor, head.state_dict()[name]), name


def test_modules_of_other_families_stay_in_their_checkpoints(tmp_path: Path) -> None:
    for head in (mtp_head(experts=ROUTED), mtp_head(hidden_first=True)):
        with pytest.raises(ConfigError, match="only MTP modules with a plain Llama or Qwen3 layer"):
            save(head, tmp_path, "speculators-mtp")
