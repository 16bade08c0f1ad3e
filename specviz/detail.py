"""What a round keeps beside its decisions: scores of nodes, the top of every row."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from specviz.config import SamplingParams
from specviz.events import Attention, Candidate, Draft, NodeScore, Row
from specviz.models.llama import LlamaTarget
from specviz.models.target import Target
from specviz.verify.processors import distribution

TOP = 8  # bars of the decision panel: the best of p, of q and of the model's own softmax


def attention_of(target: Target, draft: Draft) -> Attention:
    """Return what ran the attention over a draft, where the target says so."""
    return target.attention_of(draft) if isinstance(target, LlamaTarget) else Attention()


@dataclass(frozen=True)
class Scored:
    """One scored draft: what verification saw.

    raw and logits are [1 + nodes, vocab]: the model's own logits, and after penalties. q
    [nodes, vocab] is None for point drafts.
    """

    draft: Draft
    raw: Tensor
    logits: Tensor
    params: SamplingParams
    q: Tensor | None

    @cached_property
    def p(self) -> Tensor:
        """The distribution that is sampled from [1 + nodes, vocab].

        Made when it is first asked for: on a GPU the kernel needs none.
        """
        return distribution(self.logits, self.params)

    def node_scores(self, *, ranks: bool) -> tuple[NodeScore, ...]:
        """Score each node in the row of its parent."""
        if not len(self.draft):
            return ()
        rows = torch.tensor(self.draft.parents, device=self.p.device) + 1
        tokens = torch.tensor(self.draft.tokens, device=self.p.device)
        own = self.raw[rows, tokens]
        logprob = (own - self.raw[rows].logsumexp(-1)).tolist()
        p = self.p[rows, tokens].tolist()
        q = [1.0] * len(p)
        if self.q is not None:
            q = self.q.gather(1, tokens[:, None])[:, 0].tolist()
        rank: list[int | None] = [None] * len(p)
        if ranks:
            rank = (self.raw[rows] > own[:, None]).sum(-1).tolist()
        return tuple(map(NodeScore, p, q, logprob, rank))

    def last_logprob(self, row: int, token: int) -> float:
        """The model's own log-probability of the token drawn from `row`."""
        return float(self.raw[row, token] - self.raw[row].logsumexp(-1))

    def top_rows(self) -> Iterator[Row]:
        """Describe every row by the union of its tops and its entropies (nats)."""
        logprobs = self.raw.log_softmax(-1)
        entropies = -(logprobs.exp() * logprobs.clamp_min(-1e4)).sum(-1)
        best = self.logits.argmax(-1).tolist()
        k = min(TOP, self.raw.shape[-1])
        tops = [self.raw.topk(k, -1).indices]
        if self.p.count_nonzero() > len(self.p):  # one-hot rows add their argmax alone
            tops.append(self.p.topk(k, -1).indices)
        for row in range(len(self.raw)):
            q_row, ids = self._q_row(row), {best[row]}
            for top in tops:
                ids.update(top[row].tolist())
            if q_row is not None:
                ids.update(q_row.topk(k).indices.tolist())
            ids.update(self.draft.tokens[c] for c in self.draft.children(row - 1))
            yield Row(
                best[row],
                float(entropies[row]),
                None if q_row is None else float(torch.special.entr(q_row).sum()),
                self._candidates(row, sorted(ids), logprobs[row], q_row),
            )

    def _q_row(self, row: int) -> Tensor | None:
        """What the first child of this row was drawn from, if it was drawn."""
        children = self.draft.children(row - 1)
        return self.q[children[0]] if children and self.q is not None else None

    def _candidates(
        self, row: int, ids: list[int], logprobs: Tensor, q_row: Tensor | None
    ) -> tuple[Candidate, ...]:
        index = torch.tensor(ids, device=self.p.device)
        p, own = self.p[row][index].tolist(), logprobs[index].tolist()
        drafted = {self.draft.tokens[c] for c in self.draft.children(row - 1)}
        q = [float(t in drafted) for t in ids] if q_row is None else q_row[index].tolist()
        found = map(Candidate, ids, p, q, own)
        return tuple(sorted(found, key=lambda c: (-c.p, -c.logprob)))
