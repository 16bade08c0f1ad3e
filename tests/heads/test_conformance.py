"""What holds of every scheme with a head, on two families of targets, against transformers too.

Labels shifted by one are tested beside each head: EAGLE-3 in test_eagle3, blocks in
test_dflash_labels, MTP here.
"""

import pytest
import torch

from specviz.config import DrafterOptions, SamplingParams, SessionConfig
from specviz.drafters import make_drafter
from specviz.drafters.base import Context
from specviz.drafters.none import PlainDrafter
from specviz.events import Draft
from specviz.heads.base import Head
from specviz.metrics import summarise
from specviz.models.llama import LlamaTarget
from specviz.models.llama_config import read_llama_config
from specviz.models.tiny import Family, TinyShape, tiny_llama, tiny_tensors
from specviz.session import DecodeSession
from specviz.verify.draws import Draws
from tests.heads.block_heads import block_config, spark_config, tiny_dflash, tiny_dspark
from tests.heads.random_heads import VOCAB, eagle3_head, mtp_head, random_text, target_for

FAMILIES: tuple[Family, ...] = ("llama", "qwen3")
SMALL, SEED = 4, 8  # a target on which random heads are right now and then
LAYERS, LENGTH = 4, 3
PROMPT = (0, 2, 1, 3, 3, 1, 0, 2)


def head_of(scheme: str) -> Head:
    """A random head for a target of four layers and four tokens."""
    block = {"vocab": SMALL, "draft_vocab": SMALL, "mask_token": SMALL - 1}
    if scheme == "eagle3":
        return eagle3_head(vocab=SMALL, draft_vocab=SMALL, draft_ids=None)
    if scheme == "mtp":
        return mtp_head(vocab=SMALL)
    if scheme == "dflash":
        return tiny_dflash(block_config(**block))
    return tiny_dspark(spark_config(**block))


@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_every_tap_is_the_hidden_state_of_transformers_also_of_drafted_tokens(
    family: Family,
) -> None:
    from transformers import AutoConfig, AutoModelForCausalLM

    settings = TinyShape(layers=LAYERS).settings(family)
    config = read_llama_config(settings, name=family)
    tensors = tiny_tensors(config)
    reference = AutoModelForCausalLM.from_config(AutoConfig.for_model(**settings)).eval()
    reference.load_state_dict(tensors, strict=not config.tied)
    taps = tuple(range(LAYERS + 1))
    target = LlamaTarget.from_tensors(config, tensors).with_taps(taps)
    target.prefill(PROMPT[:4])
    target.score(PROMPT[4], Draft.chain((*PROMPT[5:], 11, 12)))
    target.commit((0, 1, 2))  # the two tokens that are no part of the text are rejected
    assert target.features is not None
    states = reference(torch.tensor([PROMPT]), output_hidden_states=True).hidden_states
    assert len(states) == len(taps)
    for tap, state in zip(taps, states, strict=True):
        torch.testing.assert_close(target.features[:, tap], state[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("scheme", ["eagle3", "mtp", "dflash", "dspark"])
def test_rounds_are_the_targets_text_drafted_as_from_scratch_and_counted_right(
    scheme: str, family: Family
) -> None:
    head = head_of(scheme)
    target = tiny_llama(seed=SEED, family=family, layers=LAYERS, vocab=SMALL).with_taps(head.taps)
    config = SessionConfig(scheme=scheme, draft_length=LENGTH, options=DrafterOptions())
    params = SamplingParams(max_tokens=40)
    session = DecodeSession(
        target, make_drafter(config, target, draft=head), PROMPT, params, config
    )
    list(session)
    plain = DecodeSession(target.fork(0), PlainDrafter(), PROMPT, params)
    list(plain)
    assert session.output == plain.output

    whole = [r for r in session.rounds if len(r.draft) == LENGTH and r.last_token is not None]
    counts = summarise(whole)
    assert sum(n > 0 for n in counts.histogram) > 1  # caches are cut at more than one depth
    assert counts.acceptance_length == pytest.approx(1 + sum(counts.per_position))

    target.truncate(0)
    target.prefill(session.tokens)
    features = target.features
    assert features is not None
    for round_ in whole[::3]:
        text = session.tokens[: round_.start]
        context = Context(text, len(PROMPT), params, Draws(0), features[: len(text) - 1])
        fresh = make_drafter(config, target, draft=head).propose(context, LENGTH)
        assert fresh.draft == round_.draft
        assert fresh.evidence.scores == pytest.approx(round_.evidence.scores, abs=1e-5)


def test_shift_a_trained_mtp_module_knows_the_token_it_was_trained_on_and_no_other() -> None:
    head, tokens = mtp_head(), random_text(192, seed=5)
    target = target_for(head)
    target.prefill(tokens)
    assert target.features is not None
    features = target.features[None].clone()
    target.truncate(0)
    labels = target.score(tokens[0], Draft.chain(tokens[1:])).argmax(-1)  # after each token
    table = target.embed(range(VOCAB)).clone()
    rows = target.weights.head.weight.clone()
    optimiser = torch.optim.Adam(head.parameters(), lr=4e-3)
    for _ in range(60):
        (out,) = head(features, torch.tensor([tokens]), table)
        logits = out[0, :-1] @ rows.T
        loss = torch.nn.functional.cross_entropy(logits, labels[1:])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    said = logits.argmax(-1)

    def agreement(shift: int) -> float:
        at = torch.arange(2, len(said) - 2)
        return float((said[at] == labels[1 + at + shift]).float().mean())

    assert agreement(0) > 0.6
    assert agreement(1) < 0.2
    assert agreement(-1) < 0.2
