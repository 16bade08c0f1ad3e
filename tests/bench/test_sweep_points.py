"""Points of hand-written measurements: every number can be worked out on paper."""

import pytest

from specviz.bench.sweep_points import interval, median_error, points
from specviz.events import Timing
from specviz.metrics.sweep import ALL, Cell, Pass, Sample

NGRAM = Cell(scheme="ngram", draft_length=2, group_size=3)


def sample(cell=NGRAM, *, prompt="a", order=1, total=5.0, repeat=0, tokens=10, rounds=5, text="t"):
    """Five rounds that each draft two tokens and keep one, unless told otherwise."""
    plain = cell.scheme == "none"
    rounds = tokens if plain else rounds
    return Sample(
        cell=cell,
        prompt=prompt,
        prompt_class="chat" if prompt < "c" else "code",
        repeat=repeat,
        order=order,
        rounds=rounds,
        tokens=tokens,
        drafted=0 if plain else 2 * rounds,
        accepted=tokens - rounds,
        lengths=(rounds,) if plain else (0, 0, rounds),
        survived=(rounds,) if plain else (rounds, tokens - rounds, 0),
        timing=Timing(draft=0 if plain else 0.5, score=0.8 * total, total=total),
        prompt_tokens=4,
        digest=text,
    )


def passes(mode="exact", group=3, times=(0.8, 0.9, 1.2)):
    return [
        Pass(mode=mode, group_size=group, rows=r, context=8, repeat=0, seconds=s)
        for r, s in enumerate(times, 1)
    ]


def test_a_drift_of_the_machine_cancels():
    plain = [sample(NGRAM.plain, order=0, total=10), sample(NGRAM.plain, order=2, total=14)]
    (chat, whole) = points([plain[0], sample(total=6), plain[1]], [])
    assert chat.speedup == pytest.approx(1.2 / 0.6)  # 12 s of plain decoding at that time
    assert chat.prompt_class == "chat"
    assert whole.prompt_class == ALL
    assert whole.predicted is None
    assert whole.remainder is None


def test_prediction_and_remainder_add_up_to_the_measured_round():
    (_chat, point) = points([sample(NGRAM.plain, order=0, total=10), sample(total=8)], passes())
    draft, verify, length = 0.5 / 5 / 1.0, 0.8 * 1.2 / 0.8 + 0.2, 2.0  # 0.2 s beside the pass
    assert point.predicted == pytest.approx(length / (verify + draft))
    assert point.remainder == pytest.approx(length / point.speedup - verify - draft)
    assert median_error([point]) == pytest.approx(abs(point.predicted / point.speedup - 1))


def test_b16_a_block_is_predicted_at_the_lengths_that_were_measured_and_at_no_other():
    block = Cell(scheme="dflash", draft_length=2, group_size=3)
    seven = Cell(scheme="dflash", draft_length=7, group_size=3)
    plain = sample(block.plain, order=0)
    found = points([plain, sample(block), sample(seven, order=2)], passes())
    assert {point.cell for point in found} == {block, seven}
    assert all(point.is_block for point in found)
    assert not any(point.is_block for point in points([plain, sample()], passes()))


def test_a_length_whose_rows_were_not_measured_is_not_predicted():
    (_chat, point) = points([sample(NGRAM.plain, order=0), sample()], passes(times=(0.8, 0.9)))
    assert point.predicted is None


def test_a_timed_twin_has_its_own_time_and_the_targets_acceptance():
    measured = [sample(NGRAM.plain, order=0, total=10), sample(total=8)]
    found = points(measured, [*passes(), *passes("twin", 9, times=(0.4, 0.45, 0.5))])
    twin = next(p for p in found if p.cell.mode == "twin" and p.prompt_class == ALL)
    assert twin.cell.group_size == 9
    assert twin.acceptance_length == 2.0
    rest_plain, rest = 0.2, (8 - 6.4) / 5
    assert twin.speedup == pytest.approx(2.0 * (rest_plain + 0.4) / (rest + 0.5))
    assert twin.same_text is None


def test_the_interval_is_over_prompts_and_repeats_the_same():
    assert interval([[1.0, 3.0]]) == (1.0, 3.0)
    spread = interval([[1.0], [1.1], [2.0]])
    assert spread == interval([[1.0], [1.1], [2.0]])
    assert spread == (1.0, 2.0)
    assert interval([[1.5], [1.5]]) == (1.5, 1.5)


def test_another_text_than_plain_decodings_is_told():
    (_chat, point) = points([sample(NGRAM.plain, order=0), sample(text="other")], [])
    assert point.same_text is False


def test_plain_runs_far_apart_mean_a_busy_machine():
    steady = [sample(NGRAM.plain, order=2 * n, total=10, repeat=n) for n in range(6)]
    assert not points([*steady, sample(order=3)], [])[0].busy
    wild = [sample(NGRAM.plain, order=2 * n, total=10 + 3 * n, repeat=n) for n in range(6)]
    assert points([*wild, sample(order=3)], [])[0].busy
