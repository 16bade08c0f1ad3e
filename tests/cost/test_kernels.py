"""Rows of real kernels: golden vectors, and what every layout must hold."""

import pytest

from specviz.cost.hardware import GPUS
from specviz.cost.kernels import KERNELS, default_kernel, find_kernel, kernels_for
from specviz.cost.tiles import Tiling, free_length, packed_rows
from specviz.errors import ConfigError

# (G, 1 + D), rows, utilisation of 128-row tiles, trtllm-gen (tile, blocks), FA3 blocks,
# FA4 (tile, blocks), XQA blocks, vLLM Triton (tile, blocks), flex rows
GOLDEN = [
    ((4, 16), 64, 0.50, (64, 1), 1, (128, 1), 1, (16, 4), 64),
    ((4, 17), 68, 0.53, (128, 1), 1, (128, 1), 2, (16, 5), 128),
    ((4, 32), 128, 1.0, (128, 1), 1, (128, 1), 2, (16, 8), 128),
    ((5, 32), 160, 0.62, (128, 2), 2, (256, 1), 3, (16, 11), 256),
    ((6, 16), 96, 0.75, (128, 1), 1, (128, 1), 2, (16, 8), 128),
    ((8, 8), 64, 0.50, (64, 1), 1, (128, 1), 1, (16, 4), 64),
    ((8, 16), 128, 1.0, (128, 1), 1, (128, 1), 2, (16, 8), 128),
    ((8, 17), 136, 0.53, (128, 2), 2, (256, 1), 3, (16, 9), 256),
    ((12, 9), 108, 0.84, (128, 1), 1, (128, 1), 2, (16, 9), 128),
    ((12, 32), 384, 1.0, (128, 4), 3, (256, 2), 6, (16, 32), 512),
    ((16, 8), 128, 1.0, (128, 1), 1, (128, 1), 2, (16, 8), 128),
    ((16, 9), 144, 0.56, (128, 2), 2, (256, 1), 3, (16, 9), 256),
    ((32, 4), 128, 1.0, (128, 1), 1, (128, 1), 2, (32, 4), 128),
    ((32, 9), 288, 0.75, (128, 3), 3, (256, 2), 5, (32, 9), 512),
]


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: f"G{case[0][0]}-q{case[0][1]}")
def test_golden_vectors(case):
    (group, tokens), rows, used, trtllm, fa3, fa4, xqa, triton, flex = case

    def shape(name):
        layout = KERNELS[name].layout(group, tokens)
        return layout.tile, layout.blocks

    assert packed_rows(group, tokens - 1) == rows
    assert Tiling(rows).utilisation == pytest.approx(used, abs=0.006)
    assert shape("trtllm-gen") == shape("prims-ts") == trtllm
    assert shape("fa3") == (128, fa3)
    assert shape("fa4") == fa4
    assert shape("xqa-hopper")[1] == xqa
    assert shape("vllm-triton") == triton
    assert shape("flex-decoding") == (flex, 1)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_every_row_has_its_place_and_the_rest_is_empty(kernel):
    for group in (1, 2, 3, 5, 8, 12, 16, 32, 64, 96, 128):
        for tokens in (1, 2, 4, 9, 17, 64):
            layout = kernel.layout(group, tokens)
            assert layout.rows == group * tokens
            assert layout.computed >= layout.rows
            assert 0 < layout.utilisation <= 1


def test_whole_token_packing_needs_a_block_more_than_exact_packing():
    assert KERNELS["trtllm-gen"].layout(12, 32).blocks == 4
    assert KERNELS["fa3"].layout(12, 32).blocks == 3


def test_fa2_loses_its_packing_with_the_second_token():
    assert KERNELS["fa2"].layout(8, 1).blocks == 1
    assert KERNELS["fa2"].layout(8, 2).blocks == 8


def test_fa3_tiles_are_wider_for_small_heads():
    assert KERNELS["fa3"].layout(8, 20, 64).tile == 192
    assert KERNELS["fa3"].layout(8, 20, 128).tile == 128


def test_relative_time_climbs_the_published_ladder_and_then_by_whole_tiles():
    kernel = KERNELS["trtllm-gen"]
    times = [kernel.layout(8, q).relative_time for q in (1, 2, 4, 8, 16, 17, 33)]
    assert times == pytest.approx([1.0, 1.2, 1.48, 1.68, 2.2, 4.4, 6.6])
    assert KERNELS["fa3"].layout(8, 8).relative_time is None


def test_an_mla_token_has_a_block_of_its_own():
    kernel = KERNELS["trtllm-mla"]
    assert [kernel.layout(128, q).blocks for q in (1, 2, 4)] == [2, 4, 8]
    assert kernel.layout(8, 3).tile == 8


@pytest.mark.parametrize("group", [1, 2, 3, 4, 5, 6, 8, 12, 16, 32, 64, 96, 128])
def test_an_exactly_packing_kernel_has_the_free_length_of_its_tile(group):
    for name in ("fa3", "flashmla", "tokenspeed-mla"):
        kernel = KERNELS[name]
        assert kernel.free_length(group) == free_length(group, kernel.tile)


def test_every_part_has_a_kernel_for_every_attention():
    for gpu in GPUS.values():
        for attention in ("gqa", "mla"):
            assert default_kernel(gpu.family, attention).layout(8, 8).blocks >= 1
    assert default_kernel("hopper", "mla").name == "flashmla"
    assert "trtllm-gen" in {k.name for k in kernels_for("blackwell", "gqa")}
    assert "flashmla" not in {k.name for k in kernels_for("hopper", "gqa")}


def test_unknown_kernels_and_impossible_shapes_are_refused():
    with pytest.raises(ConfigError, match="'fa9'; known are trtllm-gen"):
        find_kernel("fa9")
    for group, tokens in ((0, 1), (1, 0)):
        with pytest.raises(ConfigError, match="1 or more"):
            KERNELS["fa3"].layout(group, tokens)
