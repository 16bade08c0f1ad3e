"""Greedy verification: follow the draft for as long as it is the target's own choice."""

from torch import Tensor

from specviz.events import ROOT, Check, Draft
from specviz.verify.best import best_of_rows
from specviz.verify.verdict import Verdict


def verify_greedy(draft: Draft, logits: Tensor) -> Verdict:
    """Accept children that are the argmax of their row of logits [1 + nodes, vocab].

    Only the argmax is ever accepted, in trees too; the output is that of plain greedy decoding.
    """
    best: list[int] = best_of_rows(logits).tolist()
    node, path, checks = ROOT, list[int](), list[Check]()
    while True:
        for child in draft.children(node):
            agrees = draft.tokens[child] == best[node + 1]
            mass = float(agrees)  # p is one-hot at temperature 0
            checks.append(Check(child, mass, 1.0, mass, None, agrees))
            if agrees:
                node = child
                path.append(child)
                break
        else:
            return Verdict(tuple(path), best[node + 1], tuple(checks), last_p=1.0)
