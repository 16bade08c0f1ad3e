"""Reading a long prompt can be stopped between pieces, and what comes after is the same."""

import pytest
import torch

from specviz.cancel import cancellable, check_cancelled
from specviz.config import DrafterOptions, SamplingParams
from specviz.drafters import block
from specviz.drafters.base import Context
from specviz.drafters.dflash import DFlashDrafter
from specviz.drafters.draft_model import DraftModelDrafter
from specviz.drafters.eagle3 import Eagle3Drafter
from specviz.drafters.none import PlainDrafter
from specviz.errors import Cancelled
from specviz.events import EMPTY
from specviz.heads import runner
from specviz.models import llama
from specviz.models.tiny import tiny_llama
from specviz.session import DecodeSession
from specviz.verify.draws import Draws
from tests.heads.block_heads import context as block_context
from tests.heads.block_heads import tiny_dflash, tiny_target
from tests.heads.random_heads import eagle3_head, features_of, random_text, target_for

OPTIONS = DrafterOptions()


def at_question(number):
    """Say yes from the given question on: 0 is the first."""
    answers = iter([False] * number)
    return lambda: next(answers, True)


def plain_context(tokens, features=None):
    return Context(tokens, 3, SamplingParams(), Draws(0), features)


def draft_model():
    text = random_text(40)
    return DraftModelDrafter(tiny_llama(), 64, OPTIONS), plain_context(text)


def eagle3():
    head, text = eagle3_head(), random_text(40)
    target = target_for(head)
    return Eagle3Drafter(head, target, OPTIONS), plain_context(text, features_of(target, text))


def dflash():
    target = tiny_target()
    return DFlashDrafter(tiny_dflash(), target, OPTIONS), block_context(target)


def test_nobody_is_stopped_who_was_not_asked():
    check_cancelled()
    with cancellable(lambda: False):
        check_cancelled()
    with cancellable(lambda: True), pytest.raises(Cancelled):
        check_cancelled()
    check_cancelled()


def test_a_session_is_stopped_between_the_pieces_of_its_prompt(monkeypatch):
    monkeypatch.setattr(llama, "PIECE", 8)
    target, text = tiny_llama(), random_text(40)
    with cancellable(at_question(2)), pytest.raises(Cancelled):
        DecodeSession(target, PlainDrafter(), text)
    assert target.length == 16
    session = DecodeSession(target, PlainDrafter(), text)
    assert session.target.length == 39
    list(session)
    again = DecodeSession(tiny_llama(), PlainDrafter(), text)
    list(again)
    assert session.output == again.output


@pytest.mark.parametrize("make", [draft_model, eagle3, dflash])
def test_a_drafter_stopped_while_it_reads_drafts_the_same_afterwards(make, monkeypatch):
    for module in (llama, runner, block):
        monkeypatch.setattr(module, "PIECE", 4)
    drafter, context = make()
    expected = make()[0].propose(context, 3)
    for question in (0, 1):
        with cancellable(at_question(question)), pytest.raises(Cancelled):
            drafter.propose(context, 3)
    found = drafter.propose(context, 3)
    assert found.draft == expected.draft
    assert len(found.draft) > 0
    assert found.evidence.scores == expected.evidence.scores


@pytest.mark.parametrize("make", [draft_model, eagle3, dflash])
def test_pieces_change_no_draft(make, monkeypatch):
    drafter, context = make()
    whole = drafter.propose(context, 3)
    for module in (llama, runner, block):
        monkeypatch.setattr(module, "PIECE", 4)
    pieces = make()[0].propose(context, 3)
    assert pieces.draft == whole.draft
    assert pieces.evidence.scores == pytest.approx(whole.evidence.scores, rel=1e-4)


def test_pieces_change_no_logits(monkeypatch):
    rows = []
    for piece in (512, 8):
        monkeypatch.setattr(llama, "PIECE", piece)
        target = tiny_llama()
        target.prefill(random_text(40))
        rows.append(target.score(7, EMPTY))
    torch.testing.assert_close(rows[0], rows[1], atol=1e-5, rtol=1e-5)


def test_a_round_stopped_while_its_drafter_reads_is_no_round(monkeypatch):
    monkeypatch.setattr(llama, "PIECE", 8)
    text, params = random_text(40), SamplingParams(max_tokens=8)
    session = DecodeSession(tiny_llama(), draft_model()[0], text, params)
    with cancellable(at_question(2)), pytest.raises(Cancelled):
        session.step()
    assert (session.rounds, session.target.length) == ([], 39)
    list(session)
    plain = DecodeSession(tiny_llama(), PlainDrafter(), text, params)
    list(plain)
    assert session.output == plain.output
