"""EAGLE-3 heads: their training pass, their drafting and each of their variants agree."""

from dataclasses import replace

import pytest
import torch

from specviz.errors import ConfigError, NumericsError
from specviz.events import ROOT, Draft
from specviz.heads.eagle3 import Eagle3Head
from specviz.heads.runner import Runner
from specviz.heads.tree import TreeLimits, TreeShape, draft_tree
from tests.heads.random_heads import (
    IDS,
    LATENT,
    SHAPE,
    VOCAB,
    eagle3_head,
    features_of,
    random_text,
    target_for,
)

VARIANTS = {
    "plain": {},
    "norm_before_residual": {"norm_before_residual": True},
    "norm_before_fc": {"norm_before_fc": True},
    "fc_norm": {"fc_norm": True, "fc_bias": True},
    "recycle_normed": {"recycle_normed": True},
    "no_final_norm": {"final_norm": False},
    "two_layers": {"layers": 2},
    "qwen3": {"layer": replace(SHAPE, qk_norm=True, head_dim=12)},
    "window": {"layer": replace(SHAPE, window=4)},
    "latent": {"layer": LATENT},
    "own_embedding": {"own_embedding": True},
    "targets_head": {"own_head": False, "draft_ids": None},
    "one_tap": {"taps": (2,)},
}
STEPS = 3


def unrolled(head: Eagle3Head, tokens: tuple[int, ...], steps: int = STEPS) -> list[torch.Tensor]:
    """Logits [rows, draft vocab] by step, from the training pass."""
    target = target_for(head)
    features = features_of(target, (*tokens, 0))[None]
    table = target.embed(range(VOCAB))
    outs = list(head(features, torch.tensor([tokens]), table, steps))
    lm_head = target.head if head.lm_head is None else head.lm_head
    return [lm_head(out[0]) for out in outs]


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
@torch.no_grad()
def test_drafting_says_what_the_training_pass_says(changes: dict[str, object]) -> None:
    head, tokens = eagle3_head(**changes), random_text(12)
    expected, target = unrolled(head, tokens), target_for(head)
    runner = Runner(head, target)
    for row in (0, 5, 8):
        known = tokens[: row + 2]  # row i pairs the feature of i with token i + 1
        reading = runner.catch_up(known, features_of(target, known), shared=len(runner.text))
        for step in range(STEPS):
            assert torch.allclose(reading.logits[-1], expected[step][row], atol=1e-4), (row, step)
            token = tokens[row + 2 + step] if row + 2 + step < len(tokens) else 0
            reading = runner.step(reading.hidden[-1:], (token,), step + 1)
        runner.drop_drafted()


@pytest.mark.parametrize("name", [name for name in VARIANTS if name != "plain"])
@torch.no_grad()
def test_every_variant_changes_what_the_head_says(name: str) -> None:
    plain, tokens = unrolled(eagle3_head(), random_text(12)), random_text(12)
    other = unrolled(eagle3_head(**VARIANTS[name]), tokens)
    step = 1 if name == "recycle_normed" else 0
    assert other[step].shape != plain[step].shape or not torch.allclose(other[step], plain[step])


def test_gradients_reach_every_parameter() -> None:
    head, tokens = eagle3_head(layers=2, norm_before_fc=True), random_text(10)
    target = target_for(head)
    features = features_of(target, (*tokens, 0))[None].clone()
    outs = head(features, torch.tensor([tokens]), target.embed(range(VOCAB)).clone(), STEPS)
    assert head.lm_head is not None
    sum(head.lm_head(out).square().mean() for out in outs).backward()
    for name, weight in head.named_parameters():
        assert weight.grad is not None, name
        assert float(weight.grad.abs().max()) > 0, name


@torch.no_grad()
def test_true_rows_replace_drafted_ones() -> None:
    head, tokens = eagle3_head(), random_text(10)
    target = target_for(head)
    whole = Runner(head, target)
    whole.catch_up(tokens, features_of(target, tokens), 0)
    pieces = Runner(head, target)
    for length in (4, 5, 8, 10):
        shared = len(pieces.text)
        reading = pieces.catch_up(tokens[:length], features_of(target, tokens[:length]), shared)
        assert pieces.caught_up == {4: 3, 5: 1, 8: 3, 10: 2}[length]
        pieces.step(reading.hidden, (7,), 1)
        pieces.drop_drafted()
    assert torch.allclose(pieces._cache.k, whole._cache.k, atol=1e-5)
    assert torch.allclose(pieces._cache.v, whole._cache.v, atol=1e-5)


@torch.no_grad()
def test_a_prompt_longer_than_a_pass_is_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    head, tokens = eagle3_head(), random_text(30)
    target = target_for(head)
    features = features_of(target, tokens)
    at_once = Runner(head, target).catch_up(tokens, features, 0)
    monkeypatch.setattr("specviz.heads.runner.PIECE", 8)
    runner = Runner(head, target)
    in_pieces = runner.catch_up(tokens, features, 0)
    assert runner.passes == 4
    assert torch.allclose(in_pieces.logits, at_once.logits, atol=1e-4)


def test_features_of_other_layers_are_refused_by_name() -> None:
    head, tokens = eagle3_head(), random_text(5)
    runner = Runner(head, target_for(head))
    for wrong in (None, torch.zeros(4, 2, 32), torch.zeros(5, 3, 32)):
        with pytest.raises(ConfigError, match=r"decode with target.with_taps\(\(1, 2, 3\)\)"):
            runner.catch_up(tokens, wrong, 0)


def test_coverage_is_the_share_of_a_text_the_head_can_say() -> None:
    head = eagle3_head()
    assert head.coverage((1, 3, 2, 5)) == 0.75
    assert head.coverage(()) == 1.0
    assert eagle3_head(draft_ids=None).coverage((1, 2)) == 1.0


def grown(shape: TreeShape, limits: TreeLimits, head: Eagle3Head | None = None):
    head, tokens = head or eagle3_head(), random_text(9)
    target = target_for(head)
    runner = Runner(head, target)
    reading = runner.catch_up(tokens, features_of(target, tokens), 0)
    return head, target, runner, tokens, draft_tree(runner, reading, shape, limits)


@torch.no_grad()
def test_scores_of_tree_nodes_are_those_of_the_chain_to_them() -> None:
    limits = TreeLimits(budget=30, least=0.0, ends=frozenset())
    head, target, _, tokens, tree = grown(TreeShape(top_k=4, depth=4), limits)
    assert len(tree.draft) == 30
    assert max(tree.draft.depths) == 4
    features, ids = features_of(target, tokens), IDS.tolist()
    for node in range(len(tree.draft)):
        runner = Runner(head, target)
        reading = runner.catch_up(tokens, features, 0)
        path = [tree.draft.tokens[i] for i in tree.draft.path_to(node)]
        for depth, token in enumerate(path[:-1], 1):
            reading = runner.step(reading.hidden[-1:], (token,), depth)
        probability = reading.logits[-1].softmax(-1)[ids.index(path[-1])]
        assert tree.scores[node] == pytest.approx(float(probability), abs=1e-5)


@torch.no_grad()
def test_the_kept_nodes_are_the_best_of_all_and_include_their_parents() -> None:
    shape = TreeShape(top_k=4, depth=4)
    everything = grown(shape, TreeLimits(budget=999, least=0.0, ends=frozenset()))[-1]
    assert len(everything.draft) == 4 + 3 * 16
    some = grown(shape, TreeLimits(budget=12, least=0.0, ends=frozenset()))[-1]
    assert len(some.draft) == 12

    def paths(tree) -> dict[tuple[int, ...], float]:
        found = {}
        for node in range(len(tree.draft)):
            path = tree.draft.path_to(node)
            product = 1.0
            for i in path:
                product *= tree.scores[i]
            found[tuple(tree.draft.tokens[i] for i in path)] = product
        return found

    best = sorted(paths(everything).items(), key=lambda item: -item[1])[:12]
    assert set(paths(some)) == {path for path, _ in best}


@torch.no_grad()
def test_a_tree_of_one_child_each_is_the_greedy_chain() -> None:
    limits = TreeLimits(budget=5, least=0.0, ends=frozenset())
    _head, target, runner, tokens, tree = grown(TreeShape(top_k=1, depth=5), limits)
    assert tree.draft.is_chain
    reading, chain = runner.catch_up(tokens, features_of(target, tokens), len(tokens)), []
    for depth in range(1, 6):
        chain.append(int(IDS[int(reading.logits[-1].argmax())]))
        reading = runner.step(reading.hidden[-1:], (chain[-1],), depth)
    assert tree.draft.tokens == tuple(chain)


@torch.no_grad()
def test_trees_grow_neither_past_ends_nor_below_the_least_probability() -> None:
    shape, free = TreeShape(top_k=4, depth=3), TreeLimits(budget=99, least=0.0, ends=frozenset())
    first = grown(shape, free)[-1].draft.tokens[0]
    ended = grown(shape, replace(free, ends=frozenset({first})))[-1].draft
    assert first in ended.tokens
    assert all(p == ROOT or ended.tokens[p] != first for p in ended.parents)
    sure = grown(shape, replace(free, least=0.1))[-1]
    assert sure.scores
    assert min(sure.scores) >= 0.1
    assert not len(grown(shape, replace(free, least=0.999))[-1].draft)


@torch.no_grad()
def test_b3_nan_weights_are_named_not_drafted() -> None:
    head = eagle3_head()
    head.norm.weight.data[3] = float("nan")
    with pytest.raises(NumericsError, match="the draft head gave NaN or Inf"):
        grown(TreeShape(), TreeLimits(budget=4, least=0.0, ends=frozenset()), head)


def test_shift_a_trained_head_knows_the_token_it_was_trained_on_and_no_other() -> None:
    head, tokens = eagle3_head(draft_ids=None), random_text(192, seed=5)
    target = target_for(head)
    features = features_of(target, (*tokens, 0))[None].clone()
    target.truncate(0)
    labels = target.score(tokens[0], Draft.chain(tokens[1:])).argmax(-1)  # after each token
    table = target.embed(range(VOCAB)).clone()
    optimiser = torch.optim.Adam(head.parameters(), lr=4e-3)
    for _ in range(60):
        (out,) = head(features, torch.tensor([tokens]), table)
        logits = head.lm_head(out[0, :-1])
        loss = torch.nn.functional.cross_entropy(logits, labels[1:])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    said = logits.argmax(-1)

    def agreement(shift: int) -> float:
        rows = torch.arange(2, len(said) - 2)
        return float((said[rows] == labels[1 + rows + shift]).float().mean())

    assert agreement(0) > 0.6
    assert agreement(1) < 0.2
    assert agreement(-1) < 0.2
