"""Packed rows against repeated keys and values: the same numbers, both measured in one run."""

import torch

from specviz.bench.rows import as_text, measure_rows, repeat_kv
from specviz.events import Draft
from specviz.models.attention import attend
from specviz.models.tiny import tiny_llama


def test_both_ways_give_the_same_logits() -> None:
    target = tiny_llama(heads=6, kv_heads=2, hidden=48)
    target.prefill([1, 2, 3, 4])
    for draft in (Draft.chain([5, 6, 7]), Draft((5, 6, 7), (-1, -1, 0)), Draft.chain([])):
        packed = target.score(9, draft)
        target.attention = repeat_kv
        torch.testing.assert_close(target.score(9, draft), packed)
        del target.attention


def test_every_row_count_is_measured_both_ways_and_the_target_is_left_as_it_was() -> None:
    target, said = tiny_llama(), list[str]()
    times = measure_rows(target, 20, (1, 2, 5), 3, said.append)
    assert [t.rows for t in times] == [1, 2, 5]
    assert all(t.packed.n == t.repeated.n == 3 and t.packed.low > 0 for t in times)
    assert said == [f"repeat {i} of 3" for i in range(4)]
    assert target.attention is attend
    assert target.length == 0
    table = as_text(times, 20).splitlines()
    assert table[2].startswith("| 1 | ")
    assert " | 1.00 | " in table[2]
    assert len(table) == 5
