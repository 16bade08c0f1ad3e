"""MTP drafts equal those of transformers 5.24 on the same checkpoint, round by round.

Theirs drafts one token with each module of the checkpoint; ours runs the first module as often as
asked. So with one module, which is what GLM-4.5 and DeepSeek-V3 publish, one token is compared,
and with two modules the first token. What differs:

- It drafts nothing beside the prompt's last token: its first round only reads the prompt.
- It finds modules by the layer counts of the published models (61 for DeepSeek-V3, 46 and 92 for
  GLM-4.5): in a checkpoint of another depth it finds none and stops with a RuntimeError. The tests
  tell it the depth of theirs.
- It knows no file of speculators' layout, and no MTP for plain Llama or Qwen3 targets.
"""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from specviz.config import DrafterOptions, SamplingParams
from specviz.drafters.base import Context
from specviz.drafters.mtp import MtpDrafter
from specviz.heads.load import load
from specviz.heads.mtp import MtpHead
from specviz.models.hf import HFTarget
from specviz.models.target import TargetConfig
from specviz.verify.draws import Draws
from tests.agreement.theirs import generate
from tests.heads.random_heads import VOCAB, random_text
from tests.heads.test_mtp_layouts import GLM, LAYERS, deepseek, glm, published

CONFIG = TargetConfig(
    name="t", layers=LAYERS, hidden=32, heads=4, kv_heads=2, head_dim=16, vocab=VOCAB, context=128
)
TOKENS = 24


def checkpoint(make, modules: int, folder: Path, monkeypatch: pytest.MonkeyPatch):
    """A target with MTP modules in one folder, as its family publishes it, loaded from there."""
    from transformers.modeling_layers import MtpModel

    torch.manual_seed(0)
    main = make().eval()
    main.config.num_mtp_layers = modules
    tensors = {}
    for index, layer in enumerate(MtpModel(main, modules).layers):
        for name, weight in layer.state_dict().items():
            noise = torch.randn_like(weight)
            weight.copy_(1 + 0.2 * noise if "norm" in name else 0.3 * noise)
        layers = type("Modules", (), {"layers": [layer]})()
        renamed = GLM | {"": f"model.layers.{LAYERS + index}."}
        tensors |= published(layers, renamed, fused=False)
    for name, weight in main.named_parameters():
        if weight.ndim > 1:
            weight.copy_(torch.randn_like(weight) * (0.5 if "embed" in name else 0.2))
    main.lm_head.weight[4:] *= 0.1  # few tokens are ever said, so that some drafts are accepted
    main.save_pretrained(folder)
    file = folder / "model.safetensors"
    save_file(load_file(file) | tensors, file, metadata={"format": "pt"})
    pattern = "|".join(rf"model\.layers\.{LAYERS + i}\..*" for i in range(modules))
    monkeypatch.setattr(type(main), "_keys_to_ignore_on_load_unexpected", [pattern])
    model = type(main).from_pretrained(folder).eval()
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = 0
    return model


@pytest.mark.parametrize(
    ("make", "modules"), [(glm, 1), (glm, 2), (deepseek, 1)], ids=["glm", "glm-two", "deepseek"]
)
@torch.no_grad()
def test_the_first_draft_of_every_round_is_theirs(
    make, modules: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers.generation.candidate_generator import MTPCandidateGenerator

    model = checkpoint(make, modules, tmp_path / "target", monkeypatch)
    prompt = random_text(9)
    run = generate(model, MTPCandidateGenerator, prompt, TOKENS, monkeypatch, use_mtp=True)
    head = load(tmp_path / "target", CONFIG)
    assert isinstance(head, MtpHead)
    drafter = MtpDrafter(head, HFTarget(model, CONFIG), DrafterOptions())
    accepted = 0
    for their in run.rounds:
        assert len(their.draft) == modules
        states = model(torch.tensor([their.text[:-1]]), output_hidden_states=True).hidden_states
        features = states[-1][0, :, None]
        params = SamplingParams()
        context = Context(their.text, len(prompt), params, Draws(0), features)
        assert drafter.propose(context, 1).draft.tokens == their.draft[:1], len(their.text)
        accepted += run.tokens[len(their.text)] == their.draft[0]
    assert len(run.rounds) > 8
    assert accepted > 0
