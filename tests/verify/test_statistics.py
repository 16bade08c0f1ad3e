"""Losslessness in distribution: what is committed follows p, and broken rules are caught.

Every check is a chi-square test of whole outputs against exact probabilities at fixed seeds, so
it either always passes or always fails. The mutants at the end fail the very same check.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise, product

import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor

from specviz.config import SamplingParams, SessionConfig
from specviz.drafters.base import Context, Drafter, Proposal
from specviz.events import Draft
from specviz.session import DecodeSession
from specviz.verify import Verdict, sampled, verify_block
from specviz.verify.draws import Draws, pick
from specviz.verify.processors import distribution
from tests.stubs import ScriptedDrafter, TableTarget, drawn_chain, point_draft

# Case C7's hand-written table, and one that depends on the token before.
P = (0.5, 0.3, 0.15, 0.05)
Q = (0.1, 0.6, 0.2, 0.1)
FIXED = torch.tensor(P).repeat(4, 1)
MARKOV = torch.tensor([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7], [0.3, 0.4, 0.3]])
Q3 = (0.2, 0.3, 0.5)
D = 3
PARAMS = SamplingParams(temperature=1.0)
RULES = {"sampled": sampled.verify_sampled, "block": verify_block}

Decode = Callable[[int, int], tuple[int, ...]]  # seed, length -> output


def loop(table: Tensor, drafter: Drafter, rule: str = "sampled", *, fresh: bool = True) -> Decode:
    """The loop of a session without its records: table[t] is p after token t."""

    def decode(seed: int, length: int) -> tuple[int, ...]:
        tokens = [0]
        while len(tokens) <= length:
            start = len(tokens)
            draws = Draws(seed, start if rule == "block" and fresh else 0)
            proposal = drafter.propose(Context(tuple(tokens), 1, PARAMS, draws), D)
            draft = proposal.draft
            p = table[[tokens[-1], *draft.tokens]]
            verdict = RULES[rule](draft, proposal.probs, p, draws, start)
            tokens += [*(draft.tokens[i] for i in verdict.path), verdict.last_token]
        return tuple(tokens[1 : length + 1])

    return decode


def session(table: Tensor, drafter: Drafter, rule: str) -> Decode:
    """The real session, record and all."""
    target = TableTarget(len(table), lambda tokens: table[tokens[-1]].log())
    config = SessionConfig(draft_length=D, verifier=rule, detail="off")

    def decode(seed: int, length: int) -> tuple[int, ...]:
        params = SamplingParams(temperature=1.0, seed=seed, max_tokens=length + D)
        run = DecodeSession(target, drafter, [0], params, config)
        while len(run.output) < length:
            run.step()
        return run.output[:length]

    return decode


def fits(decode: Decode, table: Tensor, length: int, runs: int = 3000) -> float:
    """p-value of the outputs of many seeds against their exact probabilities."""
    exact = {}
    for text in product(range(len(table)), repeat=length):
        mass = 1.0
        for before, after in pairwise((0, *text)):
            mass *= float(table[before][after])
        exact[text] = mass
    seen = Counter(decode(seed, length) for seed in range(runs))
    observed = [seen[text] for text in exact]
    assert sum(observed) == runs  # nothing outside the support of p
    total = sum(exact.values())
    return float(chisquare(observed, [runs * mass / total for mass in exact.values()]).pvalue)


def siblings(q: Sequence[float], width: int) -> ScriptedDrafter:
    """Draws `width` siblings from q, with replacement, and a child under each."""
    row = torch.tensor(q)

    def make(context: Context, budget: int) -> Proposal:
        at = len(context.tokens)
        drawn = [pick(row, context.draws.uniform(at, "draft", i)) for i in range(width)]
        below = [pick(row, context.draws.uniform(at + 1, "draft", i)) for i in range(width)]
        draft = Draft((*drawn, *below), (*[-1] * width, *range(width)))
        return Proposal(draft, row.repeat(2 * width, 1))

    return ScriptedDrafter(make)


CHAINS = {
    "drawn chain": drawn_chain(Q3),
    "point chain": point_draft(Draft.chain([2, 1, 0])),
}
TREES = {
    "point tree": point_draft(Draft((0, 1, 2), (-1, -1, 0))),
    "drawn siblings": siblings(Q3, 2),
}


@pytest.mark.parametrize("name", [*CHAINS, *TREES])
def test_sampled_text_follows_the_target_over_several_rounds(name: str) -> None:
    assert fits(loop(MARKOV, (CHAINS | TREES)[name]), MARKOV, length=3) > 1e-3


@pytest.mark.parametrize("name", CHAINS)
def test_block_verified_text_follows_the_target_over_several_rounds(name: str) -> None:
    assert fits(loop(MARKOV, CHAINS[name], "block"), MARKOV, length=3) > 1e-3


@pytest.mark.parametrize("rule", RULES)
def test_a_whole_session_follows_the_target(rule: str) -> None:
    decode = session(MARKOV, CHAINS["drawn chain"], rule)
    assert fits(decode, MARKOV, length=2, runs=600) > 1e-3


def test_c7_first_token_of_hand_tables_follows_p() -> None:
    assert fits(loop(FIXED, drawn_chain(Q)), FIXED, length=1, runs=20_000) > 1e-3


def test_c12_candidates_that_share_prefixes_leave_the_distribution_alone() -> None:
    candidates = point_draft(Draft((0, 1, 2, 3, 1), (-1, 0, 0, 0, -1)))  # ab, ac, ad and e
    assert fits(loop(FIXED, candidates), FIXED, length=2) > 1e-3


def test_block_verification_accepts_more_than_token_by_token() -> None:
    q, rows = torch.tensor(Q3), 4

    def accepted(rule: str) -> int:
        total = 0
        for seed in range(1000):
            draws = Draws(seed)
            tokens = [pick(q, draws.uniform(i, "draft")) for i in range(1, 1 + rows)]
            p = MARKOV[[0, *tokens]]
            verdict = RULES[rule](Draft.chain(tokens), q.repeat(rows, 1), p, draws, 1)
            total += len(verdict.path)
        return total

    assert accepted("block") > accepted("sampled")


def test_a_rule_that_keeps_refused_mass_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampled, "residual", lambda p, q: p)
    assert fits(loop(FIXED, drawn_chain(Q)), FIXED, length=1) < 1e-9
    assert fits(loop(MARKOV, CHAINS["point chain"]), MARKOV, length=2) < 1e-9
    assert fits(loop(MARKOV, TREES["point tree"]), MARKOV, length=2) < 1e-9


def test_c7_a_rule_with_the_ratio_upside_down_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = sampled.verify_sampled

    def upside_down(draft: Draft, q: Tensor, p: Tensor, draws: Draws, position: int) -> Verdict:
        return right(draft, p[:-1], torch.cat([q, p[-1:]]), draws, position)

    monkeypatch.setitem(RULES, "sampled", upside_down)
    assert fits(loop(FIXED, drawn_chain(Q)), FIXED, length=1) < 1e-9


def test_block_verification_with_draws_shared_between_rounds_is_caught() -> None:
    decode = loop(MARKOV, CHAINS["point chain"], "block", fresh=False)
    assert fits(decode, MARKOV, length=3) < 1e-6


def test_draws_are_uniform_and_independent_of_each_other() -> None:
    purposes = ("draft", "accept", "sample")
    for purpose in purposes:
        values = [Draws(7).uniform(i, purpose) for i in range(4000)]
        counts = Counter(int(u * 20) for u in values)
        assert chisquare([counts[i] for i in range(20)]).pvalue > 1e-3
    pairs = Counter(
        (int(Draws(1).uniform(i, "draft") * 4), int(Draws(1).uniform(i, "accept") * 4))
        for i in range(8000)
    )
    assert chisquare([pairs[a, b] for a in range(4) for b in range(4)]).pvalue > 1e-3


def test_pick_never_draws_a_token_without_mass() -> None:
    probs = torch.tensor([0.0, 0.5, 0.0, 0.5, 0.0])
    for u in (0.0, 0.25, 0.5, 0.999999, 1 - 2**-53):
        assert probs[pick(probs, u)] > 0
    assert pick(torch.tensor([1.0, 0.0]), 0.0) == 0


def test_b8_a_point_draft_is_accepted_as_often_as_the_target_would_say_it() -> None:
    """At temperature 2 an argmax draft is accepted with probability p(draft), no less, no more."""
    logits = torch.tensor([[2.0, 1.0, 0.0, -1.0]])
    p = distribution(logits, SamplingParams(temperature=2.0)).repeat(2, 1)
    draft, runs = Draft.chain([0]), 4000
    accepted = sum(
        len(sampled.verify_sampled(draft, None, p, Draws(seed), 1).path) for seed in range(runs)
    )
    mean = float(p[0, 0])
    assert abs(accepted / runs - mean) < 4 * (mean * (1 - mean) / runs) ** 0.5
