"""The decision panel: the arithmetic of one check in numbers, inert texts, a chart that reads."""

import json
from math import nextafter

import pytest

from specviz.config import SamplingParams, SessionConfig
from specviz.events import Candidate, Check, Draft, NodeScore, Round, Row
from specviz.views.cards import cards, digits_apart, number
from specviz.views.charts import decision_chart
from specviz.views.decision import Settings, decision
from tests.views.stories import HOSTILE, Story

PIECES = {1: b" cat", 2: b" dog", 3: b" <b>cow</b>", 4: b"\n", 5: b"  "}


def settings(**given):
    return Settings(
        given.pop("pieces", PIECES),
        SamplingParams(**given.pop("params", {"temperature": 1.0})),
        SessionConfig(**given),
    )


def event(*, u=0.41, p=0.62, q=0.8, accepted=True, **given):
    threshold = min(1.0, p / q)
    row = Row(
        2,
        1.0,
        0.5,
        (
            Candidate(1, p, q, -0.9),
            Candidate(2, 0.3, 0.1, -1.2),
            Candidate(3, 0.05, 0.1, -3.0),
        ),
    )
    fields = {
        "index": 3,
        "start": 10,
        "scheme": "draft_model",
        "budget": 1,
        "draft": Draft.chain([1]),
        "path": (0,) if accepted else (),
        "last_token": 2,
        "last_kind": "bonus" if accepted else "recovered",
        "checks": (Check(0, p, q, threshold, u, accepted),),
        "q_kind": "full",
        "last_p": 0.31,
        "last_u": 0.7,
        "last_logprob": -0.31,
        "nodes": (NodeScore(p, q, -0.9, 2),),
        "rows": (row, row),
    }
    return Round(**(fields | given))


def greedy(accepted):
    return event(
        checks=(Check(0, float(accepted), 1.0, float(accepted), None, accepted),),
        accepted=accepted,
        q_kind="point",
        last_u=None,
    )


def test_an_accepted_check_is_spelled_out_in_numbers():
    shown = decision(event(), 0, settings())
    assert shown.title == "Round 4, draft 1: ' cat'"  # rounds count from 1 on the page
    assert shown.lines == (
        "p = 0.62, q = 0.8, threshold = min(1, p / q) = 0.775",
        "u = 0.41 < 0.775 → accepted",
    )


def test_a_refused_check_says_by_how_much():
    shown = decision(event(u=0.9, accepted=False), 0, settings())
    assert shown.lines[-1] == "u = 0.9 ≥ 0.775 → rejected"


def test_a_draft_without_q_is_compared_with_p_itself():
    shown = decision(event(q=1.0, q_kind="point"), 0, settings())
    assert "q = 1" in shown.lines[0]
    assert "threshold is p itself" in shown.lines[0]


def test_greedy_names_the_favourite_and_the_rank_of_the_draft():
    shown = decision(greedy(False), 0, settings(params={}))
    assert shown.lines == (
        "The target's favourite is ' dog' (logprob -1.20); the draft was ' cat' "
        "(rank 3, logprob -0.90) → rejected",
        "At temperature 0 verification uses a one-hot p: 1 at the target's favourite, else 0. "
        "The bars show the model's own probabilities.",
    )
    agreed = decision(greedy(True), 0, settings(params={}))
    assert agreed.lines[0].endswith("which is what was drafted → accepted")


def test_greedy_without_details_still_names_the_token_that_replaced_the_draft():
    bare = event(
        checks=(Check(0, 0.0, 1.0, 0.0, None, False),),
        accepted=False,
        rows=(),
        nodes=(),
        last_u=None,
    )
    shown = decision(bare, 0, settings(params={}))
    assert shown.lines == (
        "The target's favourite is ' dog' (logprob -0.31); the draft was ' cat' → rejected",
    )
    assert shown.bars == ()
    assert "No distribution" in shown.reading


@pytest.mark.parametrize(
    ("u", "p", "said"),
    [
        (0.4996, 0.4999, "u = 0.4996 < 0.4999 → accepted"),
        (0.4999, 0.4996, "u = 0.4999 ≥ 0.4996 → rejected"),
        (0.9996, 0.9999, "u = 0.9996 < 0.9999 → accepted"),
        (0.5, nextafter(0.5, 1), "u = 0.5 < 0.5000000000000001 → accepted"),
        (nextafter(1, 0), 1.0, "u = just under 1 < 1 → accepted"),
        (0.00099996, 0.001, "u = 0.00099996 < 0.001 → accepted"),
        (0.5, 0.5, "u = 0.5 ≥ 0.5 → rejected"),
    ],
)
def test_numbers_that_are_compared_never_look_equal_unless_they_are(u, p, said):
    one = event(u=u, p=p, q=1.0, q_kind="point", accepted=u < p)
    line = decision(one, 0, settings()).lines[-1]
    verdict = line.split(" → ")[1]
    assert line.replace("9.9996e-04", "0.00099996") == said
    assert dict(cards(one, PIECES)["0"])["u"] == f"{line[4:].split(' → ')[0]} → {verdict}"


@pytest.mark.parametrize("value", [0.0001, 0.001, 0.25, 0.5, 0.999, 1 - 2**-53, 1.0])
def test_neighbouring_floats_are_written_apart(value):
    below = nextafter(value, 0)
    digits = digits_apart(below, value)
    assert number(below, digits) != number(value, digits)


def test_p_and_q_that_are_nearly_equal_are_written_apart():
    shown = decision(event(p=0.4996, q=0.4999), 0, settings())
    assert shown.lines[0].startswith("p = 0.4996, q = 0.4999, threshold")


def test_at_temperature_0_card_and_panel_agree_on_what_p_is():
    refused = greedy(False)
    card = dict(cards(refused, PIECES)["0"])
    assert card["p, one-hot"] == "0"
    assert "p" not in card
    shown = decision(refused, 0, settings(params={}))
    bar = next(bar for bar in shown.bars if bar.chosen)
    assert card["p, model's own"] == number(bar.p)
    assert cards(refused, PIECES)["0"][-1] == ("", shown.lines[-1])
    assert "one-hot" in card[""]
    assert "one-hot" in dict(cards(refused, PIECES)["last"])[""]
    assert not any("one-hot" in name + text for name, text in cards(event(), PIECES)["0"])


def test_a_token_drawn_from_p_itself_shows_p_alone():
    shown = decision(event(), "last", settings())
    assert shown.series == ("p",)
    assert shown.columns == ("Token", "p")
    assert [bar.name for bar in decision_chart(shown).data] == ["p, target"]
    assert "share" not in shown.reading
    replaced = decision(event(accepted=False), "last", settings())
    assert replaced.series == ("p", "q", "overlap", "residual")


def test_block_verification_shows_weight_test_and_the_longest_prefix():
    checks = (Check(0, 0.2, 0.8, 0.1, 0.5, True), Check(1, 0.9, 0.3, 0.75, 0.6, True))
    draft = Draft.chain([1, 2])
    one = event(draft=draft, checks=checks, path=(0, 1), nodes=(), rows=())
    first, second = (decision(one, node, settings(verifier="block")).lines for node in (0, 1))
    assert first == (
        "p = 0.2, q = 0.8; weight = min(1 · p / q, 1) = 0.25",
        "test of the first 1: u = 0.5 ≥ h = 0.1 → fails",
        "The longest prefix that passes has 2 → accepted",
    )
    assert second[0] == "p = 0.9, q = 0.3; weight = min(0.25 · p / q, 1) = 0.75"
    assert "passes" in second[1]


def test_h10_the_bonus_row_explains_why_there_is_one_more_row_than_drafts():
    shown = decision(event(), "last", settings())
    assert "2 rows for 1 drafts" in shown.lines[0]
    assert shown.lines[1] == "u = 0.7 picks ' dog', which had probability 0.31."


def test_the_recovered_token_is_drawn_from_the_residual():
    shown = decision(event(accepted=False), "last", settings())
    assert shown.lines[0].startswith("' cat' was refused")
    assert "max(p - q, 0)" in shown.lines[0]
    favourite = decision(greedy(False), "last", settings(params={}))
    assert "takes its place" in favourite.lines[0]


def test_plain_forced_and_ended_rounds_have_no_decision_to_show():
    plain = event(draft=Draft.chain([]), checks=(), path=(), last_kind="plain", nodes=())
    assert "plain decoding" in decision(plain, "last", settings()).lines[0]
    forced = event(draft=Draft.chain([]), checks=(), path=(), last_kind="forced", nodes=())
    assert decision(forced, "last", settings()).lines == (
        "You put this token in; nothing was drafted and nothing was drawn.",
    )
    ended = event(last_token=None)
    assert "ended on a draft" in decision(ended, "last", settings()).lines[0]


def test_drafts_nobody_checked_say_why():
    story = Story("x").add([" a", " b"], 0, " c").add([" a", " b"], 1, None, past_end=1)
    near = settings(pieces=story.spell.pieces)
    assert "Never checked" in decision(story.rounds[0], 1, near).lines[0]
    assert "behind the end" in " ".join(decision(story.rounds[1], 1, near).lines)


def test_e6_penalties_say_what_the_row_counted_and_what_p_was_before():
    with_penalty = settings(params={"temperature": 1.0, "repetition_penalty": 1.2})
    note = decision(event(), 0, with_penalty).lines[-1]
    assert "the drafts in front of this row" in note
    assert "0.407" in note  # exp(-0.9)
    assert not any("Penalties" in line for line in decision(event(), 0, settings()).lines)


def test_bars_cover_all_mass_and_follow_min_and_residual():
    bars = decision(event(), 0, settings()).bars
    assert sum(bar.p for bar in bars) == pytest.approx(1)
    assert sum(bar.q for bar in bars) == pytest.approx(1)
    assert [bar.p for bar in bars[:-1]] == sorted((bar.p for bar in bars[:-1]), reverse=True)
    cat = next(bar for bar in bars if bar.token == 1)
    assert (cat.overlap, cat.residual) == (0.62, 0)
    assert cat.chosen
    dog = next(bar for bar in bars if bar.token == 2)
    assert dog.residual == pytest.approx(0.2)


def test_the_drafted_token_is_among_the_bars_however_unlikely():
    pieces = {n: f" w{n}".encode() for n in range(20)}
    top = tuple(Candidate(n, 0.06, 0.0, -2.0 - n) for n in range(1, 15))
    row = Row(1, 1.0, None, (*top, Candidate(0, 0.0001, 1.0, -9.0)))
    one = event(draft=Draft.chain([0]), rows=(row, row))
    bars = decision(one, 0, settings(pieces=pieces)).bars
    assert 0 in [bar.token for bar in bars]
    assert len(bars) == 9


def test_greedy_bars_show_the_models_own_probabilities():
    bars = decision(greedy(False), 0, settings(params={})).bars
    assert bars[0].p == pytest.approx(0.4066, abs=1e-3)
    assert "p = 0.407" in decision(greedy(True), 0, settings(params={})).reading


@pytest.mark.parametrize("text", HOSTILE)
def test_i3_token_texts_in_the_chart_are_inert(text):
    pieces = {1: text.encode(), 2: text.encode(), 3: b"c"}
    figure = decision_chart(decision(event(), 0, settings(pieces=pieces)))
    spec = json.loads(figure.to_json())
    labels = spec["layout"]["yaxis"]["ticktext"]
    assert len(labels) == 4
    assert labels[-1] == "all other tokens"
    for label in labels[:-1] + spec["data"][0]["customdata"][:-1]:
        assert not set(label.removeprefix("▸ ")) & set("<>$ \n\t\r\x00\x1b")
    # two tokens that look the same keep a bar each
    assert spec["layout"]["yaxis"]["tickvals"] == [0, 1, 2, 3]


def test_the_chart_names_its_axis_series_and_second_cue():
    spec = json.loads(decision_chart(decision(event(), 0, settings())).to_json())
    assert spec["layout"]["xaxis"]["title"]["text"] == "probability"
    assert [t["name"] for t in spec["data"]] == [
        "q, draft",
        "p, target",
        "min(p, q)",
        "max(p - q, 0)",
    ]
    cues = [t["marker"]["pattern"]["shape"] for t in spec["data"]]
    assert len({(t["marker"]["color"], c) for t, c in zip(spec["data"], cues, strict=True)}) == 4


def test_the_table_twin_has_the_same_numbers_as_the_chart():
    shown = decision(event(), 0, settings())
    assert len(shown.rows) == len(shown.bars)
    assert shown.rows[0] == ("' cat'", "0.62", "0.8", "0.62", "0")
    assert len(shown.columns) == len(shown.rows[0])
