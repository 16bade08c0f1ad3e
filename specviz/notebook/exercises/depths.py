"""Checks of notebook 8: what a row of an MTP module reads, and how far to reuse it."""

from collections.abc import Callable, Sequence
from itertools import product

from specviz.cost.speedup import DraftCost, Profile, best, curve
from specviz.notebook.exercises import Verdict, called, exercise, right, wrong
from specviz.words import _

Rows = Callable[[int], Sequence[tuple[int, int, int]]]
BestLength = Callable[[Sequence[float], float], int]


@exercise
def rows(answer: Rows) -> Verdict:
    """Compare with the rows the module is trained on."""
    for n in (5, 2, 0):
        found = [tuple(row) for row in called(answer, n)]
        expected = [(i, i + 1, i + 2) for i in range(max(0, n - 2))]
        if found != expected:
            text = _("For {n} tokens you return {found}. ").format(n=n, found=found)
            return wrong(text + _row_fault(found, n))
    return right(_("Two tokens of a text are never hidden state and label: a row needs three."))


def _row_fault(found: list[tuple[int, ...]], n: int) -> str:
    if any(len(row) != 3 for row in found):
        return _("Each row is a triple.")
    if any(position >= n or position < 0 for row in found for position in row):
        return _("There is no such token: leave out rows that reach past the end.")
    if any(token == state for state, token, _label in found):
        return _(
            "A hidden state already knows the token at its own position; beside it stands the one "
            "that was chosen from it."
        )
    if any(label <= token for _state, token, label in found):
        return _("The row is told that token, so predicting it would be no guess: one further.")
    if found != sorted(found) or len(found) < n - 2:
        return _("Every position for which all three exist makes a row, in order.")
    return _("Each of the three is one position after the one before.")


@exercise
def best_length(answer: BestLength) -> Verdict:
    """Compare with the curve of the cost model, over rates and costs."""
    tables = ((0.8, 0.7, 0.6, 0.5), (0.5, 0.4, 0.3), (0.9, 0.0, 0.9), (0.2,))
    for rates, cost in product(tables, (0.05, 0.2, 0.5)):
        found = called(answer, rates, cost)
        expected = _best(rates, cost)
        if found != expected:
            text = _("For rates {rates} and a cost of {cost} you say D = {found}. ")
            given = text.format(rates=rates, cost=cost, found=found)
            return wrong(given + _length_fault(found, expected, len(rates)))
    return right(_("Draft on while the next token still brings more than its pass costs."))


def _best(rates: Sequence[float], cost: float) -> int:
    profile = Profile(rates=tuple(rates), source="exercise", how="modelled")
    draft = DraftCost(drafting="serial", c=cost)
    return best(curve(profile, lambda _d: 1.0, draft, range(1, len(rates) + 1))).draft_length


def _length_fault(found: int, expected: int, most: int) -> str:
    if not 0 <= found <= most:
        return _("D is from 0 to the number of rates.")
    if found > expected:
        return _(
            "Too long: each draft costs a pass and counts only if all before it were accepted, so "
            "the rates multiply. And the target adds a token of its own, also at D = 0."
        )
    return _("Too short: a longer draft brings more tokens than its passes cost. Compare every D.")
