"""MTP: the target's own next-token module, reused for every token further ahead."""

from specviz.config import DrafterOptions
from specviz.drafters.base import Context, Proposal
from specviz.drafters.prefix import shared_prefix
from specviz.events import EMPTY, Draft, Evidence
from specviz.heads.chain import Limits, draft_chain
from specviz.heads.choice import Choice, Text
from specviz.heads.mtp import MtpHead
from specviz.heads.runner import Runner
from specviz.models.target import Target
from specviz.words import later


class MtpDrafter:
    """Drafts a chain with an `MtpHead`, whose cache holds the whole prompt.

    Depths it was not trained for reuse it on its own hidden state; the evidence says so.
    `Evidence.scores` are conditional probabilities; of a greedy draft, at temperature 1.
    """

    name = "mtp"

    def __init__(
        self,
        head: MtpHead,
        target: Target,
        options: DrafterOptions,
        ends: frozenset[int] = frozenset(),
    ) -> None:
        """Draft for `target`, whose embeddings and output head are used; its cache is not touched.

        The session's target must keep the features `head.taps`. `ends` are end tokens.
        """
        self._runner, self._trained = Runner(head, target), head.config.trained
        self._choice = Choice(target.config.vocab, self._runner.draft_ids, options)
        self._options, self._ends = options, ends

    def propose(self, context: Context, budget: int) -> Proposal:
        if budget <= 0 or len(context.tokens) < 2:
            return Proposal(
                EMPTY, evidence=Evidence(message=later("There is no room for a draft."))
            )
        runner, tokens = self._runner, context.tokens
        reading = runner.catch_up(tokens, context.features, shared_prefix(runner.text, tokens))
        ends = frozenset[int]() if context.params.ignore_eos else self._ends
        text = Text(
            tokens=tokens,
            prompt_length=context.prompt_length,
            params=context.params,
            draws=context.draws,
        )
        ends = ends.union(context.params.stop_ids)
        limits = Limits(budget=budget, least=self._options.draft_min_p, ends=ends)
        chain = draft_chain(runner, reading, self._choice, text, limits)
        evidence = Evidence(
            scores=chain.scores,
            passes=runner.passes,
            caught_up=runner.caught_up,
            message=chain.stopped,
            note=self._reused(len(chain.tokens)),
            trained=self._trained,
        )
        return Proposal(Draft.chain(chain.tokens), chain.q, evidence)

    def _reused(self, drafted: int) -> str:
        if drafted <= self._trained:
            return ""
        text = later("From depth {n} on the module is reused: it was trained for depth {trained}.")
        return text.format(n=self._trained + 1, trained=self._trained)
