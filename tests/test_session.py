"""The loop: where output ends, how time travel repeats, what is refused."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
import torch

from specviz.config import SamplingParams, SessionConfig
from specviz.drafters import make_drafter
from specviz.drafters.base import Proposal
from specviz.drafters.none import PlainDrafter
from specviz.errors import ConfigError, DraftError, PromptError
from specviz.events import Draft, Round
from specviz.metrics import summarise
from specviz.models.tiny import tiny_llama
from specviz.session import DecodeSession
from tests.stubs import ScriptedDrafter, TableTarget, copier, drawn_chain, point_draft, random_table

PROMPT = (1, 2, 3)
Q7 = (0.1, 0.2, 0.1, 0.1, 0.2, 0.2, 0.1)


def counter(vocab: int = 50, eos: tuple[int, ...] = (), context: int = 4096) -> TableTarget:
    """Says t + 1 after t."""

    def logits(tokens: tuple[int, ...]) -> torch.Tensor:
        row = torch.zeros(vocab)
        row[(tokens[-1] + 1) % vocab] = 9.0
        return row

    return TableTarget(vocab, logits, eos=eos, context=context)


def oracle(length: int) -> ScriptedDrafter:
    """Always drafts what `counter` will say."""
    return ScriptedDrafter(
        lambda c, b: Proposal(Draft.chain(c.tokens[-1] + 1 + i for i in range(min(b, length))))
    )


def run(
    target: TableTarget, drafter: ScriptedDrafter, prompt: Sequence[int] = PROMPT, **params: object
) -> DecodeSession:
    piece = params.pop("piece", None)
    session = DecodeSession(
        target,
        drafter,
        prompt,
        SamplingParams(**params),
        SessionConfig(draft_length=5),
        piece=piece,
    )
    list(session)
    return session


@pytest.mark.parametrize("position", range(6))
def test_g1_an_end_token_inside_the_block_ends_the_output_there(position: int) -> None:
    end = 10 + position  # the first round drafts 10..14 after 9, its bonus is 15
    session = run(counter(eos=(end,)), oracle(5), (9,))
    round_ = session.rounds[0]
    assert session.output == tuple(range(10, end + 1))
    assert session.finish.reason == "stop_token"
    assert round_.past_end == tuple(range(position + 1, 5))
    assert round_.fates.count("past_end") == max(0, 4 - position)
    assert (round_.last_token is None) == (position < 5)
    assert round_.acceptance_length == position + 1  # g3: counted from the cut stream


def test_g1_ignoring_the_end_token_runs_on() -> None:
    session = run(counter(eos=(12,)), oracle(5), (9,), ignore_eos=True, max_tokens=20)
    assert len(session.output) == 20


def test_f5_drafts_beyond_the_end_are_marked_and_not_returned() -> None:
    target = counter(eos=(14,))
    session = DecodeSession(
        target, oracle(8), (9,), SamplingParams(max_tokens=50), SessionConfig(draft_length=8)
    )
    list(session)
    assert session.output == (10, 11, 12, 13, 14)
    assert session.rounds[0].fates == ("accepted",) * 5 + ("past_end",) * 3


@pytest.mark.parametrize("limit", [1, 2, 5, 6, 7, 12, 13])
def test_g6_the_token_budget_is_exact(limit: int) -> None:
    session = run(counter(), oracle(5), max_tokens=limit)
    assert len(session.output) == limit
    assert session.finish.reason == "length"
    assert all(len(r.draft) <= limit for r in session.rounds)


def test_a_draft_length_larger_than_what_is_left_is_cut() -> None:
    session = run(counter(), oracle(5), max_tokens=3)
    assert [len(r.draft) for r in session.rounds] == [2]
    assert session.rounds[0].budget == 5


def test_a_round_without_room_for_a_draft_is_no_miss() -> None:
    session = run(counter(), oracle(5), max_tokens=7)
    assert [(len(r.draft), r.budget) for r in session.rounds] == [(5, 5), (0, 0)]
    assert summarise(session.rounds).hit_rate == 1.0


def test_output_ends_where_the_context_does() -> None:
    session = run(counter(context=12), oracle(5))
    assert len(session.tokens) == 12
    assert session.finish.reason == "context"


def test_stop_strings_are_found_across_token_boundaries_and_left_out_of_the_text() -> None:
    pieces = {i: f"{i} ".encode() for i in range(50)}
    session = run(counter(), oracle(5), (9,), stop=("2 13",), piece=pieces.__getitem__)
    assert session.output == (10, 11, 12, 13)
    assert session.finish.reason == "stop_string"
    text = b"".join(pieces[t] for t in session.output)
    assert text[: session.finish.text_bytes] == b"10 11 1"


def test_a_stop_string_split_over_two_rounds_is_found() -> None:
    pieces = {i: f"<{i}>".encode() for i in range(50)}
    session = run(counter(), oracle(1), (9,), stop=("1><12",), piece=pieces.__getitem__)
    assert session.output[-1] == 12
    assert session.rounds[1].start == session.rounds[0].start + 2


def test_a_stop_string_in_the_prompt_does_not_end_the_output() -> None:
    pieces = {i: f"{i} ".encode() for i in range(50)}
    session = run(counter(), oracle(5), (9,), stop=("9 ",), max_tokens=8, piece=pieces.__getitem__)
    assert session.finish.reason == "length"


def test_stop_strings_without_a_tokenizer_are_refused() -> None:
    with pytest.raises(ConfigError, match="use stop_ids"):
        run(counter(), oracle(5), stop=("x",))


def test_c14_seeds_matter_when_sampling_and_not_at_temperature_zero() -> None:
    def texts(temperature: float) -> set[tuple[int, ...]]:
        return {
            run(random_table(), oracle(0), temperature=temperature, seed=s, max_tokens=20).output
            for s in range(10)
        }

    assert len(texts(0.0)) == 1
    assert len(texts(1.0)) == 10


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("verifier", ["sampled", "block"])
def test_rewinding_and_going_on_repeats_every_round(temperature: float, verifier: str) -> None:
    target = random_table()
    params = SamplingParams(temperature=temperature, seed=3, max_tokens=30)
    config = SessionConfig(draft_length=4, verifier=verifier)
    session = DecodeSession(target, drawn_chain(Q7), PROMPT, params, config)
    first = [timeless(r) for r in session]
    for to in (len(first) - 1, 4, 0):
        session.rewind(to)
        assert session.finish is None
        assert [timeless(r) for r in session] == first[to:]


def timeless(round_: Round) -> tuple[object, ...]:
    return (round_.draft, round_.path, round_.last_token, round_.checks, round_.rows, round_.last_u)


def test_changing_the_draft_length_does_not_shift_later_draws() -> None:
    def text(length: int) -> tuple[int, ...]:
        session = DecodeSession(
            random_table(),
            point_draft(Draft.chain([])),
            PROMPT,
            SamplingParams(temperature=1.0, seed=1, max_tokens=30),
            SessionConfig(draft_length=length),
        )
        list(session)
        return session.output

    assert text(0) == text(5)  # nothing was drafted, so the same text


def test_a_fork_keeps_earlier_rounds_and_leaves_the_original_alone() -> None:
    target = tiny_llama(vocab=16)
    drafter = make_drafter(SessionConfig(scheme="ngram"), target)
    session = DecodeSession(target, drafter, PROMPT, SamplingParams(max_tokens=30))
    rounds = list(session)
    branch = session.fork(
        3,
        drafter=PlainDrafter(),
        params=SamplingParams(max_tokens=30, temperature=1.5, seed=9),
        config=SessionConfig(draft_length=0),
    )
    list(branch)
    assert branch.rounds[:3] == rounds[:3]
    assert {r.scheme for r in branch.rounds[3:]} == {"none"}
    assert len(branch.output) == 30
    assert session.rounds == rounds
    session.rewind(5)
    assert [r.committed for r in session] == [r.committed for r in rounds[5:]]


def test_a_forced_token_is_committed_and_the_model_goes_on_from_it() -> None:
    session = DecodeSession(counter(), oracle(5), PROMPT, SamplingParams(max_tokens=9))
    round_ = session.step(forced=30)
    assert (round_.committed, round_.last_kind) == ((30,), "forced")
    list(session)
    assert session.output == tuple(range(30, 39))


def test_the_target_is_scored_once_a_round() -> None:
    target = counter()
    session = run(target, oracle(5), max_tokens=24)
    assert target.scores == len(session.rounds) == 4


def test_kinds_of_the_targets_own_token() -> None:
    def kind(drafts: Sequence[int]) -> str:
        return run(counter(), point_draft(Draft.chain(drafts)), max_tokens=20).rounds[0].last_kind

    assert kind([4, 5]) == "bonus"
    assert kind([4, 9]) == "recovered"
    assert kind([]) == "plain"


def test_every_committed_token_has_its_log_probability() -> None:
    """H8: accepted, corrected and bonus tokens alike; 0 only where p is 1."""
    session = run(random_table(), point_draft(Draft.chain([1, 2])), max_tokens=30)
    for round_ in session.rounds:
        for score in round_.nodes:
            assert score.logprob < 0
        assert (round_.last_logprob is None) == (round_.last_token is None)
        assert round_.last_logprob is None or round_.last_logprob < 0


def test_e8_drafts_are_scored_by_id_even_outside_the_top() -> None:
    target = random_table(vocab=30, scale=2.0)
    session = run(target, point_draft(Draft.chain([17])), temperature=1.0, max_tokens=3)
    round_ = session.rounds[0]
    row = torch.as_tensor(target.logits(PROMPT)).softmax(-1)
    assert round_.nodes[0].p == pytest.approx(float(row[17]), rel=1e-5)
    assert round_.nodes[0].rank == int((row > row[17]).sum())
    assert 17 in [c.token for c in round_.rows[0].top]


@pytest.mark.parametrize("detail", ["off", "light", "full"])
def test_detail_decides_what_is_kept_and_not_what_is_decoded(detail: str) -> None:
    config = SessionConfig(draft_length=3, detail=detail)
    drafter = point_draft(Draft.chain([1, 2, 3]))
    session = DecodeSession(random_table(), drafter, PROMPT, SamplingParams(max_tokens=12), config)
    rounds = list(session)
    assert session.output == run(random_table(), drafter, max_tokens=12).output
    assert {bool(r.nodes) for r in rounds if len(r.draft)} == {detail != "off"}
    assert {bool(r.rows) for r in rounds} == {detail == "full"}


def test_times_add_up() -> None:
    session = run(counter(), oracle(2), max_tokens=12)
    for before, after in pairwise(session.rounds):
        timing = before.timing
        parts = timing.draft + timing.score + timing.verify + timing.commit + timing.other
        assert parts == pytest.approx(timing.total)
        assert timing.record <= timing.other + 1e-9
        assert after.began == pytest.approx(before.began + timing.total)


def test_c17_a_draft_past_the_vocabulary_is_an_error_and_not_a_crash() -> None:
    with pytest.raises(DraftError, match="proposed token 50; the target has ids 0 to 49"):
        run(counter(), point_draft(Draft.chain([50])))


def test_a_drafter_that_exceeds_its_budget_is_refused() -> None:
    greedy = ScriptedDrafter(lambda c, b: Proposal(Draft.chain(range(b + 1))))
    with pytest.raises(DraftError, match="proposed 6 tokens; 5 were asked for"):
        run(counter(), greedy)


def test_a_draft_drawn_from_nothing_is_refused() -> None:
    q = torch.zeros(1, 50)
    q[0, 3] = 1.0
    liar = ScriptedDrafter(lambda c, b: Proposal(Draft.chain([4]), q))
    with pytest.raises(DraftError, match="drew token 4, to which its q gives no mass"):
        run(counter(), liar)


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ((), "the prompt is empty"),
        ((1, 99), "token 99; table has ids 0 to 49"),
        ((1,) * 30, "30 tokens; table has room for 30"),
    ],
)
def test_unusable_prompts_are_named(prompt: tuple[int, ...], message: str) -> None:
    with pytest.raises(PromptError, match=message):
        run(counter(context=30), oracle(2), prompt)


def test_greedy_verification_of_a_sampled_request_is_refused() -> None:
    with pytest.raises(ConfigError, match="would change the distribution"):
        DecodeSession(
            counter(),
            oracle(1),
            PROMPT,
            SamplingParams(temperature=0.5),
            SessionConfig(verifier="greedy"),
        )


def test_a_finished_run_says_so_instead_of_going_on() -> None:
    session = run(counter(), oracle(5), max_tokens=4)
    with pytest.raises(ConfigError, match=r"has ended \(length\); rewind or fork"):
        session.step()
    for at in (-1, 99):
        with pytest.raises(ConfigError):
            session.rewind(at)
        with pytest.raises(ConfigError):
            session.fork(at)


@pytest.mark.parametrize(
    "bad",
    [
        {"temperature": -1.0},
        {"temperature": float("nan")},
        {"temperature": 1e9},
        {"top_p": 0.0},
        {"top_k": -1},
        {"min_p": 1.0},
        {"repetition_penalty": 0.0},
        {"frequency_penalty": float("inf")},
        {"max_tokens": 0},
        {"max_tokens": 10**12},
        {"seed": -1},
        {"stop": ("",)},
        {"logit_bias": ((-1, 0.0),)},
        {"logit_bias": ((1, float("inf")),)},
    ],
)
def test_settings_out_of_range_name_themselves_and_what_is_allowed(bad: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=rf"{next(iter(bad))} is .*; allowed: "):
        SamplingParams(**bad)


@pytest.mark.parametrize(
    "bad", [{"draft_length": -1}, {"draft_length": 10**6}, {"verifier": "x"}, {"detail": "all"}]
)
def test_session_settings_out_of_range_are_named(bad: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=rf"{next(iter(bad))} is .*; allowed: "):
        SessionConfig(**bad)


def test_b9_repeated_paragraphs_light_up_from_the_second_copy_on() -> None:
    """The user's own test of a highlighter: copy 1 has no accepted drafts, 2 and 3 over 90%."""
    period, copies = 8, 3
    text = tuple(range(10, 10 + period)) * (copies + 1)
    target = TableTarget(40, lambda t: torch.eye(40)[text[len(t) - 2]] * 9)
    drafter = make_drafter(SessionConfig(scheme="ngram"), target)
    session = DecodeSession(
        target, drafter, (1, 2), SamplingParams(max_tokens=period * copies), SessionConfig()
    )
    list(session)
    drafted = []
    for round_ in session.rounds:
        drafted += [True] * len(round_.path) + [False] * (round_.last_token is not None)
    assert session.output == text[: period * copies]
    assert not any(drafted[:period])
    later = drafted[period + 1 :]
    assert sum(later) / len(later) >= 0.75  # every fifth token of a full round is the bonus
    full = [r for r in session.rounds if len(r.draft)]
    assert all(fate == "accepted" for r in full for fate in r.fates)


def test_h7_committed_is_accepted_plus_one_a_round() -> None:
    session = run(copier(9, 3), point_draft(Draft.chain([1, 2, 3])), max_tokens=30)
    uncut = [r for r in session.rounds if r.last_token is not None]
    assert sum(len(r.committed) for r in uncut) == sum(len(r.path) for r in uncut) + len(uncut)


def test_a_stop_token_is_kept_in_the_output_and_left_out_of_the_text() -> None:
    pieces = {i: f"{i} ".encode() for i in range(50)}
    session = run(counter(eos=(12,)), oracle(5), (9,), piece=pieces.__getitem__)
    assert session.output == (10, 11, 12)
    assert session.finish.text_bytes == len(b"10 11 ")


def test_tokens_follow_every_change_of_the_rounds() -> None:
    session = run(counter(), oracle(1), (9,), max_tokens=12)
    whole = session.tokens
    session.rewind(2)
    assert session.tokens == whole[:5]
    session.step()
    assert session.tokens == whole[:7]
    assert session.fork(1).tokens == whole[:3]


@pytest.mark.parametrize("params", [{"max_tokens": 10}, {"stop_ids": (12,)}])
def test_a_run_that_has_ended_stays_ended_at_its_last_round(params: dict[str, object]) -> None:
    session = run(counter(), oracle(1), (9,), **params)
    ended, rounds = session.finish, len(session.rounds)
    assert session.fork(rounds).finish == ended
    session.rewind(rounds)
    assert session.finish == ended
    session.rewind(rounds - 1)
    assert session.finish is None
    list(session)
    assert session.finish == ended


@pytest.mark.parametrize("token", [-1, 50])
def test_a_forced_token_outside_the_vocabulary_is_named(token: int) -> None:
    session = DecodeSession(counter(), oracle(1), PROMPT)
    with pytest.raises(ConfigError, match=rf"forced token is {token}; .* 0 to 49"):
        session.step(forced=token)
