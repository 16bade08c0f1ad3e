"""Published layouts of DSpark heads: four spellings of the same tensors."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from specviz.errors import ConfigError, ModelCorrupt, SpecvizError, UnsupportedModel
from specviz.heads.checkpoint import Checkpoint, write_folder
from specviz.heads.dflash import DFlashHead
from specviz.heads.dflash_config import DSparkShape
from specviz.heads.dflash_tables import own_tables
from specviz.heads.dspark import DSparkHead
from specviz.heads.formats import deepspec, speculators_block, zlab
from specviz.heads.load import load as dispatch
from specviz.heads.load import save
from tests.heads.block_heads import (
    block_config,
    randomise,
    spark_config,
    tiny_dflash,
    tiny_dspark,
    tiny_target,
)
from tests.heads.test_dflash_formats import ZLAB, same

TARGET = tiny_target()
KINDS = {
    "vanilla": DSparkShape(rank=6),
    "gated": DSparkShape(rank=6, kind="gated"),
    "rnn, blind": DSparkShape(rank=6, kind="rnn", confidence_sees_markov=False),
    "no confidence": DSparkShape(rank=6, confidence=False),
    "rank 0": DSparkShape(rank=0, confidence=False),
}


def load(folder: Path) -> DFlashHead:
    head = dispatch(folder, TARGET.config)
    assert isinstance(head, DFlashHead)
    return head


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", ["deepspec", "speculators-block", "z-lab"])
def test_what_is_saved_is_loaded_again(layout: str, kind: str, tmp_path: Path) -> None:
    head: DFlashHead = tiny_dspark(spark_config(KINDS[kind]))
    if layout != "z-lab":
        head = own_tables(head, TARGET)
    save(head, tmp_path, layout)
    loaded = load(tmp_path)
    assert same(loaded, head)
    assert loaded.layout == layout


def test_speculators_holds_a_part_of_the_vocabulary(tmp_path: Path) -> None:
    config = spark_config(draft_vocab=3)
    head = DSparkHead(config, draft_ids=torch.tensor([2, 3, 50]))
    randomise(head)
    speculators_block.write(head, tmp_path)
    assert same(load(tmp_path), head)


def modelopt(folder: Path, nested: dict[str, object] | None = None) -> Path:
    """A file as ModelOpt exports it: flat names, and an architecture that says only DFlash."""
    flat: dict[str, Tensor] = {}
    for name, tensor in tiny_dspark().state_dict().items():
        ours = name.removeprefix("markov_head.")
        flat[ours.replace("confidence_head.proj", "confidence_proj")] = tensor
    told = nested or {
        "projector_type": "dspark",
        "shift_label": True,
        "markov_rank": 6,
        "markov_head_type": "vanilla",
        "use_confidence_head": True,
    }
    write_folder(folder, ZLAB | {"dflash_config": {**ZLAB["dflash_config"], **told}}, flat)
    return folder


def test_modelopts_flat_names_are_read(tmp_path: Path) -> None:
    assert same(load(modelopt(tmp_path)), tiny_dspark())


def test_a_dspark_that_only_its_tensors_tell_is_recognised(tmp_path: Path) -> None:
    head = load(modelopt(tmp_path, {"markov_rank": 6}))
    assert isinstance(head, DSparkHead)
    assert head.config.anchor_predicts


def test_early_specforge_files_are_read(tmp_path: Path) -> None:
    zlab.write(tiny_dspark(), tmp_path)
    checkpoint = Checkpoint(tmp_path)
    old = {
        f"logit_head.{name}" if "_head." in name else name: checkpoint.get(name)
        for name in checkpoint.names
    }
    write_folder(tmp_path, checkpoint.config, old)
    assert same(load(tmp_path), tiny_dspark())


def test_an_absent_sample_from_anchor_means_what_the_class_says(tmp_path: Path) -> None:
    for anchor_predicts in (True, False):
        head = tiny_dspark(
            block_config(dspark=DSparkShape(rank=6), anchor_predicts=anchor_predicts)
        )
        speculators_block.write(head, tmp_path)
        assert load(tmp_path).config.anchor_predicts is anchor_predicts
    config = {k: v for k, v in Checkpoint(tmp_path).config.items() if k != "sample_from_anchor"}
    write_folder(tmp_path, config, tiny_dspark().state_dict())
    assert load(tmp_path).config.anchor_predicts


def test_a_confidence_head_that_is_promised_and_not_there_is_done_without(tmp_path: Path) -> None:
    head = own_tables(tiny_dspark(), TARGET)
    deepspec.write(head, tmp_path)
    checkpoint = Checkpoint(tmp_path)
    names = [name for name in checkpoint.names if not name.startswith("confidence_head.")]
    write_folder(tmp_path, checkpoint.config, {name: checkpoint.get(name) for name in names})
    loaded = load(tmp_path)
    assert loaded.config.dspark == DSparkShape(rank=6, confidence=False)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"architectures": ["Gemma4DSparkModel"]}, UnsupportedModel, "Gemma4DSparkModel"),
        ({"markov_head_type": "lstm"}, UnsupportedModel, "markov_head_type = 'lstm'"),
        ({"markov_head_type": "gated"}, ModelCorrupt, r"no tensor markov_head\.gate_proj"),
        ({"markov_rank": 8}, ModelCorrupt, r"markov_w1\.weight has shape \[64, 6\]"),
        ({"markov_rank": -1}, ModelCorrupt, "markov_rank = -1"),
        ({"confidence_head_with_markov": False}, ModelCorrupt, r"confidence_head\.proj\.weight"),
        ({"target_layer_ids": None}, ModelCorrupt, "target_layer_ids = None"),
        ({"target_layer_ids": [0, 0]}, ModelCorrupt, "a layer is named twice"),
    ],
)
def test_refusals_name_the_key_or_tensor(
    changes: dict[str, object], error: type[SpecvizError], message: str, tmp_path: Path
) -> None:
    deepspec.write(own_tables(tiny_dspark(), TARGET), tmp_path)
    checkpoint = Checkpoint(tmp_path)
    tensors = {name: checkpoint.get(name) for name in checkpoint.names}
    write_folder(tmp_path, dict(checkpoint.config) | changes, tensors)
    with pytest.raises(error, match=message):
        load(tmp_path)


def test_deepspec_counts_the_embeddings_as_layer_minus_1(tmp_path: Path) -> None:
    deepspec.write(own_tables(tiny_dspark(spark_config(taps=(0, 3))), TARGET), tmp_path)
    assert Checkpoint(tmp_path).config["target_layer_ids"] == [-1, 2]
    assert load(tmp_path).taps == (0, 3)


def test_deepspec_refuses_what_it_cannot_hold(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="DFlash head"):
        deepspec.write(tiny_dflash(), tmp_path)
    with pytest.raises(ConfigError, match="own_tables"):
        deepspec.write(tiny_dspark(), tmp_path)
    part = DSparkHead(spark_config(draft_vocab=2), draft_ids=torch.tensor([1, 2]))
    with pytest.raises(ConfigError, match="whole vocabulary"):
        deepspec.write(part, tmp_path)
