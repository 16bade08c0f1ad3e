"""Rows of one round in the row tiles of an attention kernel.

A kernel that packs the G query heads of a KV head scores G * (1 + D) rows per KV head, in tiles of
a fixed number of rows: empty rows of the last tile are computed all the same.
"""

from dataclasses import dataclass

from specviz.errors import ConfigError
from specviz.words import _

TILE = 128  # rows of the usual tile


@dataclass(frozen=True, slots=True)
class Tiling:
    """How `rows` rows fill tiles of `tile` rows each."""

    rows: int
    tile: int = TILE

    def __post_init__(self) -> None:
        if self.rows < 1 or self.tile < 1:
            raise ConfigError(
                _("{rows} rows in tiles of {tile}; allowed: 1 or more of each").format(
                    rows=self.rows, tile=self.tile
                )
            )

    @property
    def tiles(self) -> int:
        return -(-self.rows // self.tile)

    @property
    def empty(self) -> int:
        """Rows that are computed for nothing."""
        return self.tiles * self.tile - self.rows

    @property
    def utilisation(self) -> float:
        """Used rows / computed rows, 0 to 1."""
        return self.rows / (self.tiles * self.tile)


def packed_rows(group_size: int, nodes: int) -> int:
    """G * (1 + nodes): rows per KV head of a pass over the root and its drafts."""
    return group_size * (1 + nodes)


def free_length(group_size: int, tile: int = TILE) -> int:
    """D* = floor(tile / G) - 1: the longest draft whose rows fit one tile, at least 0."""
    if group_size < 1 or tile < 1:
        raise ConfigError(
            _("G is {group_size}, the tile {tile}; allowed: 1 or more of each").format(
                group_size=group_size, tile=tile
            )
        )
    return max(0, tile // group_size - 1)
