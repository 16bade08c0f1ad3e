"""Checks of notebook 11: the longest draft of one tile, and tiles that split no token."""

from collections.abc import Callable
from itertools import product

from specviz.cost.kernels import find_kernel
from specviz.cost.tiles import TILE, Tiling, free_length, packed_rows
from specviz.notebook.exercises import Verdict, called, exercise, right, wrong
from specviz.words import _

LongestFree = Callable[[int, int], int]
Blocks = Callable[[int, int, int], int]

GROUPS = (4, 8, 16, 5, 12, 64, 128, 3)
LADDER = find_kernel("trtllm-gen")


@exercise
def longest_free(answer: LongestFree) -> Verdict:
    """Compare with the rule of the cost model over G and tiles."""
    for tile, group in product((TILE, 64), GROUPS):
        found, expected = called(answer, group, tile), free_length(group, tile)
        if found != expected:
            text = _("For G = {g} and a tile of {tile} rows you say {found}. ")
            said = text.format(g=group, tile=tile, found=found)
            return wrong(said + _free_fault(group, tile, found))
    return right(_("floor(tile / G) - 1, and 0 where one token fills a tile or more."))


def _free_fault(group: int, tile: int, found: float) -> str:
    if found != int(found):
        return _("D is a whole number: round down, half a token is not drafted.")
    if found < 0:
        return _("There is always a root row, also where it alone overflows the tile: D is 0 then.")
    rows = packed_rows(group, int(found))
    if found == tile // group:
        return _("You forgot the root: with it {rows} rows are asked for.").format(rows=rows)
    if rows > tile:
        return _("That asks for {rows} rows, more than a tile has.").format(rows=rows)
    return _("One draft more would still fit: {rows} rows.").format(rows=rows + group)


@exercise
def blocks(answer: Blocks) -> Verdict:
    """Compare with TensorRT-LLM's layout."""
    for group, tokens in product((4, 12, 5, 100), (1, 10, 11, 26, 33, 64)):
        if packed_rows(group, tokens - 1) <= TILE // 2:
            continue  # the kernel takes a smaller tile there
        found, expected = called(answer, group, tokens, TILE), LADDER.layout(group, tokens).blocks
        if found != expected:
            text = _("For G = {g} and {tokens} tokens you say {found} tiles. ")
            said = text.format(g=group, tokens=tokens, found=found)
            return wrong(said + _block_fault(group, tokens, found))
    return right(
        _("Where G divides the tile it makes no difference; G = 12 wastes 8 rows in each.")
    )


def _block_fault(group: int, tokens: int, found: float) -> str:
    rows, fit = packed_rows(group, tokens - 1), TILE // group
    if found == Tiling(rows).tiles:
        text = _("{rows} rows would fit, if tokens could be split; {fit} whole tokens fit a tile.")
        return text.format(rows=rows, fit=fit)
    if found != int(found):
        return _("A tile that is begun is a whole tile: round up.")
    if found < -(-tokens // fit):
        return _("Round up: the last tile may be partly empty, but it is there.")
    return _("First ask how many whole tokens fit one tile, then how many tiles that makes.")
