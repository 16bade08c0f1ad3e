"""`speculation_profile.json`, schema 1.0: acceptance by position as other tools exchange it.

Read and written with the field names of NVIDIA Model-Optimizer's specdec_bench, which Dynamo
(conditional rates) and vLLM's synthetic sampler (marginal rates) read.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from specviz.metrics.summary import summarise
from specviz.traces.schema import Trace

SCHEMA_VERSION = "1.0"
TOLERANCE = 0.02  # between the mean and 1 + the sum of the marginal rates, as the tools above have


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """What one drafter did at one D; rates of positions are shares of all rounds."""

    method: str
    draft_length: int
    marginal: tuple[float, ...]
    length: float  # tokens per round, the target's own included
    histogram: tuple[int, ...] = ()  # [a]: rounds that accepted exactly a
    extrapolates: bool = True  # a chain: a shorter draft is the beginning of a longer one


def profile(
    found: Acceptance,
    *,
    target: str | None = None,
    draft: str | None = None,
    conditions: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """Return the file's content. `conditions` say on what, with what and where it was measured."""
    marginal = [round(rate, 6) for rate in _padded(found.marginal, found.draft_length)]
    return {
        "schema_version": SCHEMA_VERSION,
        "measured": True,
        "method": found.method,
        "draft_checkpoint": draft,
        "target_model": target,
        "num_speculative_tokens": found.draft_length,
        "block_size": None,  # of training: a run does not know it
        "max_supported_k": found.draft_length,
        "verification_method": "longest_prefix",
        "conditional_accept_rates": [round(rate, 6) for rate in conditional(marginal)],
        "marginal_accept_rates": marginal,
        "mean_accept_length": round(found.length, 6),
        "accept_length_model": "chain_analytic" if found.extrapolates else "measured_per_k",
        "accept_length_by_k": {str(found.draft_length): round(found.length, 6)},
        # By the length of a round, which counts the target's own token: 1 is "nothing accepted".
        "acceptance_length_histogram": {str(a + 1): n for a, n in enumerate(found.histogram) if n}
        or None,
        "measurement_conditions": dict(conditions) if conditions else None,
        "validation": _validation(marginal, found.length),
    }


def of_trace(trace: Trace) -> str:
    """Return the profile of one run as JSON.

    The last round is cut where the output ended, so the mean may be a little under what the rates
    say; `validation` has by how much.
    """
    summary, config = summarise(trace.rounds), trace.config
    planned = config.scheme in ("dflash", "dspark") or config.options.tree_depth > 0
    found = Acceptance(
        method=config.scheme,
        draft_length=config.draft_length,
        marginal=summary.per_position,
        length=summary.acceptance_length or 1.0,
        histogram=summary.histogram,
        extrapolates=not planned,
    )
    conditions: dict[str, object] = {
        "created": trace.created,
        "temperature": trace.params.temperature,
        "num_prompts": 1,
        "rounds": summary.rounds,
        "output_tokens": summary.output_tokens,
        **asdict(trace.environment),
    }
    draft = trace.draft.name if trace.draft else None
    content = profile(found, target=trace.target.name, draft=draft, conditions=conditions)
    return json.dumps(content, indent=1, allow_nan=False)


def conditional(marginal: Sequence[float]) -> tuple[float, ...]:
    """P(k accepted) / P(k - 1 accepted); 0 behind the first position that never was."""
    before = (1.0, *marginal)
    return tuple(
        min(1.0, share / held) if held > 0 else 0.0
        for share, held in zip(marginal, before, strict=False)
    )


def _padded(rates: Sequence[float], length: int) -> list[float]:
    """Positions that no draft reached were never accepted."""
    return [*rates[:length], *[0.0] * (length - len(rates))]


def _validation(marginal: Sequence[float], length: float) -> dict[str, object]:
    implied = 1 + sum(marginal)
    rising = [i for i in range(1, len(marginal)) if marginal[i] > marginal[i - 1] + 1e-9]
    return {
        "mean_consistency": {
            "implied_mean_accept_length": round(implied, 6),
            "reported_mean_accept_length": round(length, 6),
            "abs_delta": round(abs(implied - length), 6),
            "tolerance": TOLERANCE,
            "passed": abs(implied - length) <= TOLERANCE,
        },
        "marginal_monotonicity": {"passed": not rising, "violations": rising},
    }
