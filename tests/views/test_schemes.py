"""The scheme panel: what the drafter did, in words, with the text marked by position."""

import re

import pytest

from specviz.events import Evidence
from specviz.views.schemes import scheme_view
from tests.views.stories import CARD, HOSTILE, Story


def texts(markup, kind):
    return re.findall(rf'<span class="{kind}"[^>]*>([^<]*)</span>', markup)


def copying():
    story = Story("one", " two", " three", " four", " one", " two")
    evidence = Evidence(match=(0, 2), source=(2, 4), store="context")
    return story.add([" three", " four"], 1, " five", evidence=evidence)


def test_ngram_shows_match_source_and_the_draft_with_its_fates():
    shown = scheme_view(copying().trace(), 0)
    assert texts(shown.excerpt, "sv-match") == ["one two", " one two"]
    assert texts(shown.excerpt, "sv-source") == [" three four"]
    assert texts(shown.excerpt, "sv-a") == [" three"]
    assert texts(shown.excerpt, "sv-r") == [" four"]
    assert shown.lines == (
        "The text ends with 'one two' (2 tokens), which also stands at position 0.",
        "What followed it there is the draft: ' three four' (2 tokens).",
    )


def test_far_matches_are_cut_out_of_a_long_text():
    words = [f" w{n}" for n in range(200)]
    evidence = Evidence(match=(50, 51), source=(51, 53), store="context")
    story = Story(*words, " w50").add([" w51", " w52"], 2, " w53", evidence=evidence)
    excerpt = scheme_view(story.trace(), 0).excerpt
    assert " w40" in excerpt
    assert " w50" in excerpt
    assert " w100" not in excerpt
    assert excerpt.count("sv-gap") == 2


def test_a_source_that_runs_into_the_end_of_the_text_is_shown_once():
    evidence = Evidence(match=(1, 2), source=(2, 6), store="context")
    story = Story("a", " b", " b").add([" b"] * 4, 4, " b", evidence=evidence)
    excerpt = scheme_view(story.trace(), 0).excerpt
    assert "".join(texts(excerpt, "sv-a")) == " b" * 4
    assert re.sub("<[^>]*>", "", excerpt) == "a b b" + " b" * 4


def test_no_match_says_why():
    story = Story("a").add((), 0, "b", evidence=Evidence(message="Nothing like it earlier."))
    assert scheme_view(story.trace(), 0).lines == ("Nothing like it earlier.",)


def test_suffix_names_its_store_and_lists_scores():
    evidence = Evidence(match=(1, 2), source=None, store="history", scores=(0.9, 0.45))
    story = Story("x", " a", scheme="suffix").add([" b", " c"], 1, " d", evidence=evidence)
    shown = scheme_view(story.trace(), 0)
    assert "in earlier outputs" in shown.lines[0]
    assert "1.35" in shown.lines[1]
    assert shown.rows == (
        ("1", "' b'", "0.9", "accepted"),
        ("2", "' c'", "0.45", "rejected"),
    )
    assert len(shown.columns) == 4


def test_h10_after_a_whole_draft_the_draft_model_reads_one_more_token():
    story = Story("x", scheme="draft_model")
    story.add([" a"], 1, " b", evidence=Evidence(scores=(0.7,), passes=1, caught_up=1))
    story.add([" c"], 0, " d", evidence=Evidence(scores=(0.6,), passes=2, caught_up=2))
    first, second = (scheme_view(story.trace(draft=CARD), n).lines for n in (0, 1))
    assert first == (
        "Draft model: tiny",
        "It ran 1 forward pass.",
        "Before drafting it read 1 token it had not seen.",
    )
    assert "accepted whole" in second[-1]


def test_plain_forced_and_unknown_schemes_have_a_panel_too():
    plain = Story("x", scheme="none").add((), 0, "y")
    assert "Nothing is drafted" in scheme_view(plain.trace(), 0).lines[0]
    forced = Story("x").add((), 0, "y", kind="forced").trace()
    assert "not asked" in scheme_view(forced, 0).lines[0]
    assert scheme_view(Story("x", scheme="later").add((), 0, "y").trace(), 0).title == "later"


@pytest.mark.parametrize("text", HOSTILE)
def test_i3_hostile_text_stays_text(text):
    evidence = Evidence(match=(0, 1), source=(1, 2), store="context")
    story = Story(text, "b" + text, text).add([text], 0, text + "!", evidence=evidence)
    excerpt = scheme_view(story.trace(), 0).excerpt
    assert set(re.findall(r"<(/?\w+)", excerpt)) <= {"div", "/div", "span", "/span"}
    assert not re.search(r"<[^>]*\son\w+=", excerpt)
    from html import unescape

    assert text in unescape(re.sub("<[^>]*>", "", excerpt))


def test_a_split_character_is_whole_in_the_excerpt():
    fox = "🦊".encode()
    evidence = Evidence(match=(0, 2), source=(2, 3), store="context")
    story = Story(fox[:2], fox[2:], "!", fox[:2], fox[2:]).add(["!"], 1, "?", evidence=evidence)
    excerpt = scheme_view(story.trace(), 0).excerpt
    assert texts(excerpt, "sv-match") == ["🦊", "🦊"]
    assert "�" not in excerpt
