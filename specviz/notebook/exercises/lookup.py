"""Checks of notebook 5: drafting from the text itself."""

from collections.abc import Callable, Sequence

from specviz.config import DrafterOptions, SamplingParams, TieRule
from specviz.drafters.base import Context
from specviz.drafters.ngram import NgramDrafter
from specviz.notebook.exercises import Verdict, called, exercise, right, wrong
from specviz.traces.schema import Trace
from specviz.verify import Draws
from specviz.words import _

Lookup = Callable[[Sequence[int], int, int], Sequence[int]]

TEXTS = (
    ((1, 2, 3, 4, 1, 2), 2, 3),
    ((1, 2, 3, 4, 1, 2), 2, 1),
    ((5, 6, 7, 8), 2, 3),
    ((1, 2, 7, 1, 2, 8, 1, 2), 2, 2),
    ((9, 1, 9, 2, 1, 9), 2, 4),
    ((4, 4, 4), 1, 3),
)


def proposed(tokens: Sequence[int], n: int, budget: int, tie: TieRule = "vllm") -> tuple[int, ...]:
    """Return what the package's drafter proposes if it looks for exactly `n` tokens."""
    rule = DrafterOptions(ngram_min=n, ngram_max=n, ngram_tie=tie)
    context = Context(tuple(tokens), len(tokens), SamplingParams(), Draws(0))
    return NgramDrafter(rule).propose(context, budget).draft.tokens


@exercise
def lookup(answer: Lookup) -> Verdict:
    """Compare with the package's drafter on texts that tell the usual mistakes apart."""
    for tokens, n, budget in TEXTS:
        found, expected = tuple(called(answer, tokens, n, budget)), proposed(tokens, n, budget)
        if found != expected:
            text = _("For {tokens}, n = {n}, budget = {budget} you propose {found}.")
            said = text.format(tokens=tokens, n=n, budget=budget, found=found)
            return wrong(f"{said} {_lookup_fault(tokens, n, budget, found)}")
    return right(_("No model, no training: the text itself is the drafter."))


def _lookup_fault(tokens: tuple[int, ...], n: int, budget: int, found: tuple[int, ...]) -> str:
    if len(found) > budget:
        return _("That is longer than the budget.")
    if found[:n] == tokens[-n:] and proposed(tokens, n, budget)[:n] != tokens[-n:]:
        return _("Those are the matched tokens; the draft is what came after them.")
    if not proposed(tokens, n, budget):
        return _("The last {n} tokens occur nowhere earlier: propose nothing.").format(n=n)
    if not found:
        return _("The last {n} tokens do occur earlier; the end itself does not count.").format(n=n)
    if found == proposed(tokens, n, budget, "llama.cpp"):
        return _("That follows the last occurrence; here the earliest one is asked for.")
    return _("Find the last {n} tokens earlier in the text and copy what follows.").format(n=n)


@exercise
def ties(answer: tuple[str, str]) -> Verdict:
    """Compare the token after the earliest and after the last occurrence in A B C A B D A B."""
    earliest, last = answer
    if (earliest, last) == ("C", "D"):
        return right(_("The same text, the same match, other drafts: only the rule differs."))
    if (earliest, last) == ("D", "C"):
        return wrong(_("The other way round: A B C comes first in the text, A B D later."))
    if "A" in (earliest, last) or "B" in (earliest, last):
        return wrong(_("A B is what is looked for; the draft starts with what came after it."))
    return wrong(_("A B occurs twice before the end. Which token follows it each time?"))


@exercise
def wasted(answer: int, trace: Trace) -> Verdict:
    """Compare with drafted less accepted."""
    drafted = sum(len(event.draft) for event in trace.rounds)
    accepted = sum(len(event.path) for event in trace.rounds)
    checked = sum(fate == "rejected" for event in trace.rounds for fate in event.fates)
    if answer == drafted - accepted:
        return right(_("Each of them was a row of a pass, and none of them is in the text."))
    if answer == checked:
        return wrong(
            _("Drafts behind a rejected one were scored too, although nobody checked them.")
        )
    if answer == drafted:
        return wrong(_("Some of those were accepted."))
    if answer == accepted:
        return wrong(_("Those were accepted; the others are asked for."))
    text = _("Count drafts of all rounds ({drafted}) and take away the accepted ones.")
    return wrong(text.format(drafted=drafted))
