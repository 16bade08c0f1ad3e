"""The cache: dropping is one assignment, keeping moves only what must move."""

import pytest
import torch
from torch import Tensor

from specviz.cache.kv import BLOCK, CacheShape, KVCache
from specviz.events import EMPTY, Draft
from specviz.models.tiny import tiny_llama

SHAPE = CacheShape(layers=2, kv_heads=3, head_dim=4, context=200, taps=2, hidden=5)
CPU = torch.device("cpu")


def rows_of(tokens: list[int]) -> Tensor:
    """kv [rows, 2, kv_heads, head_dim] that tells every token, half and head apart."""
    token = torch.tensor(tokens, dtype=torch.float32)[:, None, None, None]
    half = torch.tensor([0.0, 0.5])[None, :, None, None]
    head = torch.arange(3.0)[None, None, :, None] / 10
    return (token + half + head).expand(-1, -1, -1, 4)


def write(cache: KVCache, tokens: list[int]) -> None:
    cache.reserve(len(tokens))
    for layer in range(SHAPE.layers):
        cache.write(layer, rows_of(tokens) + 100 * layer)
    for tap in range(SHAPE.taps):
        cache.write_tap(tap, torch.tensor(tokens, dtype=torch.float32)[:, None].expand(-1, 5))


def cached(cache: KVCache) -> list[int]:
    """The tokens in the cache, after checking that keys, values and taps agree on them."""
    tokens = cache.k[0, 0, :, 0].round().int().tolist()
    expected = rows_of(tokens).permute(1, 2, 0, 3)
    for layer in range(SHAPE.layers):
        torch.testing.assert_close(cache.k[layer], expected[0] + 100 * layer)
        torch.testing.assert_close(cache.v[layer], expected[1] + 100 * layer)
    taps = cache.features[..., 0].int()
    assert taps.tolist() == [[token] * SHAPE.taps for token in tokens]
    return tokens


def filled(tokens: int, capacity: int = 32) -> KVCache:
    cache = KVCache(SHAPE, CPU, torch.float32, capacity)
    write(cache, list(range(tokens)))
    cache.append(tokens)
    return cache


def test_growing_keeps_what_is_cached():
    cache = KVCache(SHAPE, CPU, torch.float32, capacity=32)
    for start in range(0, 180, 9):
        write(cache, list(range(start, start + 9)))
        cache.append(9)
    assert cached(cache) == list(range(180))


def test_growing_doubles_up_to_the_context():
    cache = KVCache(SHAPE, CPU, torch.float32, capacity=32)
    capacities = []
    for needed in (1, 32, 33, 65, 129, 200):
        cache.reserve(needed)
        capacities.append(cache.capacity)
    assert capacities == [32, 32, 64, 128, 224, 224]  # 200 in whole blocks
    with pytest.raises(IndexError, match="do not fit"):
        cache.reserve(225)


def test_what_is_written_counts_only_after_append():
    cache = filled(5)
    write(cache, [70, 71])
    assert cached(cache) == list(range(5))
    cache.append(1)
    assert cached(cache) == [0, 1, 2, 3, 4, 70]


def test_writing_returns_whole_blocks_with_the_new_rows_inside():
    cache = filled(30)
    assert cache.reserve(4) == 2 * BLOCK
    k, v = cache.write(1, rows_of([50, 51, 52, 53]))
    assert k.shape == v.shape == (3, 2 * BLOCK, 4)
    assert k[0, 30:34, 0].tolist() == [50, 51, 52, 53]
    assert v[0, 30:34, 0].tolist() == [50.5, 51.5, 52.5, 53.5]


@pytest.mark.parametrize("rows", [[], [0], [0, 1, 2], [0, 2, 4], [2], [0, 1, 5], [3, 4, 5]])
def test_keeping_a_path_forgets_its_siblings(rows):
    cache = filled(10)
    write(cache, [80, 81, 82, 83, 84, 85])
    cache.append(6)
    cache.keep(10, rows)
    assert cached(cache) == [*range(10), *(80 + row for row in rows)]


def test_truncated_tokens_are_overwritten():
    cache = filled(10)
    cache.truncate(4)
    write(cache, [60, 61])
    cache.append(2)
    assert cached(cache) == [0, 1, 2, 3, 60, 61]


def test_a_fork_shares_nothing():
    cache = filled(10)
    fork = cache.fork(6)
    write(fork, [60])
    fork.append(1)
    cache.truncate(2)
    write(cache, [90, 91])
    cache.append(2)
    assert cached(fork) == [0, 1, 2, 3, 4, 5, 60]
    assert cached(cache) == [0, 1, 90, 91]


@pytest.mark.parametrize("length", [-1, 11])
def test_lengths_outside_the_cache_are_refused(length):
    cache = filled(10)
    with pytest.raises(IndexError, match="truncate 10"):
        cache.truncate(length)
    with pytest.raises(IndexError, match="fork 10"):
        cache.fork(length)
    with pytest.raises(IndexError, match="10 are cached"):
        cache.keep(length, [0])
    with pytest.raises(IndexError, match="never made"):
        cache.append(500)
    assert cached(cache) == list(range(10))


def test_a_fork_past_the_first_allocation_needs_no_taps() -> None:
    target = tiny_llama()
    target.prefill([1] * 300)
    assert target.fork(290).length == 290


@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_a_tree_is_committed_from_room_that_was_made_while_it_was_scored(family) -> None:
    """A branch other than the first moves rows, also in a cache that just grew."""
    target = tiny_llama(family=family).with_taps((1,))
    before = target._cache.capacity
    text = [1 + i % 40 for i in range(before - 2)]
    target.prefill(text)
    draft = Draft((5, 6, 7, 8), (-1, -1, 1, 2))  # the second branch is taken
    target.score(3, draft)
    assert target._cache.capacity > before
    target.commit((1, 2, 3))
    straight = target.fork(0)
    straight.prefill([*text, 3, 6, 7, 8])
    expected = straight.score(9, EMPTY)
    torch.testing.assert_close(target.score(9, EMPTY), expected, atol=1e-4, rtol=1e-4)
    assert target.features is not None
    assert straight.features is not None
    torch.testing.assert_close(target.features, straight.features, atol=1e-4, rtol=1e-4)
