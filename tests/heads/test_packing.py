"""Packed heads: a byte for each weight, nothing stored that the target has too."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from specviz.errors import ConfigError, ModelCorrupt
from specviz.heads.eagle3 import Eagle3Head
from specviz.heads.load import load, save
from specviz.heads.mtp import MtpHead
from specviz.heads.packing import PACKED, pack, quantise, target_rows
from specviz.models.llama import LlamaTarget
from tests.heads.random_heads import IDS, eagle3_head, mtp_head, target_for


def borrower(target: LlamaTarget | None = None) -> tuple[Eagle3Head, LlamaTarget]:
    """Make a head that drafts through the target's own rows."""
    head = eagle3_head()
    target = target or target_for(head)
    assert head.lm_head is not None
    head.lm_head.weight.data = target_rows(target, IDS).float()
    return head, target


@pytest.fixture
def packed(tmp_path: Path) -> tuple[Path, Eagle3Head, LlamaTarget]:
    head, target = borrower()
    save(head, tmp_path / "whole", "speculators-eagle3")
    (tmp_path / "whole" / "card.json").write_text("{}")
    pack(tmp_path / "whole", tmp_path / "small", target)
    return tmp_path / "small", head, target


def test_a_weight_is_off_by_half_a_step_of_its_row_at_most() -> None:
    weight = torch.randn(7, 40, generator=torch.Generator().manual_seed(0))
    weight[3] = 0
    small, scale = quantise(weight)
    back = small.float() * scale[:, None]
    assert ((back - weight).abs() <= 0.5001 * scale[:, None]).all()
    assert small.abs().amax(dim=1).tolist() == [127, 127, 127, 0, 127, 127, 127]


def test_rows_of_the_target_are_its_head() -> None:
    _, target = borrower()
    hidden = torch.randn(3, target.config.hidden, generator=torch.Generator().manual_seed(1))
    wanted = target.head(hidden.to(target.dtype))[:, IDS]
    torch.testing.assert_close(hidden @ target_rows(target, IDS).float().T, wanted)


def test_a_packed_head_comes_back_near_and_its_borrowed_rows_exactly(
    packed: tuple[Path, Eagle3Head, LlamaTarget],
) -> None:
    folder, head, target = packed
    tensors = load_file(folder / "model.safetensors")
    assert "lm_head.weight" not in tensors
    assert tensors["fc.weight"].dtype == torch.int8
    assert "t2d" not in tensors
    assert tensors["d2t"].dtype == torch.int32
    assert (folder / "card.json").read_text() == "{}"
    again = load(folder, target)
    assert isinstance(again, Eagle3Head)
    assert again.config == head.config
    assert again.draft_ids is not None
    assert torch.equal(again.draft_ids, IDS)
    assert again.lm_head is not None
    torch.testing.assert_close(again.lm_head.weight.float(), target_rows(target, IDS).float())
    for name, weight in head.state_dict().items():
        torch.testing.assert_close(
            again.state_dict()[name].float(), weight, atol=0.02, rtol=0.02, msg=name
        )


def test_an_output_head_of_its_own_is_kept(tmp_path: Path) -> None:
    head = eagle3_head()
    save(head, tmp_path / "whole", "eagle")
    target = target_for(head)
    pack(tmp_path / "whole", tmp_path / "small", target)
    assert json.loads((tmp_path / "small" / "config.json").read_text())[PACKED] == []
    again = load(tmp_path / "small", target.config)  # nothing is borrowed: the shape is enough
    assert isinstance(again, Eagle3Head)
    assert again.layout == "eagle"


def test_without_its_target_a_borrower_says_what_it_needs(
    packed: tuple[Path, Eagle3Head, LlamaTarget],
) -> None:
    folder, _, target = packed
    with pytest.raises(ConfigError, match=r"leaves lm_head\.weight to the target"):
        load(folder, target.config)


def test_packing_twice_is_refused(
    packed: tuple[Path, Eagle3Head, LlamaTarget], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="packed already"):
        pack(packed[0], tmp_path / "again", packed[2])


@pytest.mark.parametrize("fault", ["scale", "dtype", "key"])
def test_a_damaged_packed_head_names_what_is_wrong(
    packed: tuple[Path, Eagle3Head, LlamaTarget], fault: str
) -> None:
    folder, _, target = packed
    tensors = load_file(folder / "model.safetensors")
    if fault == "scale":
        tensors["fc.weight.scale"] = tensors["fc.weight.scale"][1:].clone()
    if fault == "dtype":
        tensors["fc.weight"] = tensors["fc.weight"].float()
    if fault == "key":
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {PACKED: ["fc.weight"]}))
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(ModelCorrupt, match=PACKED if fault == "key" else r"fc\.weight"):
        load(folder, target)


def test_an_mtp_module_with_a_draft_vocabulary_is_saved_loaded_and_packed(tmp_path: Path) -> None:
    head = MtpHead(replace(mtp_head().config, own_head=True, draft_vocab=len(IDS)), IDS)
    target = target_for(head)
    assert head.lm_head is not None
    head.lm_head.weight.data = target_rows(target, IDS).float()
    save(head, tmp_path / "whole", "speculators-mtp")
    pack(tmp_path / "whole", tmp_path / "small", target)
    for folder in ("whole", "small"):
        again = load(tmp_path / folder, target)
        assert isinstance(again, MtpHead)
        assert again.draft_ids is not None
        assert torch.equal(again.draft_ids, IDS)
        assert again.config == head.config
        assert again.lm_head is not None
        assert torch.equal(again.lm_head.weight.float(), head.lm_head.weight)
