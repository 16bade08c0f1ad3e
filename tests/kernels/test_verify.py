"""The references of verification decide as the session does; the draws are Philox."""

import pytest
import torch
from torch import Tensor

from kernels.checks.verify import BUSHY, DEEP, SETTINGS, Scene
from kernels.errors import KernelError
from kernels.kv_keep import kv_keep
from kernels.uniform import uniform
from kernels.verify_chain import verify_chain
from kernels.verify_tree import Chance, Drafted, Sampling, draw_uniforms, verify_tree
from kernels.verify_tree.probs import target_probs
from specviz.config import SamplingParams
from specviz.events import ROOT, Draft
from specviz.verify import verify_greedy, verify_sampled
from specviz.verify.draws import Draws, Purpose
from specviz.verify.processors import distribution

CPU = torch.device("cpu")


class Given(Draws):
    """Draws of a session that come from a table instead: what the kernel was given."""

    __slots__ = ("accept", "sample")

    def uniform(self, position: int, purpose: Purpose, index: int = 0) -> float:
        table = self.accept if purpose == "accept" else self.sample
        return table[position, index]


def given(draft: Draft, uniforms: Tensor) -> Given:
    """Key the uniforms of nodes and rows by position, as a session asks for them.

    Rows of one depth share a position in a session, so they are made to share a number.
    """
    draws, nodes = Given(0), len(draft)
    depths = dict(enumerate(draft.depths))
    accept, sample = dict[tuple[int, int], float](), dict[tuple[int, int], float]()
    for parent in (ROOT, *range(nodes)):
        depth = 0 if parent == ROOT else depths[parent]
        uniforms[nodes + parent + 1] = sample.setdefault(
            (depth, 0), float(uniforms[nodes + parent + 1])
        )
        for sibling, child in enumerate(draft.children(parent)):
            uniforms[child] = accept.setdefault((depth, sibling), float(uniforms[child]))
    object.__setattr__(draws, "accept", accept)
    object.__setattr__(draws, "sample", sample)
    return draws


@pytest.mark.parametrize("point", [True, False], ids=["point", "drawn"])
@pytest.mark.parametrize("parents", [BUSHY, DEEP, ()], ids=["bushy", "chain", "empty"])
@pytest.mark.parametrize("name", [name for name in SETTINGS if name != "greedy"])
def test_the_reference_decides_as_the_session(
    name: str, parents: tuple[int, ...], point: bool
) -> None:
    sampling = SETTINGS[name]
    params = SamplingParams(
        temperature=sampling.temperature,
        top_k=sampling.top_k,
        top_p=sampling.top_p,
        min_p=sampling.min_p,
    )
    for seed in range(10):
        scene = Scene(parents=parents, sampling=sampling, point=point, vocab=300, seed=seed)
        logits, drafted = scene.make(CPU)
        draft = Draft(tuple(drafted.tokens.tolist()), parents)
        uniforms = draw_uniforms(drafted, Chance(seed=seed))
        draws = given(draft, uniforms)
        mine = verify_tree(logits, drafted, sampling, Chance(uniforms=uniforms))
        theirs = verify_sampled(draft, drafted.q, distribution(logits, params), draws, 0)
        assert tuple(mine.path[: int(mine.accepted)].tolist()) == theirs.path
        assert int(mine.token) == theirs.last_token
        row = theirs.path[-1] + 1 if theirs.path else 0
        assert float(mine.parts[len(draft) + row]) == pytest.approx(theirs.last_p)
        for check in theirs.checks:
            assert float(mine.parts[check.node]) == pytest.approx(check.p)


def test_greedy_is_the_sessions_greedy() -> None:
    for seed in range(20):
        scene = Scene(parents=BUSHY, sampling=Sampling(), point=True, vocab=40, seed=seed)
        logits, drafted = scene.make(CPU)
        mine = verify_tree(logits, drafted, Sampling(), Chance(seed=seed))
        theirs = verify_greedy(Draft(tuple(drafted.tokens.tolist()), BUSHY), logits)
        assert tuple(mine.path[: int(mine.accepted)].tolist()) == theirs.path
        assert int(mine.token) == theirs.last_token


@pytest.mark.parametrize("name", list(SETTINGS))
def test_p_of_the_reference_is_that_of_the_session(name: str) -> None:
    s = SETTINGS[name]
    params = SamplingParams(temperature=s.temperature, top_k=s.top_k, top_p=s.top_p, min_p=s.min_p)
    logits = 3 * torch.randn(5, 400, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(target_probs(logits, s), distribution(logits, params))


def test_draws_are_philox_4x32_10() -> None:
    """Known answers of Random123 for the counter and key 0, and for the digits of pi."""
    assert uniform(0, 0, "draft") == ((0x6627E8D5 >> 5 << 26) + (0xE169C58D >> 6)) / 2**53
    seen = {
        uniform(seed, position, purpose, sibling)
        for seed in (0, 1, 2**32)
        for position in range(4)
        for purpose in ("draft", "accept", "sample")
        for sibling in range(3)
    }
    assert len(seen) == 3 * 4 * 3 * 3
    assert all(0 <= u < 1 for u in seen)


def test_a_draw_depends_on_position_and_purpose_not_on_the_draft() -> None:
    def sample(nodes: int) -> float:
        parents = torch.arange(-1, nodes - 1, dtype=torch.int32)
        drafted = Drafted(tokens=torch.zeros(nodes, dtype=torch.long), parents=parents)
        return float(draw_uniforms(drafted, Chance(seed=9, position=50 - nodes))[-1])

    assert sample(0) == sample(3) == sample(8)  # all of position 50


def test_committed_tokens_follow_the_target() -> None:
    """Whatever drafted: the first committed token has the distribution p of the root."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(3, 8, generator=generator)
    sampling = Sampling(temperature=1.0)
    q = torch.randn(1, 8, generator=generator).softmax(-1).repeat(2, 1)
    parents = torch.tensor([-1, -1], dtype=torch.int32)
    counts, rounds = torch.zeros(8), 4000
    for seed in range(rounds):
        tokens = torch.multinomial(q, 1, generator=generator)[:, 0]
        drafted = Drafted(tokens=tokens, parents=parents, q=q)
        got = verify_tree(logits, drafted, sampling, Chance(seed=seed))
        first = tokens[int(got.path[0])] if int(got.accepted) else got.token
        counts[int(first)] += 1
    p = logits[0].softmax(-1)
    chi_squared = float(((counts - rounds * p) ** 2 / (rounds * p)).sum())
    assert chi_squared < 24.3  # 0.999 of 7 degrees of freedom


def test_a_cache_keeps_the_path_and_only_the_path() -> None:
    cache = torch.arange(20.0).view(1, 20, 1).repeat(2, 1, 3)
    path, accepted = torch.tensor([1, 4, 5, -1, -1, -1]), torch.tensor(3)
    kv_keep(cache, torch.tensor(7), path, accepted)
    assert cache[1, :, 2].tolist() == [*range(8), 9, 12, 13, *range(11, 20)]


def test_what_does_not_fit_is_refused_in_words() -> None:
    logits, tokens = torch.zeros(3, 8), torch.tensor([1, 2])
    with pytest.raises(KernelError, match="1 \\+ nodes rows"):
        verify_chain(logits[:2], tokens, Sampling(), Chance())
    with pytest.raises(KernelError, match=r"q is \(2, 7\); needed: \(2, 8\)"):
        verify_chain(logits, tokens, Sampling(), Chance(), q=torch.ones(2, 7))
    with pytest.raises(KernelError, match="4 uniforms; needed: 5"):
        verify_chain(logits, tokens, Sampling(), Chance(uniforms=torch.ones(4)))
    with pytest.raises(KernelError, match="top_p above 0 to 1"):
        Sampling(temperature=1.0, top_p=0.0)
    with pytest.raises(KernelError, match="allowed: auto, triton, reference"):
        verify_chain(logits, tokens, Sampling(), Chance(), backend="cuda")
    with pytest.raises(KernelError, match="2 to 5 dimensions"):
        kv_keep(torch.zeros(4), torch.tensor(0), tokens, torch.tensor(0))
