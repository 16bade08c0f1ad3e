"""Greedy output is the target's own, whatever drafted and verified it; and how we would know."""

from collections.abc import Callable

import pytest
import torch

from specviz.config import DrafterOptions, SamplingParams, SessionConfig
from specviz.drafters import make_drafter
from specviz.drafters.base import Context, Drafter, Proposal
from specviz.drafters.draft_model import DraftModelDrafter
from specviz.drafters.none import PlainDrafter
from specviz.errors import ConfigError
from specviz.events import Draft
from specviz.lossless import TOLERANCE, replay_plain
from specviz.models.llama import LlamaTarget
from specviz.models.target import Target
from specviz.models.tiny import perturb, tiny_llama
from specviz.session import DecodeSession
from specviz.verify import Verdict
from specviz.verify.greedy import verify_greedy
from tests.stubs import ScriptedDrafter, TableTarget, copier, point_draft, random_table

PROMPT = (1, 2, 3, 1, 2)
LENGTH = 40

TARGETS: dict[str, Callable[[], Target]] = {
    "table": random_table,
    "copier": lambda: copier(7, 3),
    "llama": lambda: tiny_llama(vocab=16),
    "sliding window": lambda: tiny_llama(vocab=16, family="mistral"),
}
POINT_TREE = Draft((1, 2, 3, 1, 2, 3), (-1, -1, 0, 1, 2, 2))


def scheme(name: str) -> Callable[[Target], Drafter]:
    return lambda target: make_drafter(SessionConfig(scheme=name), target)


def drafting_model(target: Target) -> Drafter:
    twin = target if isinstance(target, TableTarget) else perturb(target, 0.05)
    return DraftModelDrafter(twin.fork(0), target.config.vocab, DrafterOptions(), frozenset())


DRAFTERS: dict[str, Callable[[Target], Drafter]] = {
    "none": scheme("none"),
    "ngram": scheme("ngram"),
    "suffix": scheme("suffix"),
    "draft_model": drafting_model,
    "point chain": lambda target: point_draft(Draft.chain([1, 2, 3, 1, 2, 3])),
    "point tree": lambda target: point_draft(POINT_TREE),
}
TREES = {"point tree"}


def plain(target: Target, length: int = LENGTH) -> tuple[int, ...]:
    """The target's own greedy text by fresh passes over the whole prefix: no session, no cache."""
    tokens = list(PROMPT)
    for _ in range(length):
        fresh = target.fork(0)
        fresh.prefill(tokens[:-1])
        tokens.append(int(fresh.score(tokens[-1], Draft((), ()))[0].argmax()))
    return tuple(tokens[len(PROMPT) :])


@pytest.fixture(scope="module", params=TARGETS)
def model(request: pytest.FixtureRequest) -> tuple[Target, tuple[int, ...]]:
    target = TARGETS[request.param]()
    return target, plain(target)


PAIRS = [
    (name, verifier)
    for name in DRAFTERS
    for verifier in ("greedy", "sampled", "block")
    if not (verifier == "block" and name in TREES)  # defined for chains alone
]


@pytest.mark.parametrize(("name", "verifier"), PAIRS)
def test_greedy_output_is_the_targets_own_for_every_drafter_and_verifier(
    model: tuple[Target, tuple[int, ...]], name: str, verifier: str
) -> None:
    target, expected = model
    config = SessionConfig(draft_length=6, verifier=verifier)
    params = SamplingParams(max_tokens=LENGTH)
    session = DecodeSession(target, DRAFTERS[name](target), PROMPT, params, config)
    rounds = list(session)
    assert session.output == expected
    report = replay_plain(session)  # c8: the worst argmax gap is a number of every run
    assert (report.kind, report.compared, report.worst_gap) == ("identical", LENGTH, 0.0)
    session.rewind(3)
    assert [r.committed for r in session] == [r.committed for r in rounds[3:]]


def test_block_verification_refuses_a_tree() -> None:
    config = SessionConfig(draft_length=6, verifier="block")
    session = DecodeSession(random_table(), point_draft(POINT_TREE), PROMPT, None, config)
    with pytest.raises(ConfigError, match="defined for chains; this draft is a tree"):
        session.step()


def accepts_anything(draft: Draft, logits: torch.Tensor) -> Verdict:
    """The mutant: keeps the first drafted path without asking the target."""
    right = verify_greedy(draft, logits)
    return Verdict(tuple(range(len(draft))), right.last_token, right.checks, 1.0)


def test_b14_acceptance_that_bypasses_the_target_is_called_a_bug(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("specviz.session.verify_greedy", accepts_anything)
    target = random_table()
    drafter = point_draft(Draft.chain([1, 2, 3]))
    session = DecodeSession(target, drafter, PROMPT, SamplingParams(max_tokens=12))
    list(session)
    report = replay_plain(session)
    assert report.kind == "BUG"
    assert report.first_divergence is not None
    assert session.output[: report.first_divergence] == plain(target)[: report.first_divergence]
    assert report.plain_token == plain(target)[report.first_divergence]
    assert report.token == session.output[report.first_divergence]
    assert report.margin > report.tolerance
    assert report.worst_gap >= report.margin


def test_b14_a_drafter_of_nonsense_changes_nothing() -> None:
    target = tiny_llama(vocab=16)
    permuted = ScriptedDrafter(
        lambda c, b: Proposal(Draft.chain((7 * t + 3) % 16 for t in c.tokens[-b:]))
    )
    session = DecodeSession(target, permuted, PROMPT, SamplingParams(max_tokens=LENGTH))
    list(session)
    assert replay_plain(session).kind == "identical"


def test_c2_a_tie_of_one_ulp_is_a_near_tie_and_not_a_bug() -> None:
    """The row a token is scored in decides the tie: batched rows round differently."""
    ulp = torch.nextafter(torch.tensor(5.0), torch.tensor(6.0))
    target = TableTarget(4, lambda tokens: torch.tensor([0.0, 5.0, 5.0, 1.0]))
    score = target.score

    def rounded(root: int, draft: Draft) -> torch.Tensor:
        rows = score(root, draft).clone()
        rows[:, 2 if len(draft) else 1] = ulp
        return rows

    target.score = rounded  # type: ignore[method-assign]
    target.fork = lambda length: target  # type: ignore[method-assign, assignment, return-value]
    drafter = point_draft(Draft.chain([2, 2]))
    session = DecodeSession(target, drafter, [0], SamplingParams(max_tokens=5))
    list(session)
    target.truncate(0)
    report = replay_plain(session)
    assert report.kind == "near-tie"
    assert (report.first_divergence, report.plain_token, report.token) == (0, 1, 2)
    assert 0 < report.margin < 1e-5


def test_c1_bf16_batches_and_single_rows_differ_by_less_than_the_tolerance() -> None:
    target = tiny_llama(vocab=64, dtype=torch.bfloat16, layers=4)
    tokens = torch.randint(64, (400,), generator=torch.Generator().manual_seed(5)).tolist()
    worst = 0.0
    for at in range(20, 380, 9):
        one, many = target.fork(0), target.fork(0)
        for model in (one, many):
            model.prefill(tokens[:at])
        batch = many.score(tokens[at], Draft.chain(tokens[at + 1 : at + 9]))
        for row in range(9):
            single = one.score(tokens[at + row], Draft((), ()))
            one.commit(())
            worst = max(worst, float((batch[row] - single[0]).abs().max()))
    assert worst < TOLERANCE[torch.bfloat16] / 2


def test_c5_greedy_never_accepts_a_sibling_that_is_not_the_argmax() -> None:
    target = TableTarget(2, lambda tokens: torch.tensor([0.51, 0.49]).log())
    for tree in (Draft((1, 0), (-1, -1)), Draft((0, 1), (-1, -1))):
        session = DecodeSession(target, point_draft(tree), [0], SamplingParams(max_tokens=8))
        list(session)
        assert session.output == (0,) * 8


@pytest.mark.parametrize("length", [16, 64, 256])
def test_c19_a_cache_that_grows_gives_what_no_cache_gives(length: int) -> None:
    target = tiny_llama(vocab=16)
    prompt = torch.randint(16, (length,), generator=torch.Generator().manual_seed(2)).tolist()
    session = DecodeSession(target, scheme("ngram")(target), prompt, SamplingParams(max_tokens=24))
    list(session)
    tokens = list(prompt)
    for _ in range(24):
        fresh = target.fork(0)
        fresh.prefill(tokens[:-1])
        tokens.append(int(fresh.score(tokens[-1], Draft((), ()))[0].argmax()))
    assert session.tokens == tuple(tokens)


def test_c4_two_runs_of_the_same_request_are_equal() -> None:
    def run() -> list[tuple[int, ...]]:
        target = tiny_llama(vocab=16)
        params = SamplingParams(max_tokens=30, temperature=0.8, seed=4)
        return [r.committed for r in DecodeSession(target, scheme("ngram")(target), PROMPT, params)]

    assert run() == run()


def test_a_sampled_run_is_timed_but_never_called_different() -> None:
    params = SamplingParams(max_tokens=10, temperature=1.0)
    session = DecodeSession(random_table(), PlainDrafter(), PROMPT, params)
    list(session)
    report = replay_plain(session)
    assert report.kind == "sampled"
    assert report.worst_gap is None
    assert report.plain_tpot > 0


def test_the_replay_can_be_stopped_and_says_how_far_it_came() -> None:
    session = DecodeSession(random_table(), PlainDrafter(), PROMPT, SamplingParams(max_tokens=10))
    list(session)
    answers = iter([False] * 4 + [True])
    assert replay_plain(session, lambda: next(answers)).compared == 4


@pytest.mark.parametrize("name", [n for n in DRAFTERS if n not in {"none"} | TREES])
def test_b13_every_scheme_accepts_something_on_a_copy_task(name: str) -> None:
    target = copier(8, 3)
    session = DecodeSession(
        target, DRAFTERS[name](target), (1, 2, 3, 1, 2, 3), SamplingParams(max_tokens=30)
    )
    rounds = list(session)
    assert len(session.output) / len(rounds) > 1.5


def test_b1_a_model_that_drafts_for_itself_is_always_accepted() -> None:
    target = tiny_llama(vocab=16)
    assert isinstance(target, LlamaTarget)
    drafter = DraftModelDrafter(target.fork(0), 16, DrafterOptions(), frozenset())
    session = DecodeSession(
        target, drafter, PROMPT, SamplingParams(max_tokens=41), SessionConfig(draft_length=4)
    )
    for round_ in list(session)[:-1]:
        assert round_.fates == ("accepted",) * 4
        assert round_.last_kind == "bonus"
        assert round_.acceptance_length == 5


def test_a_context_tells_a_drafter_no_more_than_what_is_committed() -> None:
    drafter = point_draft(Draft.chain([1, 2, 3]))
    session = DecodeSession(random_table(), drafter, PROMPT, SamplingParams(max_tokens=20))
    list(session)
    contexts: list[Context] = drafter.seen
    assert [c.tokens for c in contexts] == [session.tokens[: len(c.tokens)] for c in contexts]
    assert [len(c.tokens) for c in contexts] == [r.start for r in session.rounds[: len(contexts)]]
