"""DFlash drafts equal those of transformers 5.24 on the same head, round by round.

transformers has one class for DFlash, the assistant of Muse Glimmer. It is z-lab's network with two
tensors named otherwise (`fc` and `hidden_norm` stand under `encoder`). What differs:

- It knows no z-lab file: their model_type is qwen3, which it takes for a decoder of that family.
- It drafts nothing beside the prompt's last token: its first round only reads the prompt.
- It drafts whole blocks also where fewer tokens are asked for, and cuts what it accepted; ours runs
  a shorter block there.
- Its sliding window counts the distance inclusively: window W there is W + 1 here and in z-lab's
  code, which hands W - 1 to attention kernels that count inclusively.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.torch import load_file

from specviz.config import DrafterOptions
from specviz.drafters.dflash import DFlashDrafter
from specviz.heads.dflash import DFlashHead
from specviz.heads.dflash_config import View
from specviz.heads.load import load, save
from specviz.models.rope import Rope
from tests.agreement.theirs import Run, both, compare, generate, ours
from tests.heads.block_heads import block_config, tiny_dflash

VOCAB, TOKENS = 12, 36
PROMPT = (5, 9, 2, 3, 4, 1, 7, 7, 10, 0, 3, 8)


def small(window: int | None = None, taps: tuple[int, ...] = (1, 3), rope: Rope | None = None):
    config = block_config(vocab=VOCAB, draft_vocab=VOCAB, mask_token=VOCAB - 1, taps=taps)
    views = () if window is None else (View(window=window),) * config.layers
    layer = replace(config.layer, rope=rope or Rope(theta=5000.0))
    return tiny_dflash(replace(config, views=views or config.views, layer=layer))


def assistant(folder: Path, window: int | None):
    """Their network with the weights of a folder that `heads.load.save` wrote for z-lab."""
    from transformers import MuseGlimmerAssistantConfig, MuseGlimmerAssistantModel

    config = json.loads((folder / "config.json").read_text())
    nested, layers = config["dflash_config"], config["num_hidden_layers"]
    kind = "full_attention" if window is None else "sliding_attention"
    model = MuseGlimmerAssistantModel(
        MuseGlimmerAssistantConfig(
            hidden_size=config["hidden_size"],
            intermediate_size=config["intermediate_size"],
            num_hidden_layers=layers,
            num_attention_heads=config["num_attention_heads"],
            num_key_value_heads=config["num_key_value_heads"],
            head_dim=config["head_dim"],
            rms_norm_eps=config["rms_norm_eps"],
            rope_parameters={"rope_type": "default", "rope_theta": config["rope_theta"]},
            max_position_embeddings=512,
            sliding_window=window or 512,
            layer_types=[kind] * layers,
            block_size=config["block_size"],
            mask_token_id=nested["mask_token_id"],
            target_layer_ids=nested["target_layer_ids"],
        )
    ).eval()
    renamed = {"fc.": "encoder.fc.", "hidden_norm.": "encoder.output_norm_enc."}
    tensors = {}
    for name, tensor in load_file(folder / "model.safetensors").items():
        stem = next((old for old in renamed if name.startswith(old)), "")
        tensors[renamed.get(stem, "") + name.removeprefix(stem)] = tensor
    model.load_state_dict(tensors)
    return model


def decode(reference, model, monkeypatch: pytest.MonkeyPatch, prompt=PROMPT) -> Run:
    from transformers.generation.candidate_generator import DFlashTokenCandidateGenerator

    return generate(
        reference,
        DFlashTokenCandidateGenerator,
        prompt,
        TOKENS,
        monkeypatch,
        assistant_model=model,
        speculation_type="dflash",
    )


def mine(target, head: DFlashHead, run: Run, prompt=PROMPT):
    """Our run from where theirs drafts for the first time: after one token of output."""
    tapped = target.with_taps(head.taps)
    drafter = DFlashDrafter(head, tapped, DrafterOptions())
    return ours(tapped, drafter, run.tokens[: len(prompt) + 1], TOKENS - 1, head.config.most)


@pytest.mark.parametrize(("family", "taps"), [("smollm2", (1, 3)), ("qwen3", (2,))])
def test_drafts_of_every_round_are_theirs(
    family, taps: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, reference = both(family, layers=4, vocab=VOCAB)
    made = small(taps=taps)
    save(made, tmp_path / "head", "z-lab")
    head = load(tmp_path / "head", target.config)
    assert isinstance(head, DFlashHead)
    run = decode(reference, assistant(tmp_path / "head", None), monkeypatch)
    assert compare(mine(target, head, run), run, head.config.most) > 0


@pytest.mark.parametrize(("theirs", "agrees"), [(7, True), (8, False)])
def test_their_window_counts_one_token_more(
    theirs: int, agrees: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, reference = both("llama", layers=4, vocab=VOCAB)
    head = small(window=8)
    save(small(), tmp_path / "head", "z-lab")
    run = decode(reference, assistant(tmp_path / "head", theirs), monkeypatch)
    session = mine(target, head, run)
    assert session.tokens == run.tokens  # the text is the target's in any case
    drafts = {r.start: r.draft.tokens for r in session.rounds if len(r.draft) == head.config.most}
    common = [r for r in run.rounds if len(r.text) in drafts]
    assert len(common) > 20
    assert all(drafts[len(r.text)] == r.draft for r in common) is agrees


def test_a_file_of_z_lab_is_taken_for_a_plain_decoder_there(tmp_path: Path) -> None:
    from transformers import AutoConfig

    save(small(), tmp_path / "head", "z-lab")
    assert AutoConfig.from_pretrained(tmp_path / "head").model_type == "qwen3"
