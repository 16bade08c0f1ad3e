"""Losses by hand and by autograd; heads unrolled over chosen rows as over all."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from specviz.heads.eagle3 import Eagle3Head
from specviz.heads.mtp import MtpConfig, MtpHead
from specviz.train.losses import doubt, dspark_losses, pace_weights, position_decay, weighted_mean
from specviz.train.projection import Goals, projected_loss
from specviz.train.schedule import Cosine
from specviz.train.tables import Vocabulary, teacher
from specviz.train.unroll import Chosen, unroll
from tests.heads.random_heads import SHAPE, VOCAB, eagle3_head, randomise

ROWS, WIDTH, SIZE = 300, 8, 17


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("hard", [0.0, 0.3, 1.0])
def test_the_loss_in_pieces_has_the_value_and_gradients_of_the_whole(hard: float) -> None:
    hidden = noise(ROWS, WIDTH).requires_grad_()
    weight = noise(SIZE, WIDTH, seed=1).requires_grad_()
    soft = noise(ROWS, SIZE, seed=2).softmax(-1)
    labels = torch.arange(ROWS) % SIZE
    weights = noise(ROWS, seed=3).softmax(-1)
    found = projected_loss(hidden, weight, Goals(soft, labels, hard, weights))
    (2 * found.loss).backward()
    got = hidden.grad, weight.grad
    hidden.grad = weight.grad = None

    logits = hidden @ weight.T
    each = (1 - hard) * F.cross_entropy(logits, soft, reduction="none")
    each = each + hard * F.cross_entropy(logits, labels, reduction="none")
    (2 * (each * weights).sum()).backward()
    assert hidden.grad is not None
    torch.testing.assert_close(found.loss, (each * weights).sum().detach())
    torch.testing.assert_close(found.each, each.detach())
    torch.testing.assert_close(got, (hidden.grad, weight.grad))
    assert torch.equal(found.right, logits.argmax(-1) == labels)


def test_a_head_that_is_the_targets_gets_no_gradient() -> None:
    hidden, weight = noise(5, WIDTH).requires_grad_(), noise(SIZE, WIDTH)
    soft, labels = noise(5, SIZE).softmax(-1), torch.zeros(5, dtype=torch.int64)
    projected_loss(hidden, weight, Goals(soft, labels, 0.0, torch.ones(5))).loss.backward()
    assert hidden.grad is not None
    assert weight.grad is None


def test_the_teacher_is_renormalised_over_the_draft_vocabulary() -> None:
    final, table = noise(4, WIDTH), noise(SIZE, WIDTH, seed=1)
    vocabulary = Vocabulary(torch.tensor([1, 4, 9]), SIZE, torch.device("cpu"))
    soft = teacher(final, vocabulary.rows(table))
    whole = (final @ table.T).softmax(-1)[:, [1, 4, 9]]
    torch.testing.assert_close(soft, whole / whole.sum(-1, keepdim=True))
    assert vocabulary.index(torch.tensor([4, 5])).tolist() == [1, -1]
    assert vocabulary.tokens(torch.tensor([2])).tolist() == [9]


def test_drawn_ids_are_added_once_and_by_the_seed() -> None:
    vocabulary = Vocabulary(torch.tensor([1, 4, 9]), 1000, torch.device("cpu"))
    wide, again = vocabulary.widened(50, seed=3), vocabulary.widened(50, seed=3)
    assert wide.ids is not None
    assert again.ids is not None
    assert torch.equal(wide.ids, again.ids)
    assert {1, 4, 9} <= set(wide.ids.tolist())
    assert len(set(wide.ids.tolist())) == wide.size
    assert wide.size > 40


def test_slots_weigh_less_the_further_they_are() -> None:
    weights = position_decay(torch.tensor([0, 4, 8]), gamma=4.0)
    torch.testing.assert_close(weights, torch.tensor([1.0, math.exp(-1), math.exp(-2)]))


def test_pace_weights_follow_the_formula_by_hand() -> None:
    losses = -torch.log(torch.tensor([[0.5, 0.2, 0.9]]))
    supervised = torch.tensor([[True, True, False]])
    a, b = 0.75, 0.6  # (1 - 0.5) q + 0.5
    expected = torch.tensor([[a + a * b, a * b, 0.0]])
    torch.testing.assert_close(pace_weights(losses, supervised), expected)


def test_dspark_losses_are_cross_entropy_full_l1_and_the_acceptance_rate() -> None:
    q, p = torch.tensor([[0.5, 0.25, 0.25]]), torch.tensor([[0.7, 0.2, 0.1]])
    ce, distance, rate = dspark_losses(q.log(), torch.tensor([1]), p)
    torch.testing.assert_close(ce, torch.tensor([math.log(4)]))
    torch.testing.assert_close(distance, torch.tensor([0.4]))
    torch.testing.assert_close(rate, torch.minimum(p, q).sum(-1))
    unknown = dspark_losses(q.log(), torch.tensor([-1]), p)[0]
    assert unknown.item() == 0
    assert doubt(torch.tensor([0.0]), rate).item() == pytest.approx(math.log(2))


def test_nothing_to_teach_costs_nothing() -> None:
    assert weighted_mean(torch.zeros(0), torch.zeros(0)).item() == 0


def test_the_rate_rises_and_falls_to_its_floor() -> None:
    rate = Cosine(peak=1.0, steps=110, warmup=10, floor=0.1)
    assert [rate(0), rate(9)] == [0.1, 1.0]
    assert rate(60) == pytest.approx(0.55)
    assert rate(110) == pytest.approx(0.1)
    assert all(rate(step) >= rate(step + 1) for step in range(9, 110))


def mtp_head() -> MtpHead:
    head = MtpHead(MtpConfig(layer=SHAPE, layers=4, vocab=VOCAB))
    randomise(head)
    return head


@pytest.mark.parametrize("make", [eagle3_head, mtp_head], ids=["eagle3", "mtp"])
def test_rows_that_are_chosen_come_out_as_in_the_whole_text(
    make: "type[Eagle3Head | MtpHead]",
) -> None:
    head, batch, length = make(), 3, 12
    features = noise(batch, length, len(head.taps), 32)
    tokens = torch.arange(batch * length).view(batch, length) % VOCAB
    table = noise(VOCAB, 32, seed=1)
    supervised = torch.zeros(batch, length, dtype=torch.bool)
    for text, (start, end) in enumerate(((4, 12), (9, 11), (2, 7))):
        supervised[text, start:end] = True
    chosen = Chosen.of(supervised)
    assert chosen.at[0].tolist() == list(range(2, 10))
    assert chosen.real.sum(1).tolist() == [8, 2, 5]

    whole, some = head(features, tokens, table, 3), unroll(head, features, tokens, table, chosen)
    for step, (expected, found) in enumerate(zip(whole, some, strict=False)):
        for text in range(batch):
            rows = chosen.at[text][chosen.real[text]]
            rows = rows[rows + 2 + step < length]
            torch.testing.assert_close(found[text, : len(rows)], expected[text, rows])
