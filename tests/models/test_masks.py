"""Root and draft see the cache, their ancestors and themselves, and nothing else."""

import torch

from specviz.events import EMPTY, ROOT, Draft
from specviz.verify.masks import ancestor_mask, draft_positions, key_mask, within_window

TREE = Draft((1, 2, 3, 4, 5, 6), (ROOT, ROOT, 0, 1, 1, 3))


def test_siblings_share_a_position():
    assert draft_positions(TREE, 10) == [10, 11, 11, 12, 12, 12, 13]
    assert draft_positions(EMPTY, 3) == [3]


def test_a_node_sees_exactly_its_ancestors_and_itself():
    mask = ancestor_mask(TREE)
    for node in range(ROOT, len(TREE)):
        seen = {ROOT, *TREE.path_to(node)}
        assert {int(i) - 1 for i in mask[node + 1].nonzero()} == seen


def test_a_chain_is_the_tree_without_branches():
    chain = Draft.chain([4, 5, 6])
    expected = torch.zeros(4, 4, dtype=torch.bool)
    for row in range(4):
        expected[row, : row + 1] = True
    assert torch.equal(ancestor_mask(chain), expected)
    assert ancestor_mask(EMPTY).tolist() == [[True]]


def test_everything_cached_is_seen_and_spare_room_never():
    mask = key_mask(ancestor_mask(TREE), past=5, total=16)
    assert mask.shape == (7, 16)
    assert mask[:, :5].all()
    assert torch.equal(mask[:, 5:12], ancestor_mask(TREE))
    assert not mask[:, 12:].any()


def test_a_window_counts_positions_not_rows():
    past, window = 5, 3
    positions = torch.tensor(draft_positions(TREE, past))
    mask = within_window(key_mask(ancestor_mask(TREE), past, 16), positions, past, window)
    for node in range(ROOT, len(TREE)):
        path = (ROOT, *TREE.path_to(node))
        history = [*range(past), *(past + 1 + row for row in path)]  # keys from oldest to newest
        assert mask[node + 1].nonzero()[:, 0].tolist() == history[-window:]
