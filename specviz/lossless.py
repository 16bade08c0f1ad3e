"""The lossless report: a run replayed through plain one-row passes on the same weights."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from statistics import mean

import torch

from specviz.config import SessionConfig
from specviz.drafters.none import PlainDrafter
from specviz.events import LosslessClass, LosslessReport
from specviz.session import DecodeSession

# Passes of different row counts may round differently; a margin below this is a near tie. It is
# twice the largest difference of one logit measured on SmolLM2-135M (LOG.md, "near ties"): two
# logits move. Chains come out in equal bits on CPUs with bf16 units, and tie more strictly there.
TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 1.0, torch.float16: 0.25}


@dataclass(slots=True)
class _Gaps:
    """Where plain decoding would have chosen otherwise, and by how much at most."""

    worst: float = 0.0
    first: LosslessReport | None = None

    def see(self, index: int, token: int, logits: torch.Tensor) -> None:
        best = int(logits.argmax())
        gap = float(logits[best] - logits[token])
        self.worst = max(self.worst, gap)
        if best != token and self.first is None:
            self.first = LosslessReport(
                "BUG",
                first_divergence=index,
                plain_token=best,
                token=token,
                plain_logit=float(logits[best]),
                token_logit=float(logits[token]),
            )


def replay_plain(
    session: DecodeSession,
    should_stop: Callable[[], bool] = lambda: False,
    turn: AbstractContextManager[object] | None = None,
) -> LosslessReport:
    """Compare a run's output with plain decoding of the same prompt, token by token.

    The output is forced through the plain loop, so its logits say at each position what plain
    decoding would have chosen there; up to the first difference that is its very text. The same
    pass times plain decoding: the mean over its tokens, keeping as much detail as the run did, so
    that the two compare. Sampled runs are only timed: their text may differ and be right.
    `should_stop` is asked and `turn` is entered before every token.
    """
    turn = turn or nullcontext()
    config = SessionConfig(scheme="none", draft_length=0, detail=session.config.detail)
    plain = session.fork(0, drafter=PlainDrafter(), config=config)
    gaps, seconds = _Gaps(), list[float]()
    for index, token in enumerate(session.output):
        if should_stop():
            break
        with turn:
            seconds.append(plain.step(forced=token).timing.total)
        assert plain.scored is not None
        gaps.see(index, token, plain.scored.logits[0])
    return _report(session, gaps, seconds)


def _report(session: DecodeSession, gaps: _Gaps, seconds: list[float]) -> LosslessReport:
    tolerance = TOLERANCE[session.target.dtype]
    tpot = mean(seconds) if seconds else None
    base = LosslessReport("sampled", compared=len(seconds), tolerance=tolerance, plain_tpot=tpot)
    if not session.params.greedy:
        return base
    if not seconds:
        return replace(base, kind="not-run")
    found = gaps.first or LosslessReport("identical")
    kind: LosslessClass = found.kind
    if found.margin is not None and found.margin < tolerance:
        kind = "near-tie"
    return replace(
        found,
        kind=kind,
        compared=len(seconds),
        worst_gap=gaps.worst,
        tolerance=tolerance,
        plain_tpot=tpot,
    )
