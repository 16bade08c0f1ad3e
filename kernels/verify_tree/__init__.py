"""Accept, reject and sample in one launch, from the logits of a scored tree."""

import torch
from torch import Tensor

from kernels.errors import KernelError
from kernels.uniform import uniform
from kernels.verify_tree.call import Chance, Drafted, Sampling, Verdicts, check

__all__ = ["Chance", "Drafted", "Sampling", "Verdicts", "draw_uniforms", "verify_tree"]


def verify_tree(
    logits: Tensor, drafted: Drafted, sampling: Sampling, chance: Chance, backend: str = "auto"
) -> Verdicts:
    """Walk the tree by rejection sampling; greedy is the same walk with one-hot p.

    Args:
        logits: [1 + nodes, vocab] float32, bf16 or fp16; row 0 follows the root, row i + 1 node i.
        drafted: the tree and what its tokens were drawn from.
        sampling: temperature, top-k, top-p, min-p, applied to every row.
        chance: uniforms, or a seed and the text position of the first node.
        backend: "triton", "reference", or "auto": triton on a GPU.

    Returns:
        The verdict, on the device of `logits`; nothing waits for it.

    Raises:
        KernelError: shapes that do not fit together, or an unknown backend.
    """
    check(logits, drafted, chance)
    if backend not in ("auto", "triton", "reference"):
        raise KernelError(f"backend is {backend!r}; allowed: auto, triton, reference")
    if backend == "triton" or (backend == "auto" and logits.is_cuda):
        from kernels.verify_tree import triton

        return triton.verify_tree(logits, drafted, sampling, chance)
    from kernels.verify_tree import probs, reference

    finite = torch.isfinite(logits.amax(-1))
    bad = -1 if bool(finite.all()) else int((~finite).nonzero()[0])
    p = probs.target_probs(logits.float(), sampling)
    given = chance.uniforms
    uniforms = draw_uniforms(drafted, chance) if given is None else given
    return reference.verify_tree(p, drafted, uniforms, bad)


def draw_uniforms(drafted: Drafted, chance: Chance) -> Tensor:
    """Return the uniforms [nodes + rows] that the kernel draws from the seed, in float64."""
    parents: list[int] = drafted.parents.tolist()
    depth, seen, accept = [0], dict[int, int](), list[float]()
    for parent in parents:
        sibling = seen[parent] = seen.get(parent, -1) + 1
        at = chance.position + depth[parent + 1]
        accept.append(uniform(chance.seed, at, "accept", sibling))
        depth.append(depth[parent + 1] + 1)
    sample = [uniform(chance.seed, chance.position + d, "sample") for d in depth]
    return torch.tensor([*accept, *sample], dtype=torch.float64)
