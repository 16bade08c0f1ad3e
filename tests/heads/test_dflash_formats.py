"""Published layouts of DFlash heads: each is read as its authors meant it, or refused by name."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from specviz.errors import ConfigError, ModelCorrupt, SpecvizError, UnsupportedModel, VocabMismatch
from specviz.heads.checkpoint import Checkpoint, write_folder
from specviz.heads.dflash import DFlashHead, Owned
from specviz.heads.dflash_config import View
from specviz.heads.dflash_tables import own_tables
from specviz.heads.formats import speculators_block, zlab
from specviz.heads.formats.block_settings import default_taps
from specviz.heads.load import load as dispatch
from specviz.heads.load import save
from tests.heads.block_heads import TAPS, block_config, randomise, tiny_dflash, tiny_target

TARGET = tiny_target().config
# As published for Qwen3, with the sizes of the tests.
ZLAB: dict[str, object] = {
    "architectures": ["DFlashDraftModel"],
    "model_type": "qwen3",
    "auto_map": {"AutoModel": "dflash.DFlashDraftModel"},
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "intermediate_size": 48,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "vocab_size": 64,
    "block_size": 5,
    "num_target_layers": 4,
    "dflash_config": {"mask_token_id": 63, "target_layer_ids": [0, 2]},
}


def load(folder: Path, taps: tuple[int, ...] | None = None) -> DFlashHead:
    head = dispatch(folder, TARGET, taps)
    assert isinstance(head, DFlashHead)
    return head


def published(
    folder: Path, changes: dict[str, object] | None = None, tensors: dict[str, Tensor] | None = None
) -> Path:
    """Write a z-lab folder; a change to None takes a key away."""
    config = {key: value for key, value in (ZLAB | (changes or {})).items() if value is not None}
    write_folder(folder, config, tiny_dflash().state_dict() if tensors is None else tensors)
    return folder


def same(one: DFlashHead, other: DFlashHead) -> bool:
    ours, theirs = one.state_dict(), other.state_dict()
    ids = (one.draft_ids, other.draft_ids)
    return (
        type(one) is type(other)
        and one.config == other.config
        and ours.keys() == theirs.keys()
        and all(torch.equal(ours[name], theirs[name]) for name in ours)
        and (ids[0] is ids[1] or (ids[0] is not None and torch.equal(*ids)))
    )


def part_of_the_vocabulary() -> DFlashHead:
    head = DFlashHead(block_config(draft_vocab=4), draft_ids=torch.tensor([1, 9, 10, 40]))
    randomise(head)
    return head


def test_a_published_file_is_read_as_its_authors_meant_it(tmp_path: Path) -> None:
    head = load(published(tmp_path))
    assert head.config == block_config()  # layer outputs 0 and 2 are hidden states 1 and 3
    assert head.taps == TAPS
    assert same(head, tiny_dflash())


@pytest.mark.parametrize(
    ("layout", "head"),
    [
        ("z-lab", tiny_dflash()),
        ("z-lab", tiny_dflash(owned=Owned(mask=True))),
        ("z-lab", tiny_dflash(block_config(views=(View(window=4), View())))),
        ("z-lab", tiny_dflash(block_config(views=(View(window=4, causal=True),) * 2))),
        ("z-lab", tiny_dflash(block_config(anchor_predicts=True))),
        ("speculators-block", tiny_dflash()),
        ("speculators-block", own_tables(tiny_dflash(owned=Owned(mask=True)), tiny_target())),
        ("speculators-block", part_of_the_vocabulary()),
        (
            "speculators-block",
            tiny_dflash(
                block_config(views=(View(window=4, from_anchor=True, causal=True), View()))
            ),
        ),
    ],
)
def test_what_is_saved_is_loaded_again(layout: str, head: DFlashHead, tmp_path: Path) -> None:
    save(head, tmp_path / "one", layout)
    once = load(tmp_path / "one")
    assert same(once, head)
    save(once, tmp_path / "two", layout)
    for name in ("config.json", "model.safetensors"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_dtypes_stay_as_they_are_in_the_file(tmp_path: Path) -> None:
    head = tiny_dflash().to(torch.bfloat16)
    zlab.write(head, tmp_path)
    assert load(tmp_path).fc.weight.dtype == torch.bfloat16


def test_a_mask_embedding_lies_in_a_file_of_its_own_or_in_the_weights(tmp_path: Path) -> None:
    folder = published(tmp_path)
    save_file({"mask_embedding": torch.arange(32.0)}, folder / "mask_embedding.safetensors")
    mask = load(folder).mask_embedding
    assert mask is not None
    assert mask.tolist() == list(range(32))


def test_layer_ids_are_evenly_spread_where_a_file_names_none(tmp_path: Path) -> None:
    changes: dict[str, object] = {"dflash_config": {"mask_token_id": 63}, "num_target_layers": None}
    folder = published(tmp_path, changes)
    assert zlab.read(Checkpoint(folder), replace(TARGET, layers=8), None).taps == (2, 6)
    deep = replace(TARGET, layers=36)
    assert default_taps(5, deep) == (2, 10, 18, 26, 34)
    assert default_taps(1, deep) == (19,)
    assert default_taps(5, replace(TARGET, layers=64)) == (2, 17, 32, 47, 62)


def test_layer_ids_given_override_the_file(tmp_path: Path) -> None:
    folder = published(tmp_path, {"num_target_layers": 36})
    assert load(folder, taps=(0, 4)).taps == (0, 4)


@pytest.mark.parametrize(
    ("changes", "views"),
    [
        ({}, ()),
        # z-lab's own code slides without being causal
        ({"layer_types": ["sliding_attention", "full_attention"]}, (View(window=7), View())),
        # SpecForge trains sliding layers causally
        (
            {
                "layer_types": ["sliding_attention", "full_attention"],
                "dflash_config": {**ZLAB["dflash_config"], "attention_mode": "gqa"},
            },
            (View(window=7, causal=True), View()),
        ),
        # ModelOpt
        (
            {
                "layer_types": ["full_attention"] * 2,
                "dflash_config": {
                    **ZLAB["dflash_config"],
                    "use_swa": True,
                    "swa_window_size": 9,
                    "causal": False,
                },
            },
            (View(window=9), View(window=9)),
        ),
        # a flag that is present decides for all layers; the one at the top comes first
        ({"is_causal": True}, (View(causal=True), View(causal=True))),
        (
            {"is_causal": False, "dflash_config": {**ZLAB["dflash_config"], "causal": True}},
            (),
        ),
    ],
)
def test_who_sees_whom_is_read_as_each_project_trains(
    changes: dict[str, object], views: tuple[View, ...], tmp_path: Path
) -> None:
    folder = published(tmp_path, {"sliding_window": 7, "use_sliding_window": True} | changes)
    assert load(folder).config.views == views


def test_speculators_windows_count_from_the_anchor(tmp_path: Path) -> None:
    head = tiny_dflash(block_config(views=(View(window=4, from_anchor=True), View())))
    speculators_block.write(head, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["sliding_window_non_causal"] is True
    assert config["aux_hidden_state_layer_ids"] == list(TAPS)
    assert config["speculators_config"]["proposal_methods"][0]["speculative_tokens"] == 4
    del config["sliding_window_non_causal"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert load(tmp_path).config.view(0) == View(window=4, from_anchor=True, causal=True)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"dflash_config": {**ZLAB["dflash_config"], "block_size": 8}},
            ModelCorrupt,
            "block_size = 5 at its top and 8 in dflash_config",
        ),
        ({"block_size": None}, ModelCorrupt, "block_size = None"),
        ({"dflash_config": {"target_layer_ids": [0, 2]}}, ModelCorrupt, "mask_token_id = None"),
        (
            {"dflash_config": {"mask_token_id": 64, "target_layer_ids": [0, 2]}},
            ModelCorrupt,
            "mask_token_id = 64; the embedding table has rows 0 to 63",
        ),
        (
            {"dflash_config": {"mask_token_id": 63, "target_layer_ids": [0, 1, 2]}},
            ModelCorrupt,
            r"fc.weight has 64 columns; 3 hidden states \(1, 2, 3\) of width 32 make 96",
        ),
        (
            {"dflash_config": {"mask_token_id": 63, "target_layer_ids": [0, 4]}},
            ModelCorrupt,
            "reads the output of layer 4; tiny-llama-0 has layers 0 to 3",
        ),
        (
            {"dflash_config": {"mask_token_id": 63, "target_layer_ids": [0, 3]}},
            UnsupportedModel,
            "the output of the last layer, 3",
        ),
        ({"vocab_size": 65}, VocabMismatch, "vocab_size = 65; tiny-llama-0 has 64"),
        ({"hidden_size": 48}, ModelCorrupt, "hidden_size = 48; tiny-llama-0 has 32"),
        ({"num_target_layers": 36}, ModelCorrupt, "num_target_layers = 36"),
        ({"num_hidden_layers": 1}, ModelCorrupt, "layers.1.* does not explain"),
        ({"num_hidden_layers": 3}, ModelCorrupt, "no tensor layers.2."),
        ({"architectures": ["DFlash2DraftModel"]}, UnsupportedModel, "DFlash2DraftModel"),
        (
            {"dflash_config": {**ZLAB["dflash_config"], "projector_type": "domino"}},
            UnsupportedModel,
            "projector_type = 'domino'",
        ),
        ({"final_logit_softcapping": 30.0}, UnsupportedModel, "final_logit_softcapping = 30.0"),
        ({"rope_is_neox_style": False}, UnsupportedModel, "rope_is_neox_style = False"),
        (
            {"rope_scaling": {"rope_type": "longrope", "factor": 4.0}},
            UnsupportedModel,
            "'longrope'",
        ),
        ({"layer_types": ["full_attention"]}, ModelCorrupt, "layer_types = .*; 2 of"),
        ({"layer_types": ["sliding_attention"] * 2}, ModelCorrupt, "sliding_window = None"),
        (
            {"layer_types": ["sliding_attention"] * 2, "use_sliding_window": False},
            ModelCorrupt,
            "use_sliding_window = false",
        ),
        ({"hidden_act": "gelu"}, UnsupportedModel, "hidden_act is 'gelu'"),
    ],
)
def test_refusals_name_the_key(
    changes: dict[str, object], error: type[SpecvizError], message: str, tmp_path: Path
) -> None:
    folder = published(tmp_path, changes)
    with pytest.raises(error, match=message):
        load(folder)


def test_refusals_name_the_tensor(tmp_path: Path) -> None:
    tensors = dict(tiny_dflash().state_dict())
    tensors["layers.0.self_attn.sinks"] = torch.zeros(4)
    with pytest.raises(ModelCorrupt, match=r"tensor layers\.0\.self_attn\.sinks"):
        load(published(tmp_path / "more", tensors=tensors))
    del tensors["layers.0.self_attn.sinks"], tensors["norm.weight"]
    with pytest.raises(ModelCorrupt, match=r"no tensor norm\.weight \[32\]"):
        load(published(tmp_path / "less", tensors=tensors))
    tensors["norm.weight"] = torch.ones(31)
    with pytest.raises(ModelCorrupt, match=r"norm\.weight has shape \[31\]"):
        load(published(tmp_path / "other", tensors=tensors))


def test_a_pickled_mask_embedding_is_not_opened(tmp_path: Path) -> None:
    folder = published(tmp_path)
    (folder / "mask_embedding.pt").write_bytes(b"not even a pickle")
    with pytest.raises(UnsupportedModel, match=r"pickled mask_embedding\.pt"):
        load(folder)


def test_a_layout_that_cannot_say_it_refuses_to_write(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="this head has its own"):
        zlab.write(part_of_the_vocabulary(), tmp_path)
    from_anchor = tiny_dflash(block_config(views=(View(window=4, from_anchor=True), View())))
    with pytest.raises(ConfigError, match="cannot say who sees whom"):
        zlab.write(from_anchor, tmp_path)
    sliding = tiny_dflash(block_config(views=(View(window=4), View())))
    with pytest.raises(ConfigError, match="cannot say who sees whom"):
        speculators_block.write(sliding, tmp_path)


def test_d2t_holds_offsets(tmp_path: Path) -> None:
    head = part_of_the_vocabulary()
    speculators_block.write(head, tmp_path)
    tensors = {name: Checkpoint(tmp_path).get(name) for name in Checkpoint(tmp_path).names}
    assert tensors["d2t"].tolist() == [1, 8, 8, 37]
    assert tensors["t2d"].nonzero().flatten().tolist() == [1, 9, 10, 40]
    tensors["d2t"] = torch.tensor([1, 9, 10, 62])
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ModelCorrupt, match="d2t maps draft token 3 to 65"):
        load(tmp_path)
