"""How close is close: at most twice the error of plain torch in the same dtype."""

import torch
from torch import Tensor


def assert_kernel_close(got: Tensor, plain: Tensor, exact: Tensor, factor: float = 2.0) -> None:
    """Compare `got` with `exact`, and its error with that of `plain`: torch, the dtype of `got`.

    The floor is one rounding of the largest value, so that a lucky `plain` asks nothing unfair.
    """
    allowed = factor * float((plain.double() - exact).abs().max())
    floor = torch.finfo(got.dtype).eps * float(exact.abs().max())
    error = float((got.double() - exact).abs().max())
    assert got.shape == exact.shape, f"shape is {tuple(got.shape)}, not {tuple(exact.shape)}"
    assert error <= max(allowed, floor), f"error {error:.3g}; allowed {max(allowed, floor):.3g}"
