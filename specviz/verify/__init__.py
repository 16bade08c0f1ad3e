"""Decide which drafted tokens stand. Row 0 follows the root, row i + 1 follows node i."""

from specviz.config import SamplingParams, Verifier
from specviz.errors import ConfigError
from specviz.verify.block import verify_block
from specviz.verify.draws import Draws
from specviz.verify.greedy import verify_greedy
from specviz.verify.sampled import verify_sampled
from specviz.verify.verdict import Verdict
from specviz.words import _

__all__ = [
    "Draws",
    "Verdict",
    "choose_verifier",
    "verify_block",
    "verify_greedy",
    "verify_sampled",
]


def choose_verifier(verifier: Verifier, params: SamplingParams) -> Verifier:
    """Resolve "auto" and refuse what would not be lossless."""
    if verifier == "auto":
        return "greedy" if params.greedy else "sampled"
    if verifier == "greedy" and not params.greedy:
        raise ConfigError(
            _(
                "greedy verification at temperature {temperature} would change the distribution; "
                "use verifier 'sampled' or 'block', or temperature 0"
            ).format(temperature=params.temperature)
        )
    return verifier
