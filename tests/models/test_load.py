"""From a name to a running target, and what is said when there is none."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer as Backend
from tokenizers.models import WordLevel

from specviz.errors import ConfigError, ModelCorrupt, ModelNotFound, UnsupportedModel
from specviz.events import EMPTY
from specviz.models.hf import HFTarget
from specviz.models.llama import LlamaTarget
from specviz.models.llama_config import read_llama_config
from specviz.models.load import load
from specviz.models.tiny import TinyShape, tiny_llama, tiny_tensors


def settings_of(**changes: object) -> dict[str, object]:
    return TinyShape().settings("llama") | {"eos_token_id": 2} | changes


def save_model(folder: Path, settings: dict[str, object]) -> Path:
    """A tiny model as transformers would save it, with a tokenizer of 64 words."""
    tensors = tiny_tensors(read_llama_config(settings_of()))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(settings))
    words = {f"w{i}": i for i in range(64)}
    Backend(WordLevel(words, unk_token="w0")).save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save_model(tmp_path, settings_of())


def quick(spec: object) -> LlamaTarget | HFTarget:
    return load(str(spec), device="cpu", dtype="float32").target


def test_a_folder_is_loaded_as_it_was_saved(folder):
    loaded = load(str(folder), device="cpu", dtype="float32")
    expected = tiny_llama().score(5, EMPTY)
    assert torch.equal(loaded.target.score(5, EMPTY), expected)
    assert isinstance(loaded.target, LlamaTarget)
    assert (loaded.spec, loaded.target.config.eos) == (str(folder), (2,))
    assert loaded.tokenizer.vocab_size == loaded.target.config.vocab == 64


def test_the_hash_tells_other_weights_apart(folder):
    before = quick(folder).config.sha
    assert quick(folder).config.sha == before
    tensors = tiny_tensors(read_llama_config(settings_of()), seed=1)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    assert quick(folder).config.sha != before


def test_weights_may_lie_in_several_files(folder):
    tensors = tiny_tensors(read_llama_config(settings_of()))
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    files = {"a.safetensors": names[:7], "b.safetensors": names[7:]}
    for file, part in files.items():
        save_file({name: tensors[name] for name in part}, folder / file)
    index = {"weight_map": {name: file for file, part in files.items() for name in part}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert torch.equal(quick(folder).score(5, EMPTY), tiny_llama().score(5, EMPTY))
    (folder / "b.safetensors").unlink()
    with pytest.raises(ModelNotFound, match=r"b\.safetensors"):
        quick(folder)


def test_end_tokens_of_the_generation_config_win(folder):
    (folder / "generation_config.json").write_text('{"eos_token_id": [2, 7]}')
    assert quick(folder).config.eos == (2, 7)


def test_what_our_decoder_lacks_runs_through_transformers(tmp_path):
    yarn = {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 256}
    target = quick(save_model(tmp_path, settings_of(rope_scaling=yarn)))
    assert isinstance(target, HFTarget)


def test_rope_that_changes_with_the_length_is_refused(tmp_path):
    dynamic = {"rope_type": "dynamic", "factor": 2.0}
    with pytest.raises(UnsupportedModel, match="dynamic"):
        quick(save_model(tmp_path, settings_of(rope_scaling=dynamic)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"model_type": ["llama"]},
        {"model_type": {"a": 1}},
        {"model_type": 7},
        {"num_hidden_layers": 2_000_000_000},
        {"num_hidden_layers": 10**400},
        {"num_hidden_layers": 1e300},
        {"hidden_size": 2**31},
        {"vocab_size": 2**40},
        {"max_position_embeddings": 2**63},
        {"rms_norm_eps": 10**400},
        {"model_type": "gpt2", "n_layer": 2_000_000_000},
        {"model_type": "gemma3", "text_config": {"num_hidden_layers": 2_000_000_000}},
        {"text_config": {"model_type": []}},
    ],
    ids=str,
)
def test_a_configuration_without_sense_is_named_at_once(folder, wrong):
    (folder / "config.json").write_text(json.dumps(settings_of() | wrong))
    with pytest.raises(ModelCorrupt, match=r"config\.json says"):
        quick(folder)


def test_layer_types_of_the_wrong_type_are_no_attention(folder):
    other = {"model_type": "gpt2", "layer_types": [["full_attention"]]}
    (folder / "config.json").write_text(json.dumps(settings_of() | other))
    with pytest.raises(UnsupportedModel, match="layer_types names"):
        quick(folder)


@pytest.mark.parametrize("name", ["no/such/folder", "nothing here", "x.gguf"])
def test_what_is_not_there_is_named(name):
    with pytest.raises(ModelNotFound, match=name):
        quick(name)


@pytest.mark.parametrize("name", ["", " "])
def test_an_empty_name_is_not_the_embedded_model(name):
    with pytest.raises(ModelNotFound, match="no model is named"):
        load(name, device="cpu", dtype="float32")


def test_a_hub_id_without_a_network_says_what_to_do(tmp_path):
    code = (
        "from specviz.models.load import find\n"
        "from specviz.errors import ModelNotFound\n"
        "try:\n    find('someone/some-model')\n"
        "except ModelNotFound as error:\n    print(error)"
    )
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", code], env=offline, capture_output=True, text=True)
    assert "someone/some-model is not in the local hub cache" in done.stdout, done.stderr
    assert "give its path" in done.stdout


def test_pickled_weights_are_never_read(folder):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    with pytest.raises(UnsupportedModel, match=r"pytorch_model\.bin, a pickle.*save_pretrained"):
        quick(folder)


def test_a_model_that_needs_its_own_code_is_refused(folder):
    own = {"model_type": "their_own", "auto_map": {"AutoModelForCausalLM": "code.Model"}}
    (folder / "config.json").write_text(json.dumps(settings_of() | own))
    with pytest.raises(UnsupportedModel, match="never run"):
        quick(folder)


@pytest.mark.parametrize("length", [0, 5, 60, 5000])
def test_truncated_weights_are_noticed(folder, length):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(ModelCorrupt, match=r"model\.safetensors.*fetch the model again"):
        quick(folder)


@pytest.mark.parametrize("content", ["", "{", "[1]", "\x00\x01", "[" * 100_000])
def test_a_damaged_config_is_noticed(folder, content):
    (folder / "config.json").write_text(content)
    with pytest.raises(ModelCorrupt, match=r"config\.json"):
        quick(folder)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hidden_size", "32"),
        ("num_hidden_layers", -1),
        ("num_attention_heads", 0),
        ("vocab_size", None),
        ("num_key_value_heads", 3),
        ("rms_norm_eps", True),
        ("head_dim", 7),
    ],
)
def test_a_config_that_makes_no_sense_is_named(folder, key, value):
    (folder / "config.json").write_text(json.dumps(settings_of(**{key: value})))
    with pytest.raises(ModelCorrupt):
        quick(folder)


def test_missing_files_are_named(folder):
    (folder / "model.safetensors").rename(folder / "elsewhere")
    with pytest.raises(ModelNotFound, match=r"no \.safetensors"):
        quick(folder)
    (folder / "config.json").unlink()
    with pytest.raises(ModelNotFound, match=r"no config\.json"):
        quick(folder)


def test_unknown_devices_and_dtypes_are_refused(folder):
    with pytest.raises(ConfigError, match="device"):
        load(str(folder), device="abacus")
    with pytest.raises(ConfigError, match="dtype"):
        load(str(folder), device="cpu", dtype="int3")


def test_loading_our_families_imports_neither_transformers_nor_the_hub(folder):
    code = (
        "import sys\nfrom specviz.models.load import load\n"
        f"load({str(folder)!r}, device='cpu', dtype='float32')\n"
        "heavy = {'transformers', 'huggingface_hub', 'gguf', 'streamlit'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_embedded_model_decodes_like_transformers(embedded_model):
    """128 greedy tokens in float32, which needs both models in memory: 1 GB."""
    from transformers import AutoModelForCausalLM

    loaded = load(device="cpu", dtype="float32")
    prompt = loaded.tokenizer.chat("Name three rivers and say where each of them ends.")
    target, tokens = loaded.target, list(prompt)
    target.prefill(tokens[:-1])
    for _ in range(128):
        best = int(target.score(tokens[-1], EMPTY)[0].argmax())
        target.commit(())
        tokens.append(best)
    model = AutoModelForCausalLM.from_pretrained(embedded_model, dtype=torch.float32)
    expected = model.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
        max_new_tokens=128,
        min_new_tokens=128,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
    )
    assert tokens == expected[0].tolist()
