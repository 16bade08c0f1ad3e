"""Drafting as on a GPU, on a CPU: the chains, draws and features of the usual way."""

import pytest
import torch
from torch import Tensor

from specviz.config import DrafterOptions, SamplingParams, SessionConfig
from specviz.drafters import make_drafter
from specviz.drafters.eagle3 import Eagle3Drafter
from specviz.drafters.mtp import MtpDrafter
from specviz.events import Round
from specviz.heads.choice import Choice, Text
from specviz.heads.dflash_cache import BlockDecoder
from specviz.models.tiny import tiny_llama
from specviz.session import DecodeSession
from specviz.train.eagle3 import Eagle3Shape, make_eagle3
from specviz.train.fresh_block import BlockShape, make_block_head
from specviz.train.mtp import make_mtp
from specviz.train.tables import LlamaDonor, Tables
from specviz.verify.draws import Draws

PROMPT = [1 + 7 * i % 50 for i in range(60)]  # more rows than one pass of a chain has


def rounds(
    scheme: str, params: SamplingParams, *, on_device: bool, tree: bool = False
) -> list[Round]:
    """Decode with a fresh head; `on_device` drafts as on a GPU."""
    torch.manual_seed(0)
    target = tiny_llama(family="llama")
    donor, tables, ids = LlamaDonor(target), Tables.of(target), torch.arange(0, 40, 2)
    if scheme == "eagle3":
        head = make_eagle3(donor, tables, ids, (0, 1, 2), Eagle3Shape())
    else:
        head = make_mtp(donor, tables, ids, target.config.layers, trained=4)
    options = DrafterOptions(tree_depth=3, tree_top_k=2) if tree else DrafterOptions()
    config = SessionConfig(scheme=scheme, draft_length=4, options=options)
    drafter = make_drafter(config, target, draft=head)
    assert isinstance(drafter, Eagle3Drafter | MtpDrafter)
    assert drafter._runner.on_device is None
    if on_device:
        drafter._runner.on_device = drafter._runner.device_rows()
    session = DecodeSession(target.with_taps(head.taps), drafter, PROMPT, params, config)
    found = [session.step() for _ in range(6)]
    session.rewind(2)
    again = [session.step() for _ in range(2)]
    assert [r.draft for r in again] == [r.draft for r in found[2:4]]
    return found


PARAMS = {
    "greedy": SamplingParams(max_tokens=40, ignore_eos=True),
    "drawn": SamplingParams(temperature=0.9, top_p=0.9, seed=3, max_tokens=40, ignore_eos=True),
}


@pytest.mark.parametrize("name", list(PARAMS))
@pytest.mark.parametrize("scheme", ["eagle3", "mtp"])
def test_a_chain_drafted_at_once_is_the_chain_drafted_row_by_row(scheme: str, name: str) -> None:
    usual = rounds(scheme, PARAMS[name], on_device=False)
    other = rounds(scheme, PARAMS[name], on_device=True)
    assert [r.draft for r in other] == [r.draft for r in usual]
    assert [r.committed for r in other] == [r.committed for r in usual]
    for mine, theirs in zip(other, usual, strict=True):
        assert mine.evidence.passes == theirs.evidence.passes
        assert mine.evidence.caught_up == theirs.evidence.caught_up
        assert mine.evidence.scores == pytest.approx(theirs.evidence.scores, rel=1e-4)


def test_a_tree_grows_from_true_rows_that_were_read_on_the_device() -> None:
    usual = rounds("eagle3", PARAMS["greedy"], on_device=False, tree=True)
    other = rounds("eagle3", PARAMS["greedy"], on_device=True, tree=True)
    assert any(not r.draft.is_chain for r in usual)
    assert [r.draft for r in other] == [r.draft for r in usual]


@pytest.mark.parametrize("ids", [None, torch.tensor([1, 5, 6, 30])], ids=["all", "some"])
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_a_token_chosen_on_the_device_is_the_hosts(temperature: float, ids: Tensor | None) -> None:
    params = SamplingParams(temperature=temperature, top_k=12, top_p=0.9, seed=1)
    choice = Choice(40, ids, DrafterOptions())
    rule = choice.device_rule(params)
    assert rule is not None
    for seed in range(50):
        logits = 2 * torch.randn(40 if ids is None else 4, generator=torch.manual_seed(seed))
        text = Text(tokens=(1, 2), prompt_length=1, params=params, draws=Draws(seed))
        host = choice.choose(logits, text, ())
        uniform = torch.tensor(text.draws.uniform(2, "draft"), dtype=torch.float64)
        here = rule.choose(logits, uniform)
        assert here.numbers.tolist() == pytest.approx([host.token, host.score, host.best])
        assert int(here.token) == host.token
        assert (here.q is None) == (host.q is None)
        if here.q is not None and host.q is not None:
            assert torch.equal(here.q, host.q)


def test_penalties_are_left_to_the_usual_way() -> None:
    params = SamplingParams(temperature=1.0, repetition_penalty=1.3)
    assert Choice(40, None, DrafterOptions()).device_rule(params) is None


@pytest.mark.parametrize("rank", [None, 4], ids=["dflash", "dspark"])
def test_a_block_run_as_on_a_gpu_is_the_block_run_op_by_op(rank: int | None) -> None:
    torch.manual_seed(0)
    target = tiny_llama(family="llama")
    donor, tables, ids = LlamaDonor(target), Tables.of(target), torch.arange(0, 40, 2)
    head = make_block_head(donor, tables, ids, (0, 2), BlockShape(rank=rank, mask_token=3))
    usual, other = BlockDecoder(head, target), BlockDecoder(head, target)
    other.on_device = other.device_block()
    assert usual.on_device is None
    assert other.on_device is not None
    for length, anchor in ((250, 5), (3, 3), (9, 7)):  # the cache grows on the way
        features = torch.randn(length, 2, target.config.hidden)
        for decoder in (usual, other):
            decoder.read(features)
        for rows in (2, 5):
            torch.testing.assert_close(other.block(anchor, rows), usual.block(anchor, rows))
