"""G turned: the same function with every divisor, the same shapes with any."""

from dataclasses import replace

import pytest
import torch

from specviz.bench import sweep_groups as groups
from specviz.bench.sweep_plan import Passes, Plan, Prompt, schedule
from specviz.bench.sweep_time import kernel_passes, model_passes
from specviz.config import SamplingParams, SessionConfig
from specviz.drafters import make_drafter
from specviz.errors import UnsupportedModel
from specviz.events import Draft
from specviz.models.tiny import tiny_llama
from specviz.session import DecodeSession


def output(target, scheme="ngram"):
    config = SessionConfig(scheme=scheme, draft_length=3, detail="off")
    session = DecodeSession(
        target.fork(0), make_drafter(config, target), [3, 9, 3, 9, 3],
        SamplingParams(max_tokens=20), config,
    )  # fmt: skip
    list(session)
    return session.output


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_greedy_tokens_are_the_same_for_g_and_every_divisor(family):
    target = tiny_llama(family=family, heads=8, kv_heads=2, hidden=64, layers=2)
    assert groups.divisors(target) == (2, 1)
    plain = output(target, "none")
    for group in groups.divisors(target):
        turned = groups.exact(target, group)
        assert turned.config.group_size == group
        assert output(turned) == output(turned, "none") == plain


def test_a_prompt_and_a_draft_give_the_same_bits_for_every_divisor():
    target = tiny_llama(heads=6, kv_heads=2, hidden=48, layers=2, dtype=torch.bfloat16)
    draft = Draft.chain([4, 9, 2])
    found = []
    for model in (target, *(groups.exact(target, g) for g in groups.divisors(target))):
        one = model.with_taps((1,))
        one.prefill([(5 * i + 2) % 64 for i in range(50)])
        found.append((one.score(3, draft), one.score(3, Draft.chain([])), one.features))
    for logits, first, features in found[1:]:
        assert torch.equal(logits, found[0][0])
        assert torch.equal(first, found[0][1])
        assert torch.equal(features, found[0][2])


def test_a_group_that_does_not_divide_is_refused():
    target = tiny_llama(heads=4, kv_heads=1)
    with pytest.raises(UnsupportedModel, match="only its divisors, not 3"):
        groups.exact(target, 3)
    with pytest.raises(UnsupportedModel, match="do not divide"):
        groups.twin(target, 3)


def test_a_twin_has_the_targets_shapes_but_for_its_kv_heads():
    target = tiny_llama(heads=4, kv_heads=2)
    assert groups.twins(target) == (1, 4)
    for group in groups.twins(target):
        twin = groups.twin(target, group)
        assert replace(twin.config, kv_heads=2) == target.config
        times = list(model_passes(twin, Passes("twin", group, (1, 3), 0, 8), lambda: False))
        assert [t.rows for t in times] == [1, 3]
        assert all(t.seconds > 0 for t in times)


def test_the_attention_operation_is_timed_alone():
    task = Passes("kernel", 4, (1, 2), 0, context=32, batch=2)
    found = list(kernel_passes(tiny_llama(), task, lambda: False))
    assert [(p.rows, p.context, p.batch) for p in found] == [(1, 32, 2), (2, 32, 2)]
    assert not list(kernel_passes(tiny_llama(), task, lambda: True))


def test_the_order_is_reversed_from_prompt_to_prompt_and_every_g_is_there():
    prompts = (Prompt("a", "chat", "x"), Prompt("b", "chat", "y"))
    plan = Plan(prompts=prompts, schemes=("ngram",), lengths=(1, 2, 3), repeats=1,
                groups=("exact", "twin", "kernel"), rows=4)  # fmt: skip
    tasks = list(schedule(plan, 3, (1,), (9,)))
    own = [t for t in tasks if not isinstance(t, Passes) and t.cell.group_size == 3]
    lengths = {p: [t.cell.draft_length for t in own if t.prompt.id == p and t.cell.draft_length]
               for p in "ab"}  # fmt: skip
    assert lengths["a"] == lengths["b"][::-1]
    assert sorted(lengths["a"]) == [1, 2, 3]
    timed = {(t.mode, t.group_size) for t in tasks if isinstance(t, Passes)}
    assert {("exact", 3), ("exact", 1), ("twin", 9), ("kernel", 16)} <= timed
    keys = [t.key for t in tasks if not isinstance(t, Passes)]
    assert len(keys) == len(set(keys))


def test_the_targets_own_cache_is_not_touched():
    target = tiny_llama()
    before = target.length
    list(model_passes(target, Passes("exact", 2, (2,), 0, 8), lambda: False))
    assert target.length == before
    assert torch.equal(target.weights.embed, groups.exact(target, 1).weights.embed)
