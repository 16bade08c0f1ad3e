"""Attention of 1 + nodes query tokens over a KV cache, the heads of a group packed as rows."""

from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec

import torch
from torch import Tensor

from kernels.errors import BackendUnavailable
from kernels.tree_attention.call import BACKENDS, Attend, Backend, Inputs
from kernels.tree_attention.choice import Choice, Choices, shape_class
from kernels.tree_attention.masks import chain_bits, pack_bits, tree_bits, unpack_bits
from kernels.tree_attention.plan import Device, Plan, make_plan

__all__ = [
    "BACKENDS",
    "Attend",
    "Backend",
    "Choice",
    "Choices",
    "Inputs",
    "chain_bits",
    "choose",
    "pack_bits",
    "plan_of",
    "prepare",
    "tree_attention",
    "tree_bits",
    "unavailable",
    "unpack_bits",
]


def tree_attention(inputs: Inputs, how: Attend, choices: Choices | None = None) -> Tensor:
    """Attend from every new token to the cached ones, its ancestors and itself.

    Args:
        inputs: bf16 or fp16; any float on the backends sdpa and flex.
        how: scale, bounds, backend.
        choices: where "auto" remembers what it measured; None: for this process.

    Returns:
        [batch, rows, heads, head_dim], the dtype of the queries; the softmax is in fp32.

    Raises:
        BackendUnavailable: the backend asked for cannot run this here.
    """
    return prepare(choose(inputs, how, choices).backend, inputs, how)()


def choose(inputs: Inputs, how: Attend, choices: Choices | None = None) -> Choice:
    """Say which backend runs such a call and why; arguments as in `tree_attention`."""
    q = inputs.q
    if how.backend != "auto":
        if reason := unavailable(how.backend, q, how.chain):
            raise BackendUnavailable(f"backend {how.backend!r} cannot run this: {reason}")
        return Choice(how.backend, "asked for")
    refused: dict[str, str] = {b: why for b in BACKENDS if (why := unavailable(b, q, how.chain))}
    if not q.is_cuda:
        return Choice("sdpa", "on a CPU, where nothing else runs compiled", refused=refused)
    name = torch.cuda.get_device_name(q.device)
    key = f"{name} | {shape_class(inputs.problem(how.longest), q.dtype, how.chain)}"
    if "triton" not in refused:
        refused["flex"] = "it compiles for seconds at every new shape: ask for it by name"
    left = [b for b in BACKENDS if b not in refused]
    known = _process_choices() if choices is None else choices
    return known.choose(key, left, lambda b: lambda: prepare(b, inputs, how)(), refused)


def unavailable(backend: Backend, q: Tensor, chain: bool) -> str:
    """Return why `backend` cannot run queries like q, "" if it can."""
    half = q.dtype in (torch.float16, torch.bfloat16)
    if backend in ("triton", "flash") and not half:
        return f"it takes bfloat16 or float16, not {str(q.dtype).removeprefix('torch.')}"
    if backend == "triton":
        if find_spec("triton") is None:
            return "triton is not installed; the CUDA build of torch brings it"
        return "" if q.is_cuda or _interpreted() else "it needs a GPU"
    if backend == "flash":
        from kernels.tree_attention import flash

        if not q.is_cuda:
            return "it needs a GPU"
        return flash.missing() if chain else "flash-attn has no tree mask"
    return ""


def plan_of(inputs: Inputs, how: Attend) -> Plan:
    """Return the cut that the triton backend uses for such a call: the tile, splits, warps."""
    problem, device = inputs.problem(how.longest), _device(inputs.q.device)
    return make_plan(problem, device, how.scale, how.block_m, how.splits)


def prepare(backend: Backend, inputs: Inputs, how: Attend) -> Callable[[], Tensor]:
    """Return what runs the call, masks made: may be called again after the tensors changed.

    Only the lengths in `past` must stay as they were for backends with a mask, flex and sdpa.
    """
    if backend == "triton":
        from kernels.tree_attention import triton as ours

        return lambda: ours.tree_attention(inputs, plan_of(inputs, how))
    if backend == "flash":
        from kernels.tree_attention import flash

        return flash.prepare(inputs, how)
    if backend == "flex":
        from kernels.tree_attention import flex

        return flex.prepare(inputs, how)
    from kernels.tree_attention import sdpa

    return sdpa.prepare(inputs, how)


@lru_cache
def _device(device: torch.device) -> Device:
    if device.type != "cuda":  # the interpreter: any numbers of a real part will do
        return Device(capability=90, sms=132)
    found = torch.cuda.get_device_properties(device)
    return Device(capability=10 * found.major + found.minor, sms=found.multi_processor_count)


@lru_cache
def _process_choices() -> Choices:
    return Choices()


def _interpreted() -> bool:
    from triton import knobs

    return bool(knobs.runtime.interpret)
