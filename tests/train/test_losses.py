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
from specviz.train.sampling import draw
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


def test_a_sample_has_the_ids_of_the_text_and_others_by_the_seed() -> None:
    whole = Vocabulary(torch.arange(0, 1000, 2), 1000, torch.device("cpu"))
    text = torch.tensor([[10, 11, 10], [998, 0, 10]])  # 11 is not in the vocabulary
    found, again = draw(whole, text, 50, seed=3), draw(whole, text, 50, seed=3)
    assert torch.equal(found.rows, again.rows)
    assert not torch.equal(found.rows, draw(whole, text, 50, seed=4).rows)
    assert {0, 5, 499} <= set(found.rows.tolist())
    assert len(set(found.rows.tolist())) == found.vocabulary.size == 50
    assert found.vocabulary.tokens(torch.arange(50)).tolist() == (2 * found.rows).tolist()
    kept = torch.isin(found.rows, torch.tensor([0, 5, 499]))
    assert found.lift[kept].tolist() == [0, 0, 0]
    assert found.lift[~kept].exp().sum().item() == pytest.approx(497)  # they stand for the rest


def test_three_quarters_of_a_sample_are_frequent_ids_and_each_part_stands_for_its_own() -> None:
    whole, text = Vocabulary(None, 1000, torch.device("cpu")), torch.tensor([7])
    found = draw(whole, text, 41, seed=0, frequent=torch.arange(100))
    often = (found.rows < 100) & (found.rows != 7)
    assert int(often.sum()) == 30
    assert found.lift[often].exp().sum().item() == pytest.approx(99)
    assert found.lift[found.rows >= 100].exp().sum().item() == pytest.approx(900)


def test_samples_pull_where_the_whole_pulls_on_average_and_at_full_size_always() -> None:
    hidden, table = noise(40, WIDTH).requires_grad_(), 0.2 * noise(400, WIDTH, seed=1)
    whole, text = Vocabulary(None, 400, torch.device("cpu")), torch.arange(40)
    even = torch.full((40,), 1 / 40)

    def pull(size: int, seed: int, lifted: bool = True) -> Tensor:
        sample = draw(whole, text, size, seed)
        rows, lift = sample.vocabulary.rows(table), sample.lift if lifted else None
        soft = teacher(noise(40, WIDTH, seed=2), rows, lift)
        goals = Goals(soft, sample.vocabulary.index(text), 0.5, even, lift)
        hidden.grad = None
        projected_loss(hidden, rows, goals).loss.backward()
        assert hidden.grad is not None
        return hidden.grad.clone()

    def off(found: Tensor) -> float:
        return float((found - exact).norm() / exact.norm())

    exact = pull(400, 0)
    torch.testing.assert_close(pull(1000, 5), exact)
    mean = torch.stack([pull(60, seed) for seed in range(60)]).mean(dim=0)
    plain = torch.stack([pull(60, seed, lifted=False) for seed in range(60)]).mean(dim=0)
    assert off(mean) < 0.06 < 0.1 < off(plain)


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
