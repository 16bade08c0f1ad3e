"""Float32 products that read two bytes for each weight: the same numbers from half the memory."""

from functools import cache

import torch
from torch import Tensor

_LARGEST = 127  # of int8, which heads are shipped in
_FEW = 32  # up to so many rows a row's bits must not depend on the rows beside it


class Halves:
    """A float32 matrix whose numbers float16 holds exactly, times a factor for each row.

    A pass over a few rows waits for the weights, so it takes half as long with half the bytes. What
    was trained in bfloat16 or shipped in int8 fits exactly; products and sums stay in float32.
    """

    def __init__(
        self, weight: Tensor, scale: Tensor | None, bias: Tensor | None, *, alike: bool = True
    ) -> None:
        """Pack weight [out, in]; scale and bias are [out]."""
        self._padding = _padding() if alike else (0,) * (_FEW + 1)
        self._scale, self._bias = scale, None if scale is None else bias
        inner = bias if scale is None else None
        self._packed = torch.ops.quantized.linear_prepack_fp16(weight, inner)

    @classmethod
    def of(cls, weight: Tensor, bias: Tensor | None, *, alike: bool = True) -> "Halves | None":
        """Return the packed form of weight [out, in]; None if it is not exact, or not fast here.

        With `alike` up to 32 rows come out in the bits each has alone; it costs a lone row a sixth.
        """
        if weight.device.type != "cpu" or weight.dtype != torch.float32 or not has_halves():
            return None
        weight = weight.detach()
        if torch.equal(weight.half().float(), weight):
            return cls(weight, None, bias, alike=alike)
        scale = weight.abs().amax(dim=1).clamp_min(1e-12) / _LARGEST
        whole = (weight / scale[:, None]).round()
        if not torch.equal(whole * scale[:, None], weight):
            return None
        return cls(whole, scale, bias, alike=alike)

    @property
    def weight(self) -> Tensor:
        """A copy of the matrix [out, in]."""
        weight: Tensor = torch.ops.quantized.linear_unpack_fp16(self._packed)[0]
        return weight if self._scale is None else weight * self._scale[:, None]

    def __call__(self, x: Tensor) -> Tensor:
        """Return x [rows, in] times the matrix [rows, out]."""
        rows: int = x.shape[0]
        more = self._padding[rows] if rows <= _FEW else 0
        out = _multiply(torch.constant_pad_nd(x, (0, 0, 0, more)) if more else x, self._packed)
        out = out[:rows] if more else out
        if self._scale is None:
            return out
        return out.mul_(self._scale) if self._bias is None else out.mul_(self._scale) + self._bias


@cache
def has_halves() -> bool:
    """Whether this build and processor have the product of float32 rows and float16 weights."""
    return torch.backends.quantized.engine in ("x86", "fbgemm") and (
        "fbgemm" in torch.backends.quantized.supported_engines
    )


def _multiply(x: Tensor, packed: object) -> Tensor:
    multiply = torch.ops.quantized.linear_dynamic_fp16
    out: Tensor = getattr(multiply, "_op", multiply)(
        x, packed
    )  # past torch's look for fake tensors
    return out


@cache
@torch.inference_mode()
def _padding() -> tuple[int, ...]:
    """Return how many rows of zeros 0 to 32 rows need for the bits they have among 32.

    The kernel sums a lone row in another order. Which numbers of rows hold one depends on the
    processor, so they are found by trying.
    """
    source = torch.Generator().manual_seed(0)
    x = torch.randn(_FEW, 768, generator=source)
    packed = torch.ops.quantized.linear_prepack_fp16(torch.randn(64, 768, generator=source), None)
    every = _multiply(x, packed)
    counts = range(1, _FEW + 1)
    alike = [rows for rows in counts if torch.equal(_multiply(x[:rows], packed), every[:rows])]
    return (0, *(min(n for n in alike if n >= rows) - rows for rows in counts))
