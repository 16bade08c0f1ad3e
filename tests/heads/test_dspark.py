"""The sequential heads: drafting walks through what training computes at once."""

import pytest
import torch

from specviz.heads.dflash import DFlashHead
from specviz.heads.dflash_cache import BlockDecoder
from specviz.heads.dflash_config import DFlashConfig, DSparkShape
from specviz.heads.dspark import DSparkHead, before_slots
from specviz.heads.dspark_cache import DSparkDecoder
from tests.heads.block_heads import (
    TEXT,
    block_config,
    blocks_at,
    randomise,
    read,
    spark_config,
    tiny_dspark,
    tiny_target,
)

SHAPES = {
    "vanilla": DSparkShape(rank=6),
    "gated": DSparkShape(rank=6, kind="gated"),
    "rnn": DSparkShape(rank=6, kind="rnn"),
    "blind confidence": DSparkShape(rank=6, confidence_sees_markov=False),
    "no confidence": DSparkShape(rank=6, confidence=False),
    "rank 0": DSparkShape(rank=0),
}


@pytest.mark.parametrize("anchor_predicts", [True, False])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_walk_along_the_text_says_what_teacher_forcing_does(
    shape: DSparkShape, anchor_predicts: bool
) -> None:
    target = tiny_target()
    config = block_config(dspark=shape, anchor_predicts=anchor_predicts)
    head, anchor, first = tiny_dspark(config), 6, 0 if anchor_predicts else 1
    blocks = blocks_at(target, [anchor])
    with torch.no_grad():
        states = head.states(blocks, target.weights.embed)
        logits = head.slot_logits(states.hidden, states.latent, target.weights.head.weight)
    decoder = DSparkDecoder(head, target)
    decoder.read(read(target)[:anchor])
    walk = decoder.walk(decoder.block(TEXT[anchor], config.block)[first:])
    for slot in range(first, config.block):
        view = walk.look(TEXT[anchor + slot - first])
        torch.testing.assert_close(view.logits, logits[0, 0, slot], rtol=1e-4, atol=1e-4)
        if states.confidence is None:
            assert view.confidence is None
        else:
            assert view.confidence == pytest.approx(float(states.confidence[0, 0, slot]), abs=1e-4)


def by_hand(head: DSparkHead, before: list[int], hidden: torch.Tensor) -> torch.Tensor:
    """Markov biases [slots, vocab] by the equations of the paper."""
    markov = head.markov_head
    assert markov is not None
    w1, w2 = markov.markov_w1.weight, markov.markov_w2.weight
    state, rows = torch.zeros(w1.shape[1]), []
    for token, h in zip(before, hidden, strict=True):
        w = w1[token]
        if markov.kind == "vanilla":
            latent = w
        elif markov.kind == "gated":
            assert markov.gate_proj is not None
            latent = torch.sigmoid(markov.gate_proj(torch.cat((h, w)))) * w
        else:
            assert markov.joint_proj is not None
            gate, candidate, out = markov.joint_proj(torch.cat((state, w, h))).chunk(3)
            keep = torch.sigmoid(gate)
            state = keep * state + (1 - keep) * torch.tanh(candidate)
            latent = torch.tanh(out)
        rows.append(w2 @ latent)
    return torch.stack(rows)


@torch.no_grad()
@pytest.mark.parametrize("kind", ["vanilla", "gated", "rnn"])
def test_markov_biases_follow_the_equations(kind: str) -> None:
    target, head = tiny_target(), tiny_dspark(spark_config(SHAPES[kind]))
    blocks = blocks_at(target, [4])
    states = head.states(blocks, target.weights.embed)
    out = target.weights.head.weight
    bias = head.slot_logits(states.hidden, states.latent, out) - head.logits(states.hidden, out)
    expected = by_hand(head, list(TEXT[4:9]), states.hidden[0, 0])
    torch.testing.assert_close(bias[0, 0], expected, rtol=1e-3, atol=1e-4)


def test_confidence_knows_the_token_before_and_not_the_one_drawn() -> None:
    target, head = tiny_target(), tiny_dspark()
    decoder = DSparkDecoder(head, target)
    decoder.read(read(target)[:6])
    hidden = decoder.block(TEXT[6], 5)

    def confidences(tokens: tuple[int, ...]) -> list[float | None]:
        walk = decoder.walk(hidden)
        return [walk.look(token).confidence for token in tokens]

    one, other = confidences((TEXT[6], 1, 2)), confidences((TEXT[6], 9, 2))
    assert one[0] == other[0]
    assert one[1] != other[1]
    assert one[2] == other[2]  # vanilla: nothing is carried further


def test_rank_0_without_confidence_is_a_dflash_whose_anchor_predicts() -> None:
    target = tiny_target()
    plain = DSparkShape(rank=0, confidence=False)
    spark = tiny_dspark(spark_config(plain))
    flash = DFlashHead(block_config(anchor_predicts=True))
    flash.load_state_dict(spark.state_dict())
    one, other = DSparkDecoder(spark, target), BlockDecoder(flash, target)
    for decoder in (one, other):
        decoder.read(read(target)[:6])
    hidden = other.block(TEXT[6], 5)
    assert torch.equal(one.block(TEXT[6], 5), hidden)
    assert torch.equal(one.walk(hidden).look(TEXT[6]).logits, other.logits(hidden)[0])


@pytest.mark.parametrize("kind", ["vanilla", "gated", "rnn"])
def test_every_weight_is_reached_by_the_loss(kind: str) -> None:
    target, head = tiny_target(), tiny_dspark(spark_config(SHAPES[kind]))
    states = head.states(blocks_at(target, [4]), target.weights.embed)
    logits = head.slot_logits(states.hidden, states.latent, target.weights.head.weight)
    assert states.confidence is not None
    (logits.logsumexp(-1).sum() + states.confidence.sum()).backward()
    assert all(weight.grad is not None and weight.grad.any() for weight in head.parameters())


def test_slots_are_told_the_text_before_them() -> None:
    blocks = blocks_at(tiny_target(), [2, 11])
    text = list(TEXT)
    assert before_slots(blocks, 3)[0].tolist() == [text[2:5], [text[11], text[12], text[12]]]
    later = before_slots(blocks, 3, anchor_predicts=False)
    assert later[0, 0, 1:].tolist() == text[2:4]


def test_a_part_of_the_vocabulary_biases_that_part() -> None:
    target, ids = tiny_target(), torch.tensor([3, 5, 44])
    config: DFlashConfig = spark_config(draft_vocab=3)
    head = DSparkHead(config, draft_ids=ids)
    randomise(head)
    decoder = DSparkDecoder(head, target)
    decoder.read(read(target)[:6])
    view = decoder.walk(decoder.block(TEXT[6], 5)).look(60)  # W1 is indexed by target ids
    assert view.logits.shape == (3,)
