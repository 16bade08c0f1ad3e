"""A link brings somebody else to the same settings and place, and says what it could not do."""

from urllib.parse import parse_qs, parse_qsl

import pytest

from specviz.bench.prompts import BUILT_IN
from specviz.drafters import SCHEMES
from specviz.errors import ConfigError
from specviz.traces.timeline import Cursor
from specviz.ui import links
from specviz.ui.fields import FIELDS, SHORT

DEFAULTS = {key: field.default for key, field in FIELDS.items()}
RECORDINGS = ("chat", "copy")


def test_first_screen_needs_no_query():
    assert links.write(DEFAULTS, "", None) == ""
    assert links.share_url("http://host:8501/?D=3#x", "") == "http://host:8501/"


def test_a_link_restores_what_it_was_made_from():
    values = DEFAULTS | {
        "prompt": "own",
        "text": "Ça va? <b>&amp;</b> a=b&c=d\nsecond line",
        "scheme": "suffix",
        "D": 12,
        "T": 0.75,
        "seed": 7,
        "chat": False,
        "top_p": 0.9,
    }
    url = links.share_url("http://host/", links.write(values, "copy", Cursor(12, 3)))
    place = links.read(dict(parse_qsl(url.partition("?")[2])), RECORDINGS)
    assert DEFAULTS | place.values == values
    assert (place.run, place.cursor, place.notes) == ("copy", Cursor(12, 3), ())


def test_only_what_differs_is_in_the_link():
    query = links.write(DEFAULTS | {"D": 9}, "", Cursor(4))
    assert parse_qs(query) == {"D": ["9"], "at": ["4"]}


def test_a_long_prompt_stays_out_of_the_link():
    query = links.write(DEFAULTS | {"prompt": "own", "text": "x" * (SHORT + 1)}, "", None)
    assert parse_qs(query) == {"prompt": ["own"]}


@pytest.mark.parametrize(
    ("key", "raw"),
    [
        ("D", "-1"),
        ("D", "1e3"),
        ("D", "257"),
        ("D", "9" * 400),
        ("T", "nan"),
        ("T", "-0.5"),
        ("T", "1e999"),
        ("seed", "1.5"),
        ("scheme", "gram"),
        ("chat", "maybe"),
        ("prompt", "no-such-prompt"),
        ("text", "x" * (SHORT + 1)),
        ("at", "-1"),
        ("at", "1.2.3"),
        ("at", "<b>"),
        ("run", "no-such-run"),
        ("surprise", "1"),
    ],
)
def test_an_impossible_value_falls_back_with_a_note(key, raw):
    place = links.read({key: raw, "max": "64"}, RECORDINGS)
    assert place.values == {"max": 64}
    assert place.run == ""
    assert place.cursor is None
    assert len(place.notes) == 1
    assert key in place.notes[0]


@pytest.mark.parametrize("field", FIELDS.values(), ids=lambda field: field.key)
def test_every_setting_writes_what_it_reads(field):
    samples = field.choices or (field.default, field.low, field.high)
    for value in samples:
        if isinstance(value, float) and abs(value) == float("inf"):
            continue
        typed = value if isinstance(field.default, str) else type(field.default)(value)
        assert field.parse(field.write(typed)) == typed


def test_a2_a_wrong_scheme_is_answered_with_the_right_ones():
    with pytest.raises(ConfigError, match="ngram"):
        FIELDS["scheme"].parse("gram")


def test_every_scheme_and_every_prompt_can_be_chosen():
    assert set(FIELDS["scheme"].choices) == set(SCHEMES)
    assert {prompt.id for prompt in BUILT_IN} < set(FIELDS["prompt"].choices)
    assert all(field.default in (field.choices or (field.default,)) for field in FIELDS.values())


def test_a_note_spells_numbers_out_and_marks_what_it_cut():
    place = links.read({"top_k": "9" * 80, "seed": "-1"}, RECORDINGS)
    assert "0 to 1000000" in place.notes[0]
    assert "999…" in place.notes[0]
    assert "9007199254740991" in place.notes[1]
