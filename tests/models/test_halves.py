"""Weights kept in 16 bits multiply as the float32 weights they are, row by row."""

import pytest
import torch

from specviz.heads.packing import quantise
from specviz.models.halves import Halves, has_halves
from specviz.models.layers import Linear

pytestmark = pytest.mark.skipif(not has_halves(), reason="no product with halves in this build")


def trained_in_bfloat16(rows: int, columns: int) -> torch.Tensor:
    weight = 0.1 * torch.randn(rows, columns, generator=torch.Generator().manual_seed(1))
    return weight.masked_fill_(weight.abs() < 1e-4, 0.0).bfloat16().float()


def shipped_in_int8(rows: int, columns: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(2)
    whole, scale = quantise(torch.randn(rows, columns, generator=generator))
    return whole.float() * scale[:, None]


@pytest.mark.parametrize("make", [trained_in_bfloat16, shipped_in_int8])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("size", [(96, 576), (70, 33), (49, 1536)])
def test_nothing_is_lost_and_rows_are_alike(make, biased, size):
    weight, bias = make(*size), torch.linspace(-1, 1, size[0]) if biased else None
    linear, x = Linear(weight, bias), torch.randn(32, size[1])
    assert Halves.of(weight, bias) is not None
    assert torch.equal(linear.weight, weight)
    together = linear(x)
    exact = x.double() @ weight.double().T + (0 if bias is None else bias.double())
    torch.testing.assert_close(together.double(), exact, rtol=1e-5, atol=2e-4)
    for rows in range(1, 33):
        assert torch.equal(linear(x[:rows]), together[:rows]), rows
    assert linear(x[:0]).shape == (0, size[0])


def test_weights_of_more_digits_stay_in_float32():
    weight = torch.randn(8, 16)
    assert Halves.of(weight, None) is None
    assert torch.equal(Linear(weight).weight, weight)
    assert Halves.of(torch.full((8, 16), 1e6), None) is not None  # int8 times a factor
    large = torch.full((8, 16), 1e6)
    large[:, 1] = 1.5
    assert Halves.of(large, None) is None
