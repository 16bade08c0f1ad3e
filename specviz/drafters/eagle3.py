"""EAGLE-3: a chain or a dynamic tree drafted from the target's hidden states."""

from specviz.config import DrafterOptions
from specviz.drafters.base import Context, Proposal
from specviz.drafters.prefix import shared_prefix
from specviz.events import EMPTY, Draft, Evidence
from specviz.heads.chain import Limits, draft_chain
from specviz.heads.choice import Choice, Text
from specviz.heads.eagle3 import Eagle3Head
from specviz.heads.runner import Reading, Runner
from specviz.heads.tree import TreeLimits, TreeShape, draft_tree
from specviz.models.target import Target
from specviz.words import later


class Eagle3Drafter:
    """Drafts with an `Eagle3Head`, reading the true features of all committed tokens.

    With a `tree` its nodes are the head's favourites, points at any temperature; without, the
    draft is a chain, drawn at the request's temperature. `Evidence.scores` are probabilities after
    the parent; of a greedy draft or a tree, at temperature 1.
    """

    name = "eagle3"

    def __init__(
        self,
        head: Eagle3Head,
        target: Target,
        options: DrafterOptions,
        ends: frozenset[int] = frozenset(),
        tree: TreeShape | None = None,
    ) -> None:
        """Draft for `target`, whose embeddings and output head are used; its cache is not touched.

        The session's target must keep the features `head.taps`. `ends` are end tokens.
        """
        self._runner = Runner(head, target)
        self._choice = Choice(target.config.vocab, self._runner.draft_ids, options)
        self._options, self._ends, self._tree = options, ends, tree

    def propose(self, context: Context, budget: int) -> Proposal:
        if budget <= 0 or len(context.tokens) < 2:
            return Proposal(
                EMPTY, evidence=Evidence(message=later("There is no room for a draft."))
            )
        runner, tokens = self._runner, context.tokens
        reading = runner.catch_up(tokens, context.features, shared_prefix(runner.text, tokens))
        ends = frozenset[int]() if context.params.ignore_eos else self._ends
        ends = ends.union(context.params.stop_ids)
        if self._tree is not None:
            return self._grow(reading, self._tree, ends, budget)
        text = Text(
            tokens=tokens,
            prompt_length=context.prompt_length,
            params=context.params,
            draws=context.draws,
        )
        limits = Limits(budget=budget, least=self._options.draft_min_p, ends=ends)
        chain = draft_chain(runner, reading, self._choice, text, limits)
        evidence = self._evidence(chain.scores, chain.stopped)
        return Proposal(Draft.chain(chain.tokens), chain.q, evidence)

    def _grow(
        self, reading: Reading, shape: TreeShape, ends: frozenset[int], budget: int
    ) -> Proposal:
        limits = TreeLimits(budget=budget, least=self._options.draft_min_p, ends=ends)
        tree = draft_tree(self._runner, reading, shape, limits)
        return Proposal(tree.draft, None, self._evidence(tree.scores, ""))

    def _evidence(self, scores: tuple[float, ...], message: str) -> Evidence:
        runner = self._runner
        return Evidence(
            scores=scores, passes=runner.passes, caught_up=runner.caught_up, message=message
        )
