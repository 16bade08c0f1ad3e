from dataclasses import replace

import pytest

from specviz.bench.runner import (
    Request,
    check_lossless,
    decode,
    encode,
    open_session,
    run,
    to_trace,
)
from specviz.config import SamplingParams, SessionConfig
from specviz.errors import ConfigError, PromptError
from specviz.models.load import Loaded

REQUEST = Request(
    prompt="abcabcabc",
    params=SamplingParams(max_tokens=20, ignore_eos=True),
    config=SessionConfig(scheme="ngram", draft_length=4),
    title="abc",
)


def test_an_empty_prompt_is_refused(loaded: Loaded) -> None:
    for prompt in ("", "  \n"):
        with pytest.raises(PromptError, match="empty"):
            open_session(loaded, replace(REQUEST, prompt=prompt))


def test_a_prompt_that_fills_the_context_is_refused_with_both_numbers(loaded: Loaded) -> None:
    with pytest.raises(PromptError, match=r"1024 tokens.*1024"):
        open_session(loaded, replace(REQUEST, prompt="a" * 1024, chat=False))
    assert len(encode(loaded, replace(REQUEST, prompt="a" * 1023, chat=False))) == 1023


def test_a_draft_model_must_be_given_for_its_scheme(loaded: Loaded) -> None:
    config = replace(REQUEST.config, scheme="draft_model")
    with pytest.raises(ConfigError, match="draft model"):
        open_session(loaded, replace(REQUEST, config=config))


def test_two_sessions_of_one_model_never_mix(loaded: Loaded) -> None:
    alone = run(loaded, REQUEST).output
    a, b = open_session(loaded, REQUEST), open_session(loaded, replace(REQUEST, prompt="xyz"))
    while a.finish is None:
        a.step()
        if b.finish is None:
            b.step()
    assert a.output == alone


def test_a_trace_spells_every_token_it_mentions(loaded: Loaded) -> None:
    trace = run(loaded, REQUEST)
    mentioned = {*trace.prompt, *trace.output}
    mentioned |= {token for event in trace.rounds for token in event.draft.tokens}
    mentioned |= {c.token for event in trace.rounds for row in event.rows for c in row.top}
    assert mentioned <= trace.pieces.keys()
    assert all(trace.pieces[token] == loaded.tokenizer.piece(token) for token in mentioned)


def test_a_trace_says_where_and_how_it_was_made(loaded: Loaded) -> None:
    trace = run(loaded, REQUEST)
    assert trace.environment.device == "cpu"
    assert trace.environment.dtype == "float32"
    assert trace.environment.specviz
    assert trace.chat is True
    assert trace.title == "abc"
    assert trace.created.endswith("+00:00")
    assert trace.lossless is not None
    assert trace.lossless.kind == "identical"


def test_a_run_that_is_stopped_keeps_its_rounds_and_says_so(loaded: Loaded) -> None:
    trace = run(loaded, REQUEST, observe=lambda event: event.index < 1)
    assert len(trace.rounds) == 2
    assert trace.finish is not None
    assert trace.finish.reason == "cancelled"


def test_a_long_output_is_not_replayed_unasked(loaded: Loaded) -> None:
    session = open_session(loaded, REQUEST)
    decode(session)
    assert check_lossless(session, 19).kind == "not-run"
    assert check_lossless(session, 20).kind == "identical"


def test_a_session_half_way_makes_a_trace_without_an_end(loaded: Loaded) -> None:
    session = open_session(loaded, REQUEST)
    session.step()
    trace = to_trace(session, loaded, REQUEST, run_id="one")
    assert trace.run_id == "one"
    assert trace.finish is None
    assert len(trace.rounds) == 1
