"""A draft model of the target's own layers, whole or with a part of the vocabulary."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from specviz.errors import ModelCorrupt
from specviz.events import EMPTY
from specviz.heads.dflash_vocab import offsets
from specviz.heads.packing import pack
from specviz.heads.small_llama import D2T, load_small_llama
from specviz.models.llama import LlamaTarget
from specviz.models.tiny import tiny_llama
from specviz.train.draft_model import make_small_llama, small_llama_settings
from specviz.train.tables import LlamaDonor

TEXT, IDS = (5, 9, 2, 40, 7), torch.arange(1, 64, 2)


@pytest.fixture(scope="module")
def target() -> LlamaTarget:
    return tiny_llama()


def write(target: LlamaTarget, folder: Path, ids: torch.Tensor | None) -> Path:
    """A draft model of all of the target's layers: it says what the target says."""
    every = tuple(range(target.config.layers))
    model = make_small_llama(LlamaDonor(target), every)
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    if ids is not None:
        tensors[D2T] = offsets(ids)
    folder.mkdir()
    save_file(tensors, folder / "model.safetensors")
    settings = small_llama_settings(target.llama, every)
    (folder / "config.json").write_text(json.dumps(settings))
    return folder


def logits(model: LlamaTarget) -> torch.Tensor:
    model = model.fork(0)
    model.prefill(TEXT[:-1])
    return model.score(TEXT[-1], EMPTY)[0]


def test_a_part_of_the_vocabulary_has_the_logits_of_the_whole_and_the_rest_none(
    target: LlamaTarget, tmp_path: Path
) -> None:
    whole = logits(load_small_llama(write(target, tmp_path / "whole", None), target))
    part = logits(load_small_llama(write(target, tmp_path / "part", IDS), target))
    torch.testing.assert_close(whole, logits(target))
    torch.testing.assert_close(part[IDS], whole[IDS])
    assert part[::2].eq(float("-inf")).all()


def test_packed_it_says_nearly_the_same_and_takes_a_byte_for_a_weight(
    target: LlamaTarget, tmp_path: Path
) -> None:
    folder = write(target, tmp_path / "part", IDS)
    pack(folder, tmp_path / "small", target)
    stored = load_file(tmp_path / "small" / "model.safetensors")
    assert stored["model.layers.0.mlp.down_proj.weight"].dtype == torch.int8
    part, small = (logits(load_small_llama(f, target)) for f in (folder, tmp_path / "small"))
    gap = (part[IDS] - small[IDS]).abs().max()
    assert 0 < gap < 0.1 * part[IDS].abs().max()


def test_ids_beyond_the_vocabulary_are_refused(target: LlamaTarget, tmp_path: Path) -> None:
    folder = write(target, tmp_path / "part", torch.tensor([1, target.config.vocab]))
    with pytest.raises(ModelCorrupt, match="d2t"):
        load_small_llama(folder, target)
