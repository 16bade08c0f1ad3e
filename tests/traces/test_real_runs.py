"""What a session records is a consistent trace, and its decisions can be made again from it."""

import pytest

from specviz.config import SamplingParams, SessionConfig
from specviz.events import Draft
from specviz.metrics import summarise
from specviz.session import DecodeSession
from specviz.traces.codec import decode, encode
from specviz.traces.schema import Trace, shown_tokens
from specviz.traces.store import load, to_json
from specviz.traces.timeline import committed_cells, micro_steps
from tests.stubs import TableTarget, drawn_chain, point_draft, random_table
from tests.traces.samples import trace_of

VOCAB = 7
TREE = Draft((1, 2, 3, 4, 5, 6), (-1, -1, 0, 1, 1, 3))
DRAFTERS = {
    "chain": lambda: point_draft(Draft.chain([1, 2, 3, 4])),
    "tree": lambda: point_draft(TREE),
    "drawn": lambda: drawn_chain([1 / VOCAB] * VOCAB),
    "nothing": lambda: point_draft(Draft((), ())),
}
SETTINGS = {
    "greedy": SamplingParams(max_tokens=40),
    "sampled": SamplingParams(temperature=1.0, max_tokens=40, seed=4),
    "top-k": SamplingParams(temperature=0.7, top_k=2, max_tokens=41, seed=5),
    "biased": SamplingParams(
        temperature=1.0,
        max_tokens=17,
        logit_bias=((2, float("-inf")),),
        frequency_penalty=0.5,
        stop_ids=(3,),
    ),
}


def record(drafter, params, config):
    session = DecodeSession(random_table(VOCAB), drafter, (1, 2), params, config)
    list(session)
    return session, trace_of(
        tuple(session.rounds),
        session.prompt,
        params=params,
        config=config,
        finish=session.finish,
        lossless=None,
    )


@pytest.mark.parametrize("drafter", DRAFTERS)
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("detail", ["off", "light", "full"])
def test_every_run_can_be_saved_and_comes_back(drafter, settings, detail):
    config = SessionConfig(draft_length=6, detail=detail)
    session, trace = record(DRAFTERS[drafter](), SETTINGS[settings], config)
    loaded = load(to_json(trace).encode())
    assert loaded.output == session.output
    assert [r.checks for r in loaded.rounds] == [r.checks for r in session.rounds]
    assert [r.fates for r in loaded.rounds] == [r.fates for r in session.rounds]
    assert summarise(loaded.rounds).output_tokens == len(session.output)
    assert [cell.token for cell in committed_cells(loaded.rounds)] == list(session.output)
    assert decode(Trace, encode(loaded)) == loaded


@pytest.mark.parametrize("drafter", ["chain", "drawn"])
def test_block_verification_is_recorded_consistently(drafter):
    config = SessionConfig(draft_length=4, verifier="block")
    session, trace = record(DRAFTERS[drafter](), SETTINGS["sampled"], config)
    assert load(to_json(trace).encode()).output == session.output


def test_g1_g3_cut_at_every_place_of_a_draft():
    def logits(tokens):
        return [5.0 if t == (tokens[-1] + 1) % 8 else 0.0 for t in range(8)]

    for end in range(8):
        target = TableTarget(8, logits, eos=(end,))
        drafter = point_draft(Draft.chain([1, 2, 3, 4, 5]))
        session = DecodeSession(target, drafter, (0,), config=SessionConfig(draft_length=5))
        list(session)
        trace = trace_of(tuple(session.rounds), (0,), finish=session.finish, lossless=None)
        s = summarise(load(to_json(trace).encode()).rounds)
        assert s.output_tokens == (end or 8)
        assert s.output_tokens == s.accepted + s.rounds - s.cut
        assert s.past_end == max(0, 5 - end) * (end > 0)


def test_a_forced_token_is_recorded_as_the_readers_own():
    params = SamplingParams(max_tokens=5)
    session = DecodeSession(random_table(VOCAB), DRAFTERS["chain"](), (1, 2), params)
    session.step(forced=6)
    list(session)
    trace = trace_of(tuple(session.rounds), (1, 2), params=params, lossless=None)
    loaded = load(to_json(trace).encode())
    assert loaded.output[0] == 6
    assert committed_cells(loaded.rounds)[0].kind == "forced"
    assert [step.kind for step in micro_steps(loaded.rounds[0])] == ["score", "last"]
    assert shown_tokens((), loaded.rounds) <= loaded.pieces.keys()
