"""Stepping: each step once, forwards as backwards, cells by index."""

from dataclasses import replace

import pytest

from specviz.traces.timeline import (
    Cursor,
    committed_cells,
    diff,
    durations,
    micro_steps,
    round_of,
    state_at,
    switches,
)
from tests.traces.samples import OUTPUT, ROUNDS, chain_round, sampled_trace, story, trace_of

WHOLE = sampled_trace(12).rounds


def walk(rounds, move, at):
    seen = [at]
    while (after := move(at)) != at:
        seen.append(after)
        at = after
    return seen


def test_the_steps_of_a_round_in_order():
    kinds = [(step.kind, step.node) for step in micro_steps(ROUNDS[0])]
    assert kinds == [
        *(("draft", node) for node in range(3)),
        ("score", None),
        *(("check", node) for node in range(3)),
        ("last", None),
    ]
    assert [step.kind for step in micro_steps(ROUNDS[1])] == ["score", "last"]


@pytest.mark.parametrize("rounds", [ROUNDS, WHOLE, ()], ids=["by hand", "sampled", "none"])
def test_forward_by_steps_visits_every_step_once_and_back_is_the_reverse(rounds):
    there = walk(rounds, lambda at: at.micro_forward(rounds), Cursor())
    assert len(there) == 1 + sum(len(micro_steps(r)) for r in rounds)
    assert there == sorted(set(there))
    assert there[-1] == Cursor.end(rounds)
    assert walk(rounds, lambda at: at.micro_back(rounds), there[-1]) == there[::-1]
    assert all(at.clamp(rounds) == at for at in there)


@pytest.mark.parametrize("rounds", [ROUNDS, WHOLE, ()], ids=["by hand", "sampled", "none"])
def test_rounds_forward_and_back_stop_at_the_borders(rounds):
    there = walk(rounds, lambda at: at.forward(rounds), Cursor())
    assert there == [Cursor(i) for i in range(len(rounds) + 1)]
    assert walk(rounds, lambda at: at.back(), there[-1]) == there[::-1]


def test_within_a_round_forward_completes_it_and_back_undoes_it():
    assert Cursor(2, 1).forward(ROUNDS) == Cursor(3)
    assert Cursor(2, 1).back() == Cursor(2)


@pytest.mark.parametrize("rounds", [-5, 0, 2, 4, 99])
@pytest.mark.parametrize("micro", [-5, 0, 3, 99])
def test_any_pair_of_numbers_is_brought_to_a_place_that_exists(rounds, micro):
    at = Cursor(rounds, micro).clamp(ROUNDS)
    assert at in walk(ROUNDS, lambda at: at.micro_forward(ROUNDS), Cursor())
    assert state_at(ROUNDS, Cursor(rounds, micro)) == state_at(ROUNDS, at)


def test_a_cursor_goes_into_a_link_and_back():
    for at in (Cursor(), Cursor(7), Cursor(7, 2)):
        assert Cursor.parse(str(at)) == at
    for text in ("", "x", "-1", "1.", "1.x", "1.2.3", "٣", "1" * 20, "7\n"):
        assert Cursor.parse(text) is None


def test_what_is_seen_step_by_step():
    def nodes(micro):
        return state_at(ROUNDS, Cursor(0, micro)).nodes

    assert nodes(1) == ("pending", "hidden", "hidden")
    assert nodes(4) == ("pending",) * 3
    assert nodes(5) == ("accepted", "pending", "pending")
    assert nodes(7) == ("accepted", "accepted", "rejected")
    assert not state_at(ROUNDS, Cursor(0, 3)).scored
    assert state_at(ROUNDS, Cursor(0, 4)).scored
    assert state_at(ROUNDS, Cursor(2)).nodes == ()
    assert state_at(ROUNDS, Cursor(3)).nodes == ("rejected", "unchecked")
    assert state_at(ROUNDS, Cursor()).step is None


def test_committed_tokens_grow_with_whole_rounds_only():
    stops = walk(ROUNDS, lambda at: at.micro_forward(ROUNDS), Cursor())
    counts = [state_at(ROUNDS, at).committed for at in stops]
    ends = [0, 3, 4, 5, 8]
    assert counts == [ends[at.rounds] for at in stops]


@pytest.mark.parametrize("r", [*ROUNDS, *WHOLE[:4]])
def test_durations_share_out_the_whole_round(r):
    r = replace(r, timing=ROUNDS[0].timing)
    took = durations(r)
    assert len(took) == len(micro_steps(r))
    assert sum(took) == pytest.approx(r.timing.total)
    assert min(took) > 0


def test_cells_are_the_output_index_by_index():
    cells = committed_cells(ROUNDS)
    assert tuple(cell.token for cell in cells) == OUTPUT
    assert [cell.index for cell in cells] == list(range(len(OUTPUT)))
    assert [cell.kind for cell in cells] == [
        *("accepted", "accepted", "recovered", "plain", "recovered"),
        *("accepted", "accepted", "bonus"),
    ]
    assert [cell.round for cell in cells] == [round_of(ROUNDS, i) for i in range(len(OUTPUT))]


def test_h1_a_token_that_came_from_the_draft_names_round_and_node():
    drafted = [cell for cell in committed_cells(ROUNDS) if cell.node is not None]
    assert len(drafted) == 4
    for cell in drafted:
        r = ROUNDS[cell.round]
        assert r.draft.tokens[cell.node] == cell.token
        assert next(c for c in r.checks if c.node == cell.node).accepted


def test_i2_b9_equal_tokens_keep_their_own_colours():
    the = story(([7], 1, 7), ([7], 0, 7), ([7, 7], 1, 7))
    kinds = [cell.kind == "accepted" for cell in committed_cells(the)]
    assert kinds == [True, False, False, True, False]


@pytest.mark.parametrize("kept", range(1, 5))
def test_g3_nothing_past_the_end_becomes_a_cell(kept):
    r = chain_round([1, 2, 3, 4], kept, None, past=4 - kept)
    assert [cell.token for cell in committed_cells([r])] == [1, 2, 3, 4][:kept]
    assert state_at([r], Cursor(1)).committed == kept
    assert state_at([r], Cursor(1)).nodes[kept:] == ("past_end",) * (4 - kept)


def test_no_round_holds_a_token_outside_the_output():
    for index in (-1, len(OUTPUT)):
        with pytest.raises(IndexError, match="no output token"):
            round_of(ROUNDS, index)
    with pytest.raises(IndexError):
        round_of((), 0)


def test_a5_changes_of_draft_length_are_marked():
    budgets = [4, 4, 4, 0, 0, 4]
    rounds = story(*(([1] if d else [], 0, 2, {"budget": d}) for d in budgets))
    assert switches(rounds) == (3, 5)
    assert switches(ROUNDS) == ()


def test_c4_two_equal_runs_do_not_differ():
    assert diff(trace_of(), trace_of()) is None


def test_diff_finds_the_first_token_that_differs():
    rounds = story(([1, 2, 3], 2, 9), ([], 0, 1))
    found = diff(trace_of(), trace_of(rounds))
    assert (found.index, found.left, found.right, found.same_prompt) == (3, 8, 1, True)
    shorter = diff(trace_of(), trace_of(rounds[:1], prompt=(1, 2, 3)))
    assert (shorter.index, shorter.left, shorter.right) == (3, 8, None)
    assert not shorter.same_prompt
