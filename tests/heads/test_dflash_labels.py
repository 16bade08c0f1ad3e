"""What blocks are taught: the labels of training and the slots of drafting mean the same."""

import torch
from torch.nn import functional as F

from specviz.config import DrafterOptions
from specviz.drafters.base import Drafter
from specviz.drafters.dflash import DFlashDrafter
from specviz.drafters.dspark import DSparkDrafter
from specviz.heads.dflash import Blocks, DFlashHead
from specviz.heads.dflash_labels import choose_anchors, label
from specviz.heads.dflash_vocab import draft_rows
from specviz.heads.dspark import DSparkHead
from specviz.models.llama import LlamaTarget
from tests.heads.block_heads import (
    block_config,
    context,
    read,
    spark_config,
    tiny_dflash,
    tiny_dspark,
    tiny_target,
)

TEXT = torch.tensor([[10, 11, 12, 13, 14, 15, 16, 17]])
TAUGHT = torch.tensor([[0, 0, 1, 1, 1, 0, 1, 1]])


def test_dflash_row_k_says_the_token_k_after_the_anchor() -> None:
    found = label(block_config(block=4), TEXT, TAUGHT, torch.tensor([[1, 5, -1]]))
    assert found.tokens[0, 0].tolist() == [11, 12, 13, 14]
    assert found.supervised.int().tolist() == [[[0, 1, 1, 1], [0, 1, 1, 0], [0, 0, 0, 0]]]
    assert found.teacher[0, 0, 1:].tolist() == [1, 2, 3]
    assert found.depth.tolist() == [-1, 0, 1, 2]


def test_dspark_row_k_says_the_token_k_plus_one_after_the_anchor() -> None:
    found = label(spark_config(block=4), TEXT, TAUGHT, torch.tensor([[1, 2, 6]]))
    assert found.tokens[0, 0].tolist() == [12, 13, 14, 15]
    # a hole in the supervised text ends the block: what comes after it is not reached in drafting
    assert found.supervised.int().tolist() == [[[1, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, 0]]]
    assert found.teacher[0, 0].tolist() == [1, 2, 3, 4]
    assert found.depth.tolist() == [0, 1, 2, 3]


def test_anchors_are_positions_whose_next_token_is_taught() -> None:
    generator = torch.Generator().manual_seed(0)
    assert choose_anchors(TAUGHT, 8, generator).tolist() == [[1, 2, 3, 5, 6, -1, -1, -1]]
    few = choose_anchors(TAUGHT.expand(50, -1), 2, generator)
    assert few.shape == (50, 2)
    assert set(few.flatten().tolist()) == {1, 2, 3, 5, 6}
    assert (few[:, 0] < few[:, 1]).all()


def counting(start: int, length: int) -> tuple[int, ...]:
    """Text that counts up modulo 16: a slot that is off by one is always wrong."""
    return tuple((start + i) % 16 for i in range(length))


def train(head: DFlashHead, target: LlamaTarget, shift: int = 0) -> None:
    """Teach counting; `shift` mislabels by so many positions."""
    text = counting(3, 40)
    blocks = Blocks(read(target, text)[None], torch.tensor([text]), torch.arange(2, 32)[None])
    labels = label(head.config, blocks.tokens, torch.ones(1, 40), blocks.anchors)
    optimiser = torch.optim.AdamW(head.parameters(), lr=5e-3)
    table, out = target.weights.embed, target.weights.head.weight
    for _ in range(60):
        if isinstance(head, DSparkHead):
            states = head.states(blocks, table)
            logits = head.slot_logits(states.hidden, states.latent, out)
        else:
            logits = head.logits(head(blocks, table), out)
        wanted = (labels.tokens + shift) % 16
        loss = F.cross_entropy(logits[labels.supervised], wanted[labels.supervised])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def accuracy(drafter: Drafter, target: LlamaTarget) -> float:
    """Share of drafted tokens that continue the text, over many places in it."""
    right = total = 0
    for length in range(4, 20):
        text = counting(3, length)
        draft = drafter.propose(context(target, text), 5).draft.tokens
        following = counting(text[-1] + 1, len(draft))
        right += sum(one == other for one, other in zip(draft, following, strict=True))
        total += len(draft)
    return right / total


def test_a_trained_dflash_says_what_its_labels_taught() -> None:
    target, options = tiny_target(), DrafterOptions()
    for shift, least, most in ((0, 0.9, 1.0), (1, 0.0, 0.1)):
        head = tiny_dflash()
        train(head, target, shift)
        found = accuracy(DFlashDrafter(head, target, options), target)
        assert least <= found <= most, f"labels shifted by {shift}: {found}"


def test_a_trained_dspark_says_what_its_labels_taught() -> None:
    target, options = tiny_target(), DrafterOptions()
    for shift, least, most in ((0, 0.9, 1.0), (1, 0.0, 0.1)):
        head = tiny_dspark()
        train(head, target, shift)
        found = accuracy(DSparkDrafter(head, target, options), target)
        assert least <= found <= most, f"labels shifted by {shift}: {found}"


def test_rows_of_a_draft_vocabulary_are_found_by_target_token() -> None:
    rows = draft_rows(torch.tensor([2, 5]), 7)
    assert rows.tolist() == [-1, -1, 0, -1, -1, 1, -1]
