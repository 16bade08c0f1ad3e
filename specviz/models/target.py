"""What a decoding session needs of a target model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from specviz.events import Draft


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetConfig:
    """Shape and provenance of a target."""

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int  # rows of the output head, padding included
    context: int  # most positions the model was made for
    eos: tuple[int, ...] = ()
    sha: str = ""  # of the weights, "" if made in memory

    @property
    def group_size(self) -> int:
        """G: query heads per KV head."""
        return self.heads // self.kv_heads


class Target(Protocol):
    """A model and the KV cache of one sequence. It holds no token: the session does.

    The cache covers `length` tokens. A session keeps it one short of its committed tokens: the
    last one, the root, is scored together with the draft. Positions follow from `length` and the
    depth in the tree.
    """

    @property
    def config(self) -> TargetConfig: ...

    @property
    def length(self) -> int:
        """Tokens in the cache."""
        ...

    @property
    def device(self) -> torch.device: ...

    @property
    def dtype(self) -> torch.dtype: ...

    @property
    def features(self) -> Tensor | None:
        """Hidden states [length, taps, hidden] of cached tokens, None without taps."""
        ...

    def prefill(self, tokens: Sequence[int]) -> None:
        """Append `tokens` to the cache; long prompts go through in pieces.

        Raises:
            Cancelled: asked for between pieces (`specviz.cancel`); whole pieces are in the cache.
        """
        ...

    def score(self, root: int, draft: Draft) -> Tensor:
        """Run root and draft in one pass: logits [1 + nodes, vocab], float32.

        Row 0 follows the root, row i + 1 follows node i. Nothing is kept until `commit`;
        scoring again overwrites.
        """
        ...

    def commit(self, path: Sequence[int]) -> None:
        """Keep the root and the nodes of `path` of the last `score`; forget their siblings."""
        ...

    def truncate(self, length: int) -> None:
        """Drop cached tokens past `length`."""
        ...

    def fork(self, length: int) -> "Target":
        """Copy the cache up to `length`; the weights are shared."""
        ...

    def embed(self, tokens: Sequence[int]) -> Tensor:
        """Rows of the input embedding table [len(tokens), hidden]."""
        ...

    def head(self, hidden: Tensor) -> Tensor:
        """Logits [rows, vocab] of final-normed hidden states [rows, hidden]."""
        ...
