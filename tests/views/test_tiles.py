"""The tile picture: one cell per kernel row, every row accounted for."""

import re
from dataclasses import replace

import pytest

from specviz.events import Attention
from specviz.views.tiles import tiles_view
from tests.views.stories import HOSTILE, Story


def story(drafts, accepted):
    return Story("root").add([f" d{n}" for n in range(drafts)], accepted, " own").trace()


def test_every_kernel_row_is_drawn_with_its_token_and_head():
    shown = tiles_view(story(4, 2), 0)
    cells = re.findall(r'<span class="sv-([\w-]+)"', shown.picture)
    assert len(cells) == 128
    assert cells.count("free") == 128 - 15
    assert [cells.count(kind) for kind in ("root-row", "a", "r", "u")] == [3, 6, 3, 3]
    assert "head 3 of 3" in shown.picture


def test_the_words_give_the_formula_the_waste_and_d_star():
    lines = tiles_view(story(4, 2), 0).lines
    assert lines[1] == "G · (1 + D) = 3 · (1 + 4) = 15 rows per KV head"
    assert lines[2] == "1 tile of 128 rows: 113 rows stay empty, 12% are used."
    assert "D* = 41" in lines[3]
    assert "Only rows of its tiles are free" in lines[4]


def ran(attention):
    trace = story(4, 2)
    return tiles_view(replace(trace, rounds=(replace(trace.rounds[0], attention=attention),)), 0)


def test_the_picture_says_whether_it_is_of_what_ran():
    ours = ran(Attention("triton", 16))
    assert ours.lines[0] == "What ran: the backend triton scored this round in tiles of 16 rows."
    assert ours.picture.count("<span") == 16
    packed = ran(Attention("sdpa"))
    assert "PyTorch SDPA over 15 packed rows" in packed.lines[0]
    assert "It has no row tile" in packed.lines[0]
    assert "The picture is modelled" in packed.lines[0]
    assert packed.picture.count("<span") == 128
    eager = ran(Attention("triton", 16, "it could not be captured: a sync"))
    assert eager.lines[-1].endswith("not as a CUDA graph: it could not be captured: a sync.")
    assert "the backend flash, which does not say" in ran(Attention("flash")).lines[0]
    assert "was not noted. The picture is modelled" in ran(Attention()).lines[0]


def test_an_overflow_opens_a_second_tile_and_says_so():
    shown = tiles_view(story(8, 0), 0, tile=16)
    assert "2 tiles of 16 rows: 5 rows stay empty" in shown.lines[2]
    assert "overflow" in shown.lines[3]
    assert "Tile 2 of 2" in shown.picture


def test_many_tiles_are_counted_and_not_all_drawn():
    shown = tiles_view(story(60, 0), 0, tile=16)
    assert "and 8 more tiles" in shown.picture
    assert shown.picture.count("<span") == 4 * 16


def test_the_table_twin_names_rows_and_kernel_rows():
    shown = tiles_view(story(2, 1), 0)
    assert shown.rows == (
        ("'root'", "committed before", "0-2"),
        ("' d0'", "accepted", "3-5"),
        ("' d1'", "rejected", "6-8"),
    )
    assert "G · (1 + D) = 3 · (1 + 2)" in shown.alt


@pytest.mark.parametrize("text", HOSTILE)
def test_i3_token_text_in_the_picture_is_inert(text):
    shown = tiles_view(Story(text).add([text], 1, "x").trace(), 0)
    found = set(re.findall(r"<(/?\w+)", shown.picture))
    assert found == {"div", "/div", "p", "/p", "span", "/span"}
