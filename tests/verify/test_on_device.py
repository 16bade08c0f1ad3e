"""What the one launch decides reads as the session's own verdict, check by check."""

import pytest
import torch

from kernels.checks.verify import BUSHY, DEEP, Scene
from kernels.verify_tree import Sampling
from specviz.config import SamplingParams, SessionConfig
from specviz.drafters import make_drafter
from specviz.errors import DraftError, NumericsError
from specviz.events import Draft
from specviz.models.tiny import tiny_llama
from specviz.session import DecodeSession
from specviz.verify import Verdict, verify_greedy, verify_sampled
from specviz.verify.draws import Draws
from specviz.verify.on_device import Place, verify_on_device
from specviz.verify.processors import distribution

PARAMS = {
    "greedy": SamplingParams(),
    "temperature": SamplingParams(temperature=1.0, seed=4),
    "all": SamplingParams(temperature=0.8, top_k=40, top_p=0.9, min_p=0.02, seed=9),
}


@pytest.mark.parametrize("point", [True, False], ids=["point", "drawn"])
@pytest.mark.parametrize("parents", [BUSHY, DEEP, ()], ids=["bushy", "chain", "empty"])
@pytest.mark.parametrize("name", list(PARAMS))
def test_it_is_the_sessions_verdict(name: str, parents: tuple[int, ...], point: bool) -> None:
    params = PARAMS[name]
    sampling = Sampling(temperature=params.temperature)
    for seed in range(8):
        scene = Scene(parents=parents, sampling=sampling, point=point, vocab=200, seed=seed)
        logits, drafted = scene.make(torch.device("cpu"))
        draft, draws = Draft(tuple(drafted.tokens.tolist()), parents), Draws(params.seed + seed)
        q = None if params.greedy else drafted.q
        mine = verify_on_device(draft, q, logits, params, Place(draws=draws, start=30))
        theirs = (
            verify_greedy(draft, logits)
            if params.greedy
            else verify_sampled(draft, q, distribution(logits, params), draws, 30)
        )
        assert rounded(mine) == rounded(theirs)


def rounded(verdict: Verdict) -> tuple[object, ...]:
    """A verdict with its probabilities to five digits."""

    def digits(value: float | None) -> float | None:
        return None if value is None else float(f"{value:.5g}")

    checks = [
        (c.node, digits(c.p), digits(c.q), digits(c.threshold), c.u, c.accepted)
        for c in verdict.checks
    ]
    return verdict.path, verdict.last_token, checks, digits(verdict.last_p), verdict.last_u


@pytest.mark.parametrize("penalty", [1.0, 1.2], ids=["plain", "penalised"])
@pytest.mark.parametrize("temperature", [0.0, 0.9], ids=["greedy", "drawn"])
def test_a_session_runs_as_on_a_gpu_round_by_round(
    temperature: float, penalty: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = SamplingParams(
        temperature=temperature, top_p=0.9, seed=2, repetition_penalty=penalty, max_tokens=40
    )

    def rounds() -> list[tuple[object, ...]]:
        config = SessionConfig(scheme="ngram", draft_length=4)
        target = tiny_llama(family="llama")
        session = DecodeSession(
            target, make_drafter(config, target), [1, 2, 3, 4] * 6, params, config
        )
        return [(r.draft, r.committed, r.path, r.last_kind, r.last_u) for r in session]

    usual = rounds()
    assert any(r[2] for r in usual) or temperature
    monkeypatch.setattr(DecodeSession, "_on_device", lambda self, rows: True)
    assert rounds() == usual


def test_what_the_host_would_refuse_the_verdict_refuses() -> None:
    place, draft = Place(Draws(0), 5, 3, "tiny", "liar"), Draft.chain([1])
    logits = torch.zeros(2, 8)
    q = torch.zeros(1, 8)
    q[0, 2] = 1.0
    with pytest.raises(DraftError, match="liar drew token 1, to which its q gives no mass"):
        verify_on_device(draft, q, logits, PARAMS["temperature"], place)
    logits[1, 4] = torch.nan
    with pytest.raises(NumericsError, match="logits of tiny holds NaN or Inf in round 3, row 1"):
        verify_on_device(draft, None, logits, PARAMS["temperature"], place)
