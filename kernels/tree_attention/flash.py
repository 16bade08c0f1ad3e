"""flash-attn for chains on a GPU: version 4 where it is installed, else the KV-cache call of 2."""

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module

from torch import Tensor

from kernels.tree_attention.call import Attend, Inputs


@lru_cache
def _entry() -> tuple[str, Callable[..., Tensor | tuple[Tensor, ...]]]:
    """Return the version found and its function; raise ImportError if there is none."""
    try:
        return "4", import_module("flash_attn.cute").flash_attn_varlen_func
    except (ImportError, AttributeError):
        return "2", import_module("flash_attn").flash_attn_with_kvcache


@lru_cache
def missing() -> str:
    """Return why flash-attn cannot be used, "" if it can."""
    try:
        _entry()
    except (ImportError, OSError, AttributeError) as error:  # OSError: built for another torch
        return f"flash-attn is not usable here ({error})"
    return ""


def prepare(inputs: Inputs, how: Attend) -> Callable[[], Tensor]:
    """Return a call that runs a chain, which causal masking describes."""
    return lambda: _run(inputs, how)


def _run(inputs: Inputs, how: Attend) -> Tensor:
    version, attend = _entry()
    used = inputs.past + inputs.rows
    k, v = inputs.k.transpose(1, 2), inputs.v.transpose(1, 2)  # it wants tokens before heads
    if version == "4":
        out = attend(inputs.q, k, v, seqused_k=used, softmax_scale=how.scale, causal=True)
    else:
        out = attend(inputs.q, k, v, cache_seqlens=used, softmax_scale=how.scale, causal=True)
    return out[0] if isinstance(out, tuple) else out
