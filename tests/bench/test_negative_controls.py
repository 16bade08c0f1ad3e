"""The meter tells good drafters from worthless ones: what must collapse collapses."""

import torch

from specviz.config import DrafterOptions, SamplingParams, SessionConfig
from specviz.drafters.base import Context, Drafter, Proposal
from specviz.drafters.draft_model import DraftModelDrafter
from specviz.events import Draft
from specviz.metrics import Summary, alarms, judge, summarise
from specviz.session import DecodeSession
from tests.stubs import TableTarget, copier

PERIOD, D = 23, 4


class Shifted:
    """Drafts what is right one position later: as a head does whose labels were off by one."""

    name = "draft_model"

    def __init__(self, exact: Drafter) -> None:
        self._exact = exact

    def propose(self, context: Context, budget: int) -> Proposal:
        found = self._exact.propose(context, budget + 1)
        return Proposal(Draft.chain(found.draft.tokens[1:]))


def measured(target: TableTarget, shift: bool) -> tuple[Summary, set[str]]:
    """Decode with a draft model that is the target itself."""
    options = DrafterOptions(draft_sampled=False)
    exact = DraftModelDrafter(target.fork(0), target.config.vocab, options)
    prompt = torch.randperm(60, generator=torch.Generator().manual_seed(0))[:PERIOD].tolist()
    session = DecodeSession(
        target,
        Shifted(exact) if shift else exact,
        prompt,
        SamplingParams(max_tokens=120),
        SessionConfig(scheme="draft_model", draft_length=D),
    )
    rounds = list(session)
    return summarise(rounds), {alarm.kind for alarm in alarms(rounds)}


def test_a16_a_drafter_that_is_the_target_is_always_right_and_shifted_by_one_never() -> None:
    exact, said = measured(copier(60, PERIOD), shift=False)
    assert exact.acceptance_length == D + 1
    assert "dead" not in said
    shifted, said = measured(copier(60, PERIOD), shift=True)
    assert shifted.acceptance_length == 1
    assert "dead" in said


def test_b4_counts_of_many_runs_raise_the_alarm_that_their_rounds_raise() -> None:
    shifted, said = measured(copier(60, PERIOD), shift=True)
    assert {alarm.kind for alarm in judge(shifted)} == said - {"busy"}
