"""The pane's payload: index-exact, byte-exact, compact."""

import json

import pytest

from specviz.events import Draft, Evidence, Finish, Round
from specviz.views.tokens import PaneOptions, Reveal, pane
from tests.views.stories import HOSTILE, Story, long_story


def rows(story, **arguments):
    trace = story.trace(arguments.pop("finish", None))
    payload = pane(trace, arguments.pop("shown", len(trace.rounds)), **arguments)
    assert json.loads(json.dumps(payload))  # it has to travel
    return payload["rounds"]


def test_a_round_lists_kept_drafts_refused_ones_and_the_targets_own_token():
    story = Story("The").add([" quick", " red", " cat"], 1, " brown")
    (row,) = rows(story)
    assert row["c"] == [" quick", " brown"]
    assert row["k"] == "ac"
    assert (row["r"], row["f"]) == ([" red", " cat"], "ru")
    assert (row["i"], row["s"], row["last"]) == (0, 1, True)


def test_i2_repeated_words_are_coloured_by_index_not_by_text():
    story = Story("x").add([" the", " the"], 1, " the").add([" the"], 0, " the")
    first, second = rows(story)
    assert (first["c"], first["k"], first["f"]) == ([" the", " the"], "ac", "r")
    assert (second["c"], second["k"], second["f"]) == ([" the"], "c", "r")


def test_b9_repeated_paragraphs_light_up_from_the_second_copy_on():
    story = Story("Write it three times:")
    letters = list("ABCDEFGH")
    for letter in letters:
        story.add((), 0, letter)
    for _ in range(2):
        story.add(letters[:4], 4, letters[4]).add(letters[5:], 3, "A" if _ == 0 else "\n")
        letters = letters[1:] + letters[:1] if _ == 0 else letters
    kinds = "".join(row["k"] for row in rows(story))
    assert kinds[:8] == "n" * 8
    assert kinds[8:].count("a") / len(kinds[8:]) > 0.7
    text = "".join(t for row in rows(story) for t in row["c"])
    assert text == "ABCDEFGHABCDEFGHABCDEFGHA\n"


def test_g1_g4_drafts_behind_the_end_are_marked_and_not_committed():
    story = Story("x").add([" a", "<|im_end|>", " b", " c"], 2, None, past_end=2)
    payload = pane(story.trace(Finish("stop_token", "<|im_end|>")), 1)
    (row,) = payload["rounds"]
    assert (row["c"], row["k"], row["last"]) == ([" a", "<|im_end|>"], "aa", False)
    assert (row["r"], row["f"]) == ([" b", " c"], "ee")
    assert "stop token" in payload["finish"]


def test_text_behind_a_stop_string_is_marked_inside_its_token():
    story = Story("x").add([" one", " two##"], 2, " three")
    payload = pane(story.trace(Finish("stop_string", "##", text_bytes=8)), 1)
    assert payload["end"] == (0, 1, 4)
    assert pane(story.trace(Finish("length", text_bytes=None)), 1)["end"] is None


@pytest.mark.parametrize("text", HOSTILE)
def test_i3_token_text_travels_unchanged_as_data(text):
    (row,) = rows(Story(text).add([text], 1, text + "!").add([text, "a"], 0, "b"), shown=1)
    assert row["c"] == [text, text + "!"]


def test_i1_a_character_split_over_tokens_is_one_group_of_cells():
    fox = "🦊".encode()
    story = Story("x").add([fox[:1], fox[1:3]], 2, fox[3:])
    (row,) = rows(story)
    assert row["c"] == ["🦊", 0, 0]
    assert len(row["t"]) == 3


def test_i1_a_character_may_span_rounds_and_the_prompt():
    a, b = " é".encode()[:2], " é".encode()[2:]
    story = Story(a).add((), 0, b).add((), 0, a).add((), 0, b + b"!")
    payload = pane(story.trace(), 3)
    assert payload["prompt"]["texts"] == [" é"]
    assert [row["c"] for row in payload["rounds"]] == [[0], [" é!"], [0]]


def test_i1_a_character_still_open_is_shown_as_bytes_until_it_closes():
    fox = "🦊".encode()
    story = Story("x").add((), 0, b"a" + fox[:2]).add((), 0, fox[2:])
    assert [r["c"] for r in rows(story, shown=1)] == [[["a\\xf0\\x9f"]]]
    assert [r["c"] for r in rows(story)] == [["a🦊"], [0]]


def test_bytes_that_are_no_text_are_escaped_and_never_replaced():
    (row,) = rows(Story("x").add([b"\xff", b"\xf0\x9f"], 2, "ok"))
    assert row["c"] == [["\\xff"], ["\\xf0\\x9f"], "ok"]


def test_i1_a_refused_draft_shows_the_character_it_would_have_closed():
    fox, frog = "🦊".encode(), "🐸".encode()
    assert fox[:3] != frog[:3]
    face, grin = "😀".encode(), "😁".encode()
    story = Story("x").add([face[:3], face[3:], " ha"], 1, grin[3:])
    (row,) = rows(story)
    assert row["c"] == ["😁", 0]
    assert row["r"] == ["😀", " ha"]


def test_refused_drafts_that_form_a_character_together_show_it():
    fox = "🦊".encode()
    (row,) = rows(Story("x").add([fox[:2], fox[2:]], 0, "no"))
    assert row["r"] == ["🦊", 0]


def test_trees_name_nodes_depths_and_branches():
    draft = Draft(tokens=(100, 101, 102, 103), parents=(-1, -1, 1, 0))
    story = Story("x").add(["a", "b"], 2, "c")
    event = Round(
        index=1,
        start=4,
        scheme="tree",
        budget=4,
        draft=draft,
        path=(1, 2),
        last_token=101,
        last_kind="bonus",
        checks=(),
    )
    story.rounds.append(event)
    row = rows(story)[1]
    assert (row["p"], row["n"], row["d"], row["b"]) == ((1, 2), [0, 3], [0, 1], [])


@pytest.mark.parametrize(
    ("reveal", "kept", "loose"),
    [
        (Reveal(0), "", ""),
        (Reveal(2), "", "pp"),
        (Reveal(3), "", "ppp"),
        (Reveal(3, 1), "a", "pp"),
        (Reveal(3, 2), "a", "rp"),
        (Reveal(3, 2, last=True), "ac", "ru"),
    ],
    ids=str,
)
def test_a_round_unfolds_step_by_step(reveal, kept, loose):
    story = Story("x").add((), 0, "y").add([" a", " b", " c"], 1, " d")
    row = rows(story, reveal=reveal)[1]
    assert (row["k"], row["f"]) == (kept, loose)


def test_rounds_after_the_cursor_are_not_in_the_payload():
    story = Story("x").add((), 0, "y").add((), 0, "secret")
    assert "secret" not in json.dumps(pane(story.trace(), 1))
    assert pane(story.trace(), 0)["rounds"] == []
    assert pane(story.trace(), 0)["now"] is None


def test_the_card_gives_numbers_and_origin_of_a_token():
    evidence = Evidence(match=(0, 1), source=(1, 3), store="context")
    story = Story("x", " a", " b").add([" a", " b"], 1, " c", evidence=evidence, u=0.41, q=0.8)
    card = dict(pane(story.trace(), 1)["details"]["0"]["1"])
    assert card["token"] == "' b'"
    assert card["bytes"] == "20 62"
    assert card["position"] == "4"
    assert card["u"] == "0.41 ≥ 0 → rejected"
    assert card["rank in target"] == "2"
    assert card["came from"] == "copied from position 2"
    last = dict(pane(story.trace(), 1)["details"]["0"]["last"])
    assert last["target's logprob"] == "-0.31"
    assert last["target's entropy"] == "1.25 nats"


def test_a_redacted_prompt_is_not_shown():
    trace = Story("x").add((), 0, "y").trace()
    from specviz.traces.schema import redact

    payload = pane(redact(trace), 1)
    assert payload["prompt"]["texts"] == []
    assert payload["rounds"][0]["c"] == ["y"]


def test_a_thousand_rounds_make_a_payload_under_half_a_megabyte():
    trace = long_story().trace()
    payload = json.dumps(pane(trace, 1000), separators=(",", ":"))
    assert len(payload) < 500_000
    assert len(pane(trace, 1000)["details"]) <= 8


def test_stepping_changes_only_the_tail_of_the_payload():
    trace = long_story(50).trace()
    before, after = (pane(trace, shown)["rounds"] for shown in (30, 31))
    assert after[:30] == before


def test_selected_token_gets_its_card_wherever_it_is():
    trace = long_story(50).trace()
    payload = pane(trace, 50, options=PaneOptions(selected=(3, "last")))
    assert "3" in payload["details"]
    assert payload["selected"] == {"round": 3, "node": "last"}
    assert pane(trace, 50, options=PaneOptions(selected=(999, 0)))["selected"]
