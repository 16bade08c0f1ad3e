"""What a verdict is made of."""

from dataclasses import dataclass

from torch import Tensor

from kernels.errors import KernelError


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How p comes from logits; temperature 0 is greedy."""

    temperature: float = 0.0
    top_k: int = 0  # 0: all
    top_p: float = 1.0
    min_p: float = 0.0

    def __post_init__(self) -> None:
        fine = self.temperature >= 0 and self.top_k >= 0 and 0 < self.top_p <= 1
        if not (fine and 0 <= self.min_p <= 1):
            raise KernelError(
                f"{self}; allowed: temperature and top_k from 0, top_p above 0 to 1, min_p 0 to 1"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafted:
    """The nodes: parents before children, ROOT (-1) under the root."""

    tokens: Tensor  # [nodes] int64
    parents: Tensor  # [nodes] int32
    q: Tensor | None = None  # [nodes, vocab] float32 each was drawn from; None: point drafts


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """Where uniforms come from: given ones, or Philox of `seed` from text position `position` on.

    uniforms [nodes + rows] float64 on the device: one to accept each node, one to sample each row.
    """

    uniforms: Tensor | None = None
    seed: int = 0
    position: int = 0


@dataclass(frozen=True, slots=True)
class Verdicts:
    """All on the device, in two tensors, so that one copy of each tells the host everything."""

    whole: Tensor  # [3 + nodes] int64: accepted, token, first bad row or -1, path padded with -1
    parts: Tensor  # [nodes + rows] float32: p of a node when tried (NaN: never), p of a row's token

    @property
    def accepted(self) -> Tensor:
        return self.whole[0]

    @property
    def token(self) -> Tensor:
        return self.whole[1]

    @property
    def bad_row(self) -> Tensor:
        """First row of logits that holds NaN, or no finite maximum; -1 if all are fine."""
        return self.whole[2]

    @property
    def path(self) -> Tensor:
        return self.whole[3:]


def check(logits: Tensor, drafted: Drafted, chance: Chance) -> None:
    """Raise KernelError if shapes do not fit together."""
    nodes, (rows, vocab) = len(drafted.tokens), logits.shape
    q = drafted.q
    if rows != 1 + nodes or len(drafted.parents) != nodes:
        raise KernelError(
            f"{rows} rows of logits, {nodes} tokens, {len(drafted.parents)} parents; "
            "needed: 1 + nodes rows, and one token and one parent for each node"
        )
    if q is not None and q.shape != (nodes, vocab):
        raise KernelError(f"q is {tuple(q.shape)}; needed: {(nodes, vocab)}")
    if chance.uniforms is not None and len(chance.uniforms) != nodes + rows:
        raise KernelError(f"{len(chance.uniforms)} uniforms; needed: {nodes + rows}")
