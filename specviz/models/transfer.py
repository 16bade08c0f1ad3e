"""Small tensors to a GPU and back without waiting for it more often than there is a reason to.

A copy from ordinary memory makes the host wait until the device has done all that came before; one
from pinned memory is queued like any other work.
"""

from collections.abc import Sequence

import torch
from torch import Tensor


def send(
    values: Sequence[int] | Sequence[float], device: torch.device, dtype: torch.dtype = torch.int64
) -> Tensor:
    """Return numbers of the host as a tensor on the device, without waiting for it."""
    host = torch.tensor(values, dtype=dtype, pin_memory=device.type == "cuda")
    return host.to(device, non_blocking=True)


def fetch(parts: Sequence[Tensor]) -> list[list[float]]:
    """Bring tensors of one dimension to the host in one copy: the one wait for the device.

    Numbers travel as float64, which holds every int32, every float32 and ints below 2**53 exactly.
    """
    whole = torch.cat([part.double() for part in parts])
    if whole.is_cuda:
        host = torch.empty(len(whole), dtype=torch.float64, pin_memory=True)
        host.copy_(whole, non_blocking=True)
        torch.cuda.current_stream(whole.device).synchronize()
        whole = host
    return [part.tolist() for part in torch.split(whole, [len(part) for part in parts])]
