"""Bytes to text: whole characters, nothing lost, nothing invented."""

import pytest

from specviz.views.spelling import REST, quote, spell

TEXT = "naïve 🦊🏳️‍🌈 漢字\n"


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_i1_any_cut_of_the_bytes_spells_the_same_text(size):
    data = TEXT.encode()
    texts, _ = spell([data[at : at + size] for at in range(0, len(data), size)])
    assert "".join(t for t in texts if isinstance(t, str)) == TEXT
    assert all(isinstance(t, str) or t == REST for t in texts)


def test_a_character_opens_in_its_first_token():
    fox = "🦊".encode()
    assert spell([b"a" + fox[:1], fox[1:3], fox[3:] + b"b", b"c"]) == (
        ["a🦊b", REST, REST, "c"],
        {0: b"a" + fox[:1], 1: b"a" + fox[:3]},
    )


def test_bytes_that_never_become_text_are_escaped():
    assert spell([b"\xf0\x9f", b"ok", b"\xff"])[0] == [["\\xf0\\x9f"], "ok", ["\\xff"]]


def test_a_branch_continues_the_bytes_before_it():
    fox = "🦊".encode()
    assert spell([fox[2:]], before=fox[:2])[0] == ["🦊"]
    assert spell([b"x"], before=fox[:2])[0] == ["x"]


def test_quotes_draw_line_ends_and_keep_spaces():
    assert quote({1: b" a\n", 2: b"\t"}, 1, 2) == "' a↵⇥'"
    assert quote({}, 7) == "'<7>'"
