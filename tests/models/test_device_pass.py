"""The pass of a GPU, on a CPU: the same logits, cache and features as the usual one."""

import pytest
import torch

from specviz.events import Attention, Draft
from specviz.models.device_pass import DevicePass
from specviz.models.graphs import Graphs
from specviz.models.llama import LlamaTarget
from specviz.models.tiny import Family, tiny_llama

DRAFTS = (
    Draft.chain([]),
    Draft.chain([3, 1, 4]),
    Draft((3, 1, 4, 1, 5), (-1, -1, 0, 0, 2)),
)


def both(family: Family) -> tuple[LlamaTarget, LlamaTarget]:
    """The same model twice, with taps; the second scores as on a GPU."""
    usual, other = (tiny_llama(family=family).with_taps((0, 1, 2)) for _ in range(2))
    other.on_device = DevicePass(other.llama, other.weights, other._rope, other.taps)
    return usual, other


@pytest.mark.parametrize("family", ["llama", "llama3", "qwen2", "qwen3", "smollm2"])
def test_it_scores_and_keeps_what_the_usual_pass_does(family: Family) -> None:
    usual, other = both(family)
    for target in (usual, other):
        target.prefill(list(range(1, 40)))
    for draft in DRAFTS:
        torch.testing.assert_close(other.score(7, draft), usual.score(7, draft))
        path = draft.path_to(len(draft) - 1) if len(draft) else ()
        for target in (usual, other):
            target.commit(path)
        torch.testing.assert_close(other._cache.k, usual._cache.k)
        torch.testing.assert_close(other._cache.v, usual._cache.v)
        torch.testing.assert_close(other.features, usual.features)


def test_it_says_what_ran_and_in_which_tiles() -> None:
    usual, other = both("llama")
    for target in (usual, other):
        target.prefill([1, 2, 3])
    assert other.attention_of(DRAFTS[1]) == Attention()  # nothing was scored yet
    other.score(7, DRAFTS[1])
    assert usual.attention_of(DRAFTS[1]) == Attention("sdpa")
    why = "CUDA graphs need a CUDA device; this is cpu"
    assert other.attention_of(DRAFTS[1]) == Attention("sdpa", None, why)


def test_it_goes_on_when_the_cache_grows() -> None:
    usual, other = both("llama")
    for target in (usual, other):
        target.prefill([1 + i % 50 for i in range(250)])
        for _ in range(3):
            target.score(5, Draft.chain([6, 7, 8]))
            target.commit((0, 1, 2))
    assert other._cache.capacity > 256
    torch.testing.assert_close(other.score(5, DRAFTS[2]), usual.score(5, DRAFTS[2]))


def test_a_logits_tensor_outlives_the_next_pass() -> None:
    _, other = both("llama")
    other.prefill([1, 2, 3])
    first = other.score(4, Draft.chain([5]))
    kept = first.clone()
    other.score(9, Draft.chain([2]))
    assert torch.equal(first, kept)


def test_where_there_are_no_graphs_the_reason_is_kept() -> None:
    graphs = Graphs(torch.device("cpu"))
    doubled = graphs.run("twice", torch.tensor([3]), lambda packet: packet * 2)
    assert doubled.tolist() == [6]
    assert graphs.captured == 0
    assert "CUDA device; this is cpu" in graphs.reasons["twice"]


def test_a_sliding_window_is_left_to_the_usual_pass() -> None:
    assert tiny_llama(family="mistral").on_device is None
