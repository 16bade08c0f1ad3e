"""What the one launch decides reads as the session's own verdict, check by check."""

import pytest
import torch

from kernels.checks.verify import BUSHY, DEEP, Scene
from kernels.verify_tree import Sampling
from specviz.config import SamplingParams
from specviz.events import Draft
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
