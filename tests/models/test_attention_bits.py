"""A row of attention comes out in the same bits, alone or with the rows of a draft."""

import pytest
import torch

from specviz.models.attention import attend, pack_mask


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("group", [1, 2, 3])
@pytest.mark.parametrize("total", [32, 64, 256])
def test_one_row_rounds_as_it_does_among_others(dtype, group, total):
    generator = torch.Generator().manual_seed(total)

    def random(*size):
        return torch.randn(*size, generator=generator).to(dtype)

    keys, values = random(6 // group, total, 64), random(6 // group, total, 64)
    queries = 0.3 * random(17, 6, 64)  # 17 rows of G = 2 leave two packed rows over
    mask = torch.ones(17, total, dtype=torch.bool)
    mask[:, -7:] = False
    together = attend(queries, keys, values, pack_mask(mask, group, dtype))
    for row in range(17):
        one = slice(row, row + 1)
        alone = attend(queries[one], keys, values, pack_mask(mask[one], group, dtype))
        assert torch.equal(alone, together[one])
