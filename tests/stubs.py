"""Targets and drafters small enough to reason about: hand-written tables, no weights."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from specviz.drafters.base import Context, Proposal
from specviz.events import ROOT, Draft
from specviz.models.target import TargetConfig

Rows = Callable[[tuple[int, ...]], Sequence[float] | Tensor]


class TableTarget:
    """A target whose logits are a function of the tokens so far; it keeps tokens as its cache."""

    def __init__(
        self, vocab: int, logits: Rows, *, eos: tuple[int, ...] = (), context: int = 4096
    ) -> None:
        self.logits = logits
        self.config = TargetConfig(
            name="table",
            layers=1,
            hidden=1,
            heads=6,
            kv_heads=2,
            head_dim=1,
            vocab=vocab,
            context=context,
            eos=eos,
        )
        self.device, self.dtype = torch.device("cpu"), torch.float32
        self.features: Tensor | None = None
        self.cached: list[int] = []
        self.pending: tuple[int, Draft] = (0, Draft((), ()))
        self.scores = 0  # passes so far

    @property
    def length(self) -> int:
        return len(self.cached)

    def prefill(self, tokens: Sequence[int]) -> None:
        self.cached += tokens

    def score(self, root: int, draft: Draft) -> Tensor:
        self.scores += 1
        self.pending = (root, draft)
        rows = []
        for node in range(ROOT, len(draft)):
            path = tuple(draft.tokens[i] for i in draft.path_to(node))
            row = self.logits((*self.cached, root, *path))
            rows.append(torch.as_tensor(row, dtype=torch.float32))
        return torch.stack(rows)

    def commit(self, path: Sequence[int]) -> None:
        root, draft = self.pending
        self.cached += [root, *(draft.tokens[i] for i in path)]

    def truncate(self, length: int) -> None:
        assert 0 <= length <= len(self.cached)
        del self.cached[length:]

    def fork(self, length: int) -> "TableTarget":
        twin = TableTarget(
            self.config.vocab, self.logits, eos=self.config.eos, context=self.config.context
        )
        twin.cached = self.cached[:length]
        return twin

    def embed(self, tokens: Sequence[int]) -> Tensor:
        raise AssertionError("tables embed nothing")

    def head(self, hidden: Tensor) -> Tensor:
        raise AssertionError("tables have no head")


def random_table(vocab: int = 7, seed: int = 3, scale: float = 1.0) -> TableTarget:
    """A target whose next token depends on the last two, by a random table."""
    table = torch.randn(vocab, vocab, vocab, generator=torch.Generator().manual_seed(seed)) * scale
    return TableTarget(vocab, lambda tokens: table[tokens[-2], tokens[-1]])


def fixed(probs: Sequence[float]) -> TableTarget:
    """A target that says the same distribution everywhere."""
    row = torch.tensor(probs).log()
    return TableTarget(len(probs), lambda tokens: row)


def copier(vocab: int, period: int) -> TableTarget:
    """A target that repeats what stood `period` tokens ago."""

    def logits(tokens: tuple[int, ...]) -> Tensor:
        row = torch.zeros(vocab)
        row[tokens[-period]] = 10.0
        return row

    return TableTarget(vocab, logits)


@dataclass
class ScriptedDrafter:
    """Proposes what a function says."""

    make: Callable[[Context, int], Proposal]
    name: str = "scripted"
    seen: list[Context] = field(default_factory=list)

    def propose(self, context: Context, budget: int) -> Proposal:
        self.seen.append(context)
        return self.make(context, budget)


def drawn_chain(q: Sequence[float]) -> ScriptedDrafter:
    """Draws every draft token from the same q and says so."""
    from specviz.verify.draws import pick

    row = torch.tensor(q)

    def make(context: Context, budget: int) -> Proposal:
        at = len(context.tokens)
        tokens = [pick(row, context.draws.uniform(at + i, "draft")) for i in range(budget)]
        return Proposal(Draft.chain(tokens), row.repeat(budget, 1))

    return ScriptedDrafter(make)


def point_draft(draft: Draft) -> ScriptedDrafter:
    """Proposes the same tree every round, cut to the budget, with certainty."""

    def make(context: Context, budget: int) -> Proposal:
        return Proposal(Draft(draft.tokens[:budget], draft.parents[:budget]))

    return ScriptedDrafter(make)
