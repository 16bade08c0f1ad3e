"""All sources are read before anything is written."""

from torch import Tensor


def kv_keep(cache: Tensor, start: Tensor, path: Tensor, accepted: Tensor) -> None:
    """Shapes as in the contract."""
    first, kept = int(start) + 1, path[: int(accepted)]
    cache[..., first : first + len(kept), :] = cache[..., first + kept, :]
