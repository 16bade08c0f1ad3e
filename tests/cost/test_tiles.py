"""Row tiles: counts, waste and the longest draft that is free."""

import pytest

from specviz.cost.tiles import Tiling, free_length, packed_rows
from specviz.errors import ConfigError


@pytest.mark.parametrize(
    ("rows", "tile", "tiles", "empty", "utilisation"),
    [
        (1, 128, 1, 127, 1 / 128),
        (128, 128, 1, 0, 1.0),
        (129, 128, 2, 127, 129 / 256),
        (15, 128, 1, 113, 15 / 128),
        (64, 16, 4, 0, 1.0),
    ],
)
def test_rows_fill_whole_tiles_and_the_rest_is_waste(rows, tile, tiles, empty, utilisation):
    tiling = Tiling(rows, tile)
    assert (tiling.tiles, tiling.empty) == (tiles, empty)
    assert tiling.utilisation == pytest.approx(utilisation)
    assert tiling.rows + tiling.empty == tiling.tiles * tile


@pytest.mark.parametrize(("group", "tile"), [(1, 128), (3, 128), (8, 128), (7, 64), (16, 16)])
def test_the_free_length_is_the_longest_that_fits(group, tile):
    longest = free_length(group, tile)
    assert Tiling(packed_rows(group, longest), tile).tiles == 1
    assert Tiling(packed_rows(group, longest + 1), tile).tiles == 2


def test_smollm2_has_g_3_so_41_drafts_fit_one_tile():
    assert free_length(3) == 41
    assert packed_rows(3, 41) == 126


def test_a_group_larger_than_the_tile_leaves_no_free_draft():
    assert free_length(200) == 0


@pytest.mark.parametrize(("rows", "tile"), [(0, 128), (5, 0), (-1, 128)])
def test_impossible_shapes_are_refused(rows, tile):
    with pytest.raises(ConfigError, match="1 or more"):
        Tiling(rows, tile)
    with pytest.raises(ConfigError, match="1 or more"):
        free_length(0)
