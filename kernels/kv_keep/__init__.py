"""Keep one path of a scored tree in the KV cache; its siblings are forgotten."""

from torch import Tensor

from kernels.errors import KernelError


def kv_keep(
    cache: Tensor, start: Tensor, path: Tensor, accepted: Tensor, backend: str = "auto"
) -> None:
    """Move cached tokens start + 1 + path[i] to start + 1 + i, for i below `accepted`, in place.

    The root stays at `start`. Counts and path are read on the device, so a verdict need not reach
    the host first. No token is moved forward: path[i] >= i in a tree of parents before children.

    Args:
        cache: [.., capacity, width] with one stride for each of at most 3 leading dimensions;
            keys and values of all layers at once, or taps.
        start: [] int32 or int64, cached tokens before the root.
        path: [nodes] int64 of a `Verdicts`, padded.
        accepted: [] int64.
        backend: "triton", "reference", or "auto": triton on a GPU.
    """
    if not 2 <= cache.dim() <= 5 or cache.stride(-1) != 1:
        raise KernelError(
            f"the cache is {tuple(cache.shape)} with strides {cache.stride()}; needed: "
            "2 to 5 dimensions, the last one without gaps"
        )
    if backend not in ("auto", "triton", "reference"):
        raise KernelError(f"backend is {backend!r}; allowed: auto, triton, reference")
    if backend == "triton" or (backend == "auto" and cache.is_cuda):
        from kernels.kv_keep import triton

        return triton.kv_keep(cache, start, path, accepted)
    from kernels.kv_keep import reference

    return reference.kv_keep(cache, start, path, accepted)
