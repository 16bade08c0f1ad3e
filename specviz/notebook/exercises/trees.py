"""Checks of notebook 7: what a draft is worth in a known text, and who sees whom in a tree."""

from collections.abc import Callable, Sequence

from specviz.events import ROOT, Draft
from specviz.metrics.controls import matching
from specviz.notebook.exercises import Verdict, called, exercise, right, wrong
from specviz.verify.masks import ancestor_mask
from specviz.words import _

Matched = Callable[[Draft, tuple[int, ...]], int]
Visible = Callable[[tuple[int, ...]], Sequence[Sequence[bool]]]

CHAIN = Draft.chain((5, 6, 7))
TREE = Draft((5, 8, 6, 6, 9), (ROOT, ROOT, 0, 1, 3))  # 5 6, and 8 6 9


@exercise
def matched(answer: Matched) -> Verdict:
    """Compare with what greedy verification keeps, on chains and trees."""
    for draft, after, reason in (
        (CHAIN, (4, 5, 6), _("A draft whose first token is wrong is worth nothing: 0.")),
        (CHAIN, (5, 6, 4), _("Count the tokens that are right: 5 and 6 of (5, 6, 7) make 2.")),
        (CHAIN, (5, 4, 7), _("Stop at the first wrong token: what follows was drafted after it.")),
        (CHAIN, (5, 6, 7, 8), _("The text may go on after the draft; the draft cannot.")),
        (CHAIN, (5,), _("The text may end before the draft: nothing matches after its end.")),
        (TREE, (8, 6, 9), _("Follow every child, not only the first: here 8 is the second.")),
        (TREE, (5, 6, 9), _("Node 9 continues 8 6, not 5 6: only children of the node reached.")),
        (Draft((), ()), (5,), _("An empty draft is worth 0.")),
    ):
        found, expected = called(answer, draft, after), matching(draft, after)
        if found != expected:
            text = _("For tokens {tokens} with parents {parents} and text {after} you say {found}.")
            given = text.format(
                tokens=draft.tokens, parents=draft.parents, after=after, found=found
            )
            return wrong(f"{given} {reason}")
    return right(_("That is all greedy verification does: follow the child the target would say."))


@exercise
def visible(answer: Visible) -> Verdict:
    """Compare with the mask the target uses."""
    for draft in (CHAIN, TREE):
        expected = ancestor_mask(draft).tolist()
        found = [[bool(sees) for sees in row] for row in called(answer, draft.parents)]
        size = 1 + len(draft)
        if [len(row) for row in found] != [size] * size:
            text = _("{nodes} nodes make {rows} rows and as many columns: do not forget the root.")
            return wrong(text.format(nodes=len(draft), rows=size))
        for i, row in enumerate(found):
            for j, sees in enumerate(row):
                if sees != expected[i][j]:
                    return wrong(_why(draft, i, j))
    return right(_("Each row sees the root, its own ancestors and itself, and nothing else."))


def _why(draft: Draft, i: int, j: int) -> str:
    where = _("With parents {parents}, row {i} and row {j}: ").format(
        parents=draft.parents, i=i, j=j
    )
    if i == j:
        return where + _("every row sees itself.")
    if j == 0:
        return where + _("every row sees the root, the last committed token.")
    if j > i:
        return where + _("a row never sees one that comes after it.")
    if j - 1 in draft.path_to(i - 1):
        return where + _("a row sees all its ancestors, not only its parent.")
    return where + _("the two are on different branches; neither may see the other.")
