"""Checks of notebook 9: what the rows of a block see, and what its slots do not know."""

from collections.abc import Callable, Mapping, Sequence
from math import isclose

import torch

from specviz.heads.dflash import reach
from specviz.heads.dflash_config import WHOLE
from specviz.notebook.exercises import Verdict, called, exercise, right, wrong
from specviz.words import _

Pairs = Mapping[tuple[str, str], float]
BlockMask = Callable[[int, int], Sequence[Sequence[bool]]]
MakesSense = Callable[[Pairs], float]

TEXTS: tuple[Pairs, ...] = (
    {("of", "course"): 0.5, ("no", "problem"): 0.5},
    {("of", "course"): 0.9, ("no", "problem"): 0.1},
    {("New", "York"): 1.0},
    {("the", "cat"): 0.4, ("the", "dog"): 0.3, ("a", "dog"): 0.3},
)


@exercise
def block_mask(answer: BlockMask) -> Verdict:
    """Compare with what the head itself lets its rows see."""
    for length, rows in ((3, 4), (0, 2), (5, 1)):
        context, block = reach(WHOLE, torch.tensor([[length]]), length, rows)
        expected = torch.cat((context[0, 0].expand(rows, -1), block), dim=1).tolist()
        found = [[bool(sees) for sees in row] for row in called(answer, length, rows)]
        if [len(row) for row in found] != [length + rows] * rows:
            text = _("{length} tokens of text and {rows} rows: {rows} lists of {columns} bools.")
            return wrong(text.format(length=length, rows=rows, columns=length + rows))
        if found != expected:
            return wrong(_mask_fault(found, length))
    return right(_("Everything before the anchor, and the whole block: nothing is hidden."))


def _mask_fault(found: list[list[bool]], length: int) -> str:
    if not all(all(row[:length]) for row in found):
        return _("Every row sees all of the text before the anchor, not only a part of it.")
    if any(
        row[length + at + 1 :] and not any(row[length + at + 1 :]) for at, row in enumerate(found)
    ):
        return _(
            "That is the mask of a model that writes word by word. Masks hold nothing yet, so rows "
            "also see those after them."
        )
    return _("Rows of a block see each other and themselves.")


@exercise
def makes_sense(answer: MakesSense) -> Verdict:
    """Compare on texts of two words."""
    for pairs in TEXTS:
        found, expected = called(answer, pairs), _chance(pairs)
        if not isclose(found, expected, abs_tol=1e-9):
            text = _("For {pairs} you say {found:.3f}. ")
            return wrong(text.format(pairs=dict(pairs), found=found) + _chance_fault(pairs, found))
    return right(_("0.5 for the two answers: half of the blocks hold a pair that nobody says."))


def _chance(pairs: Pairs) -> float:
    first, second = dict[str, float](), dict[str, float]()
    for (one, other), chance in pairs.items():
        first[one] = first.get(one, 0) + chance
        second[other] = second.get(other, 0) + chance
    return sum(first[one] * second[other] for one, other in pairs)


def _chance_fault(pairs: Pairs, found: float) -> str:
    if isclose(found, 1):
        return _("That is a drafter that reads slot 1 before it writes slot 2. A block cannot.")
    if isclose(found, sum(chance * chance for chance in pairs.values()), abs_tol=1e-9):
        return _(
            "Multiply the chance of the first word by that of the second; where a word stands in "
            "several pairs, its chances add up."
        )
    if not 0 <= found <= 1:
        return _("A chance is from 0 to 1.")
    return _("Sum over the pairs of the text: chance of its first word times that of its second.")
