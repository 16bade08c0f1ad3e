"""Linear maps and norms in the form that is fastest on the device at hand."""

import torch
from torch import Tensor
from torch.nn import functional as F

from specviz.models.halves import Halves

# rows above this are a prefill: speed of large passes counts, not equality with one-row passes
FEW_ROWS = 32


class Linear:
    """x [rows, in] -> [rows, out].

    On a CPU the weight is kept in the blocked layout of oneDNN, packed once. Measured on 2 cores
    with bf16: 1.5 times faster than `F.linear`, which packs in every call; the results are the
    same bits, and the same bits for 1 to 32 rows, so drafting does not change greedy output.
    Float32 weights that 16 bits hold exactly are kept in 16 bits.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None, *, alike: bool = True) -> None:
        """Pack the weight [out, in]; `alike`: a row's bits never depend on those beside it."""
        self.bias, self.dtype = bias, weight.dtype
        self._halves = Halves.of(weight, bias, alike=alike)
        self._packed = self._halves is None and _can_pack(weight)
        if self._packed:
            weight = torch.ops.mkldnn._reorder_linear_weight(weight, 8)
        self._weight = weight if self._halves is None else weight.new_empty(0)

    @property
    def weight(self) -> Tensor:
        """The plain weight [out, in]; a copy if it is packed."""
        if self._halves is not None:
            return self._halves.weight
        return self._weight.to_dense() if self._packed else self._weight

    def __call__(self, x: Tensor) -> Tensor:
        if self._halves is not None:
            return self._halves(x)
        if not self._packed:
            return F.linear(x, self._weight, self.bias)
        out: Tensor = torch.ops.mkldnn._linear_pointwise(x, self._weight, self.bias, "none", [], "")
        return out


def _can_pack(weight: Tensor) -> bool:
    if weight.device.type != "cpu" or not torch._C._has_mkldnn:
        return False
    if weight.dtype == torch.float32:
        return True
    return weight.dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported()


class RMSNorm:
    """x [rows, width] / sqrt(mean(x^2) + eps) * weight, in float32 inside.

    `F.rms_norm` is eight small operations on a CPU. The layer norm of x and -x side by side is one
    and says the same: their mean is 0 and their variance is mean(x^2).
    """

    def __init__(self, weight: Tensor, eps: float) -> None:
        self.weight, self.eps = weight, eps
        self._both = torch.stack((weight, weight))
        self._signs = torch.tensor([[1.0], [-1.0]], dtype=weight.dtype, device=weight.device)

    def __call__(self, x: Tensor) -> Tensor:
        if x.is_cuda:
            return F.rms_norm(x, self.weight.shape, self.weight, self.eps)
        both = x[..., None, :] * self._signs
        return F.layer_norm(both, self._both.shape, self._both, None, self.eps)[..., 0, :]


class HeadNorm:
    """The same for each head on its own: x [rows, heads, head_dim], weight [heads, head_dim]."""

    def __init__(self, weight: Tensor, eps: float) -> None:
        self.weight = weight
        self._unit = RMSNorm(torch.ones_like(weight[0]), eps)

    def __call__(self, x: Tensor) -> Tensor:
        return self._unit(x) * self.weight
