"""Heads behind the page: runs, refusals and branches of the engine."""

import pytest

from tests.cli.folders import write_model
from tests.heads_on_disk import LAYERS, LAYOUTS, write_head
from tests.pages.conftest import settled


@pytest.fixture(scope="module")
def deep(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("models") / "deep", layers=LAYERS)


@pytest.fixture(scope="module")
def heads(tmp_path_factory):
    folder = tmp_path_factory.mktemp("heads")
    return {scheme: str(write_head(scheme, folder / scheme)) for scheme in LAYOUTS}


@pytest.mark.parametrize("scheme", LAYOUTS)
def test_a_head_drafts_and_the_text_is_that_of_plain_decoding(engine, order, deep, heads, scheme):
    run = settled(engine.start(order(scheme=scheme, head=heads[scheme], spec=deep, check=100)))
    assert run.failure is None
    assert not run.notice
    assert run.trace().lossless.kind == "identical"
    assert run.trace().draft.name == scheme
    assert sum(len(event.draft) for event in run.rounds) > 0


def test_b10_a_head_of_another_scheme_leaves_a_plain_run_that_says_so(engine, order, deep, heads):
    run = settled(engine.start(order(scheme="mtp", head=heads["dflash"], spec=deep)))
    assert run.status == "done"
    assert "dflash is a head for dflash" in run.notice
    assert {event.scheme for event in run.rounds} == {"none"}


def test_a_scheme_without_its_head_leaves_a_plain_run_that_says_so(engine, order, deep):
    run = settled(engine.start(order(scheme="eagle3", spec=deep)))
    assert run.status == "done"
    assert "needs a head" in run.notice


def test_a_branch_may_change_to_a_head_and_back(engine, order, deep, heads):
    trunk = settled(engine.start(order(spec=deep)))
    with_head = order(scheme="dflash", head=heads["dflash"], spec=deep)
    branch = settled(engine.branch(trunk, 3, with_head))
    assert branch.failure is None
    assert {event.scheme for event in branch.rounds[3:]} == {"dflash"}
    assert branch.trace().output == trunk.trace().output
    back = settled(engine.branch(branch, 5, order(spec=deep)))
    assert back.failure is None
    assert back.trace().output == trunk.trace().output
