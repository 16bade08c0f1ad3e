"""Reference of the walk: siblings in turn, refused ones taken out of p (arXiv:2305.09781)."""

import torch
from torch import Tensor

from kernels.verify_tree.call import Drafted, Verdicts


def verify_tree(p: Tensor, drafted: Drafted, uniforms: Tensor, bad_row: int = -1) -> Verdicts:
    """Walk p [rows, vocab] with uniforms [nodes + rows]: one for each node, one for each row."""
    tokens, parents = drafted.tokens.tolist(), drafted.parents.tolist()
    nodes, node, left, path = len(tokens), -1, p[0], list[int]()
    parts = torch.full((nodes + len(p),), torch.nan)
    while True:
        for child in [c for c in range(nodes) if parents[c] == node]:
            token = tokens[child]
            q = torch.zeros_like(left) if drafted.q is None else drafted.q[child]
            if drafted.q is None:
                q[token] = 1.0
            parts[child] = left[token]
            if float(uniforms[child]) * float(q[token]) < float(left[token]):
                node, left = child, p[child + 1]
                path.append(child)
                break
            rest = (left - q).clamp_min(0)
            left = rest / rest.sum() if rest.sum() > 0 else left
        else:
            break
    cdf = left.double().cumsum(0)
    at = torch.searchsorted(cdf, float(uniforms[nodes + node + 1]) * float(cdf[-1]), right=True)
    token = int(at) if at < len(cdf) else int(left.nonzero()[-1])
    parts[nodes + node + 1] = left[token]
    whole = [len(path), token, bad_row, *path, *[-1] * (nodes - len(path))]
    return Verdicts(torch.tensor(whole), parts)
