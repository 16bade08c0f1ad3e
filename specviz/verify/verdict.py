"""What verification decides."""

from dataclasses import dataclass

from specviz.events import Check


@dataclass(frozen=True, slots=True)
class Verdict:
    """Accepted nodes, the target's own token, and every decision on the way."""

    path: tuple[int, ...]
    last_token: int
    checks: tuple[Check, ...]
    last_p: float  # its probability in the distribution it was drawn from
    last_u: float | None = None
