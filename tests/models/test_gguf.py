"""A converted GGUF file is the model it was made from; anything else is refused by name."""

import json
import math
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Type
from gguf import dequantize, quantize
from safetensors.torch import load_file

from specviz.errors import ModelCorrupt, ModelNotFound, UnsupportedModel
from specviz.models.gguf import convert_gguf
from specviz.models.gguf_config import llama3_factor
from specviz.models.text import Tokenizer
from tests.models.gguf_files import HEAD_DIM, VOCABULARY, Recipe, interleaved, write_gguf


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def file(tmp_path) -> Path:
    return tmp_path / "tiny.gguf"


def config_of(folder: Path) -> dict:
    return json.loads((folder / "config.json").read_text())


@pytest.mark.parametrize("arch", ["llama", "qwen2", "qwen3"])
def test_weights_come_back_in_hugging_face_order(file, arch):
    weights = write_gguf(file, Recipe(arch))
    found = load_file(convert_gguf(file) / "model.safetensors")
    assert found.keys() == weights.keys()
    for name, value in weights.items():
        assert found[name].dtype == torch.bfloat16
        assert torch.equal(found[name].float(), value), name


def test_llama_files_store_q_in_another_order():
    # Otherwise the test above would pass without undoing it.
    rows = torch.arange(8.0)[:, None]
    assert interleaved(rows, 2).flatten().tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


def test_a_bias_of_q_changes_places_like_its_rows(file):
    bias = torch.arange(64.0)
    stored = interleaved(bias, 4).numpy()
    write_gguf(file, Recipe(extra={"blk.0.attn_q.bias": stored, "blk.0.attn_v.bias": stored[:32]}))
    found = load_file(convert_gguf(file) / "model.safetensors")
    assert torch.equal(found["model.layers.0.self_attn.q_proj.bias"].float(), bias)
    assert found["model.layers.0.self_attn.v_proj.bias"].tolist() == stored[:32].tolist()


@pytest.mark.parametrize("arch", ["llama", "qwen2", "qwen3"])
def test_transformers_loads_the_folder_and_agrees_on_every_setting(file, arch):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    weights = write_gguf(file, Recipe(arch))
    folder = convert_gguf(file)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    assert {k: v for k, v in model.state_dict().items() if k in weights}.keys() == weights.keys()
    assert model.config.model_type == arch
    assert model.config.rope_parameters["rope_theta"] == 50000.0
    assert model.config.rms_norm_eps == 1e-5
    assert model.config.max_position_embeddings == 256
    assert model.config.tie_word_embeddings == (arch == "llama")
    assert model.generation_config.eos_token_id == [2]
    text = "hello world 12, 1234\r\n <|im_end|> é日"
    theirs = AutoTokenizer.from_pretrained(folder)(text).input_ids
    assert tuple(theirs) == Tokenizer.from_folder(folder).encode(text)


QUANTISED = [Type.F16, Type.BF16, Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1]


@pytest.mark.parametrize("kind", QUANTISED, ids=lambda kind: kind.name)
def test_quantised_values_are_those_of_the_reference(file, kind):
    weights = write_gguf(file, Recipe("qwen2", kind))
    name = "model.layers.1.mlp.down_proj.weight"
    expected = dequantize(quantize(weights[name].numpy(), kind), kind)
    found = load_file(convert_gguf(file) / "model.safetensors")[name]
    assert torch.equal(found, torch.from_numpy(expected.copy()).bfloat16())


def test_large_tensors_are_converted_in_pieces(file, monkeypatch):
    monkeypatch.setattr("specviz.models.gguf.CHUNK_VALUES", 3 * 64)
    weights = write_gguf(file)
    seen = []
    found = load_file(convert_gguf(file, lambda _, done: seen.append(done)) / "model.safetensors")
    assert all(torch.equal(found[name].float(), value) for name, value in weights.items())
    assert len(seen) > 100
    assert seen[-1] == 1.0


def test_the_second_time_nothing_is_converted(file, monkeypatch):
    write_gguf(file)
    folder = convert_gguf(file)
    monkeypatch.setattr("specviz.models.gguf.write_model", lambda *_: pytest.fail("converted"))
    monkeypatch.setattr("specviz.models.gguf.sha256", lambda *_: pytest.fail("hashed"))
    assert convert_gguf(file) == folder


def test_other_content_under_the_same_name_is_another_model(file):
    write_gguf(file)
    first = convert_gguf(file)
    write_gguf(file, Recipe(metadata={"llama.rope.freq_base": 7000.0}))
    second = convert_gguf(file)
    assert first != second
    assert config_of(second)["rope_theta"] == 7000.0


def test_llama3_rope_scaling_is_recovered_from_the_factors(file):
    waves = [2 * math.pi * 50000.0 ** (2 * i / HEAD_DIM) for i in range(HEAD_DIM // 2)]
    factors = np.array([llama3_factor(wave, 8.0, 8192) for wave in waves], np.float32)
    assert factors.min() == 1.0
    assert factors.max() == 8.0
    write_gguf(file, Recipe(extra={"rope_freqs.weight": factors}))
    assert config_of(convert_gguf(file))["rope_scaling"] == {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }


def test_llama3_factors_are_those_of_transformers():
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    scaling = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0}
    limits = {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    config = LlamaConfig(
        hidden_size=256,
        num_attention_heads=4,
        max_position_embeddings=131072,
        rope_parameters={**scaling, **limits, "original_max_position_embeddings": 8192},
    )
    theirs, _ = ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")
    plain = [500000.0 ** (-2 * i / 64) for i in range(32)]
    ours = [f / llama3_factor(2 * math.pi / f, 8.0, 8192) for f in plain]
    torch.testing.assert_close(theirs, torch.tensor(ours), rtol=1e-5, atol=0)


def test_rope_factors_of_nobody_are_refused(file):
    factors = np.linspace(1, 9, HEAD_DIM // 2, dtype=np.float32)
    write_gguf(file, Recipe(extra={"rope_freqs.weight": factors}))
    with pytest.raises(UnsupportedModel, match="rope factors"):
        convert_gguf(file)


def test_a_sliding_window_makes_it_mistral(file):
    write_gguf(file, Recipe(metadata={"llama.attention.sliding_window": 32}))
    config = config_of(convert_gguf(file))
    assert (config["model_type"], config["sliding_window"]) == ("mistral", 32)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.999])
def test_a_truncated_file_is_named_and_leaves_nothing_behind(file, tmp_path, share):
    write_gguf(file)
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(ModelCorrupt, match=r"tiny\.gguf is damaged or cut short"):
        convert_gguf(file)
    assert not list((tmp_path / "cache" / "models").glob("*tiny*/"))


@pytest.mark.parametrize("content", [b"", b"GG", b"PK\x03\x04 a zip file", b"<html>no</html>"])
def test_what_is_no_gguf_file_is_refused(file, content):
    file.write_bytes(content)
    with pytest.raises(ModelCorrupt, match="not a GGUF file"):
        convert_gguf(file)


def test_absurd_counts_in_the_header_are_refused(file):
    file.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 2**60, 2**60) + b"\0" * 64)
    with pytest.raises(ModelCorrupt, match="damaged"):
        convert_gguf(file)


def test_a_missing_file_is_not_found(tmp_path):
    with pytest.raises(ModelNotFound, match=r"absent\.gguf"):
        convert_gguf(tmp_path / "absent.gguf")


EIGHTS = np.full(8, 8, np.float32)
EXPERTS = {"blk.0.ffn_gate_exps.weight": np.ones((2, 2), np.float32)}
NAN_HEAD = {"output.weight": np.full((len(VOCABULARY), 64), np.nan, np.float32)}


@pytest.mark.parametrize(
    ("recipe", "error", "says"),
    [
        (Recipe("llama", metadata={"general.architecture": "mamba"}), UnsupportedModel, "mamba"),
        (Recipe(extra=EXPERTS), UnsupportedModel, "ffn_gate_exps"),
        (Recipe(skip=("blk.1.ffn_up.weight",)), ModelCorrupt, r"blk\.1\.ffn_up\.weight"),
        (Recipe(metadata={"llama.embedding_length": 32}), ModelCorrupt, "shape"),
        (Recipe(metadata={"llama.attention.head_count_kv": 3}), ModelCorrupt, "KV heads"),
        (Recipe(metadata={"llama.block_count": 2_000_000_000}), ModelCorrupt, "block_count"),
        (Recipe(extra={"rope_freqs.weight": EIGHTS[:3]}), ModelCorrupt, "3 rope factors"),
        (Recipe(metadata={"llama.rope.scaling.type": "longrope"}), UnsupportedModel, "longrope"),
        (Recipe(metadata={"tokenizer.ggml.model": "t5"}), UnsupportedModel, "'t5'"),
        (Recipe(pre="tekken"), UnsupportedModel, "tekken"),
        (Recipe(extra=NAN_HEAD), ModelCorrupt, "NaN"),
    ],
    ids=[
        "arch",
        "experts",
        "missing",
        "shape",
        "heads",
        "layers",
        "factors",
        "rope",
        "tokenizer",
        "pre",
        "nan",
    ],
)
def test_a_model_that_cannot_be_read_right_is_refused(file, recipe, error, says):
    write_gguf(file, recipe)
    with pytest.raises(error, match=says):
        convert_gguf(file)
