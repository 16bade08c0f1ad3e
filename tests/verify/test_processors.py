"""Penalties, bias and filters, on every row of a draft."""

import pytest
import torch
from transformers import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from specviz.config import SamplingParams, SessionConfig
from specviz.errors import ConfigError, NumericsError
from specviz.events import Draft
from specviz.session import DecodeSession
from specviz.verify.processors import check_rows, distribution, penalise, row_outputs
from tests.stubs import TableTarget, copier, fixed, point_draft

LOGITS = torch.randn(5, 40, generator=torch.Generator().manual_seed(1)) * 3


def test_temperature_zero_is_one_hot_at_the_argmax() -> None:
    p = distribution(LOGITS, SamplingParams())
    assert p.sum(-1).tolist() == [1.0] * 5
    assert p.argmax(-1).tolist() == LOGITS.argmax(-1).tolist()


@pytest.mark.parametrize(
    ("params", "peers"),
    [
        ({"top_k": 5}, [TopKLogitsWarper(5)]),
        ({"top_p": 0.7}, [TopPLogitsWarper(0.7)]),
        ({"min_p": 0.2}, [MinPLogitsWarper(0.2)]),
        ({"top_k": 9, "top_p": 0.8}, [TopKLogitsWarper(9), TopPLogitsWarper(0.8)]),
        (
            {"top_k": 9, "top_p": 0.9, "min_p": 0.1},
            [TopKLogitsWarper(9), TopPLogitsWarper(0.9), MinPLogitsWarper(0.1)],
        ),
        ({}, []),
    ],
)
def test_filters_agree_with_transformers(params: dict, peers: list) -> None:
    scores = TemperatureLogitsWarper(0.8)(None, LOGITS)
    for peer in peers:
        scores = peer(None, scores)
    p = distribution(LOGITS, SamplingParams(temperature=0.8, **params))
    torch.testing.assert_close(p, scores.softmax(-1))


def test_repetition_penalty_agrees_with_transformers_on_prompt_and_output() -> None:
    prompt, output = (3, 4, 5), (6, 7)
    peer = RepetitionPenaltyLogitsProcessor(1.3)
    expected = peer(torch.tensor([[*prompt, *output]]), LOGITS[:1].clone())
    ours = penalise(LOGITS[:1], prompt, [output], SamplingParams(repetition_penalty=1.3))
    torch.testing.assert_close(ours, expected)


def test_e6_each_row_counts_its_own_path_and_nothing_else() -> None:
    draft = Draft((1, 2, 3), (-1, 0, -1))
    assert row_outputs((9,), draft) == [(9,), (9, 1), (9, 1, 2), (9, 3)]
    params = SamplingParams(frequency_penalty=2.0, presence_penalty=1.0)
    logits = torch.zeros(4, 10)
    got = penalise(logits, (5,), row_outputs((9, 1), draft), params)
    assert got[0, [9, 1, 2, 3, 5]].tolist() == [-3, -3, 0, 0, 0]  # the prompt is not counted
    assert got[2, [9, 1, 2, 3]].tolist() == [-3, -5, -3, 0]
    assert got[3, [9, 1, 2, 3]].tolist() == [-3, -3, 0, -3]
    assert logits.count_nonzero() == 0  # the model's own logits are left alone


def test_e1_frequency_penalty_two_forbids_what_minus_two_repeats() -> None:
    def text(penalty: float) -> tuple[int, ...]:
        target = TableTarget(4, lambda tokens: [0.0, 1.0, 0.5, 0.2])
        params = SamplingParams(frequency_penalty=penalty, max_tokens=8)
        drafter = point_draft(Draft.chain([1, 1, 1, 1]))
        session = DecodeSession(target, drafter, [0], params, SessionConfig(draft_length=4))
        list(session)
        return session.output

    assert text(-2.0) == (1,) * 8
    assert text(2.0)[:2] == (1, 2)


@pytest.mark.parametrize("row", range(5))
def test_e2_a_forbidden_token_is_refused_at_every_position(row: int) -> None:
    drafts = [1, 1, 1, 1]
    target = TableTarget(4, lambda tokens: [0.0, 1.0, 0.5, 0.2])
    drafts[row:] = [2] * (4 - row)
    params = SamplingParams(logit_bias=((2, -torch.inf), (0, -torch.inf)), max_tokens=9)
    session = DecodeSession(
        target, point_draft(Draft.chain(drafts)), [0], params, SessionConfig(draft_length=4)
    )
    assert session.step().path == tuple(range(row))
    assert 2 not in session.output


def test_e4_repetition_penalty_breaks_a_loop_at_the_same_token_as_plain_decoding() -> None:
    params = SamplingParams(repetition_penalty=1.15, max_tokens=40)

    def looping(tokens: tuple[int, ...]) -> torch.Tensor:
        row = torch.full((12,), 9.0)
        row[tokens[-3]] = 10.0
        return row + torch.arange(12) * 1e-3

    def text(length: int) -> tuple[int, ...]:
        drafter = point_draft(Draft.chain([1, 2, 3, 1, 2, 3][:length]))
        config = SessionConfig(draft_length=length)
        session = DecodeSession(TableTarget(12, looping), drafter, [1, 2, 3], params, config)
        list(session)
        return session.output

    assert text(0) == text(6)
    assert text(0)[:3] != (1, 2, 3)


def test_f6_masked_ids_lose_their_mass_before_the_ratio() -> None:
    params = SamplingParams(temperature=1.0, logit_bias=((0, -torch.inf), (3, -torch.inf)))
    logits = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log()
    p = distribution(penalise(logits, (), [()], params), params)
    torch.testing.assert_close(p, torch.tensor([[0, 2 / 3, 1 / 3, 0]]))


def test_a_bias_outside_the_vocabulary_is_named() -> None:
    with pytest.raises(ConfigError, match=r"token 99; the vocabulary ends at 39"):
        penalise(LOGITS, (), [()] * 5, SamplingParams(logit_bias=((99, 1.0),)))


@pytest.mark.parametrize("poison", [torch.nan, torch.inf])
def test_b3_a_bad_row_stops_the_run_and_names_round_and_position(poison: float) -> None:
    healthy = copier(6, 2)

    def logits(tokens: tuple[int, ...]) -> torch.Tensor:
        row = torch.as_tensor(healthy.logits(tokens)).clone()
        if len(tokens) > 8:
            row[3] = poison
        return row

    session = DecodeSession(
        TableTarget(6, logits),
        point_draft(Draft.chain([1, 2])),
        [1, 2],
        SamplingParams(max_tokens=50),
        SessionConfig(draft_length=2),
    )
    with pytest.raises(NumericsError, match=r"round 3, row 0, which continues text position 8"):
        list(session)
    assert len(session.rounds) == 3  # what came before stays


def test_b3_nan_in_q_is_an_error_too() -> None:
    with pytest.raises(NumericsError, match="q of toy"):
        check_rows(torch.tensor([[0.5, torch.nan]]), "q of toy", 0, 1)


def test_a_model_whose_every_token_is_impossible_is_an_error() -> None:
    with pytest.raises(NumericsError):
        DecodeSession(fixed([0.0, 0.0]), point_draft(Draft((), ())), [0]).step()
