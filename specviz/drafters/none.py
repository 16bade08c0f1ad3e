"""Plain decoding: the same loop with an empty draft."""

from specviz.drafters.base import NOTHING, Context, Proposal


class PlainDrafter:
    """Proposes nothing, ever: the baseline of every comparison."""

    name = "none"

    def propose(self, context: Context, budget: int) -> Proposal:
        return NOTHING
