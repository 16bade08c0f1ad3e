"""What peers call acceptance, each computed on the same rounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from specviz.events import Round
from specviz.metrics.summary import ratio, summarise
from specviz.words import _


@dataclass(frozen=True, slots=True)
class Definition:
    """One peer's number; a tuple has one value per draft position."""

    peer: str
    name: str  # the peer's own word, never translated
    formula: str
    value: float | tuple[float | None, ...] | None


def definitions(rounds: Sequence[Round]) -> tuple[Definition, ...]:
    """Compute every convention on `rounds`, ours first (EAGLE#195, vllm#11552)."""
    s = summarise(rounds)
    lengths = [r.acceptance_length for r in rounds]
    rows: tuple[tuple[str, str, str, float | tuple[float | None, ...] | None], ...] = (
        ("specviz", _("acceptance length"), _("output tokens / rounds"), s.acceptance_length),
        ("specviz", _("acceptance rate"), _("accepted / drafted"), s.acceptance_rate),
        ("EAGLE UI", "compression ratio", _("new tokens / target passes"), s.acceptance_length),
        ("EAGLE#195", "accept rate", _("1 + accepted / rounds"), _plus_one(s.accepted, s.rounds)),
        ("NeMo", "acceptance length", _("1 + accepted / rounds"), _plus_one(s.accepted, s.rounds)),
        (
            "vLLM",
            "Mean acceptance length",
            _("1 + accepted / rounds with a proposal"),
            _plus_one(s.accepted, s.proposing),
        ),
        ("vLLM", "Avg Draft acceptance rate", _("accepted / drafted"), s.acceptance_rate),
        (
            "vLLM",
            "Per-position acceptance rate",
            _("accepted at i / rounds with a proposal"),
            tuple(n / s.proposing for n in s.survived[1:]),
        ),
        (
            "SGLang",
            "spec_accept_rate",
            _("accepted / budget, over all rounds"),
            ratio(s.accepted, sum(r.budget for r in rounds)),
        ),
        (
            "Spec-Bench",
            "#mean accepted tokens",
            _("mean of committed tokens per round"),
            fmean(lengths) if lengths else None,
        ),
        (
            "DeepSpec",
            "verify_rate",
            _("output tokens / (drafted + rounds)"),
            ratio(s.output_tokens, s.drafted + s.rounds),
        ),
        (
            "DeepSpec",
            "accept_rate@i",
            _("accepted at i / rounds that drafted i"),
            s.per_position_proposed,
        ),
        (
            "DSpark",
            "conditional acceptance",
            _("accepted at i / accepted at i - 1"),
            s.conditional,
        ),
        ("llama.cpp", "acc per pos", _("accepted at i / rounds"), s.per_position),
        (
            "LM Studio",
            "accepted / predicted",
            _("accepted / output tokens"),
            ratio(s.accepted, s.output_tokens),
        ),
    )
    return tuple(Definition(*row) for row in rows)


def _plus_one(accepted: int, rounds: int) -> float | None:
    return 1 + accepted / rounds if rounds else None
