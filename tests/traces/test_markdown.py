"""What one pastes into an issue: complete, and inert in whatever renders it."""

import re
from dataclasses import replace

import pytest

from specviz.events import LosslessReport
from specviz.traces.markdown import code, fence, issue
from specviz.traces.schema import redact
from tests.traces.samples import trace_of
from tests.views.stories import HOSTILE, Story


def test_it_has_versions_settings_numbers_divergence_rounds_and_ids():
    text = issue(trace_of())
    for part in (
        "- torch: `2.13.0`",
        "- specviz: `0.1.0`",
        "- device: `a test (cpu), float32, 1 threads`",
        "- scheme: `ngram`",
        "- logit_bias: `((3, -inf), (4, 0.5))`",
        "| tokens per round, bonus included | 2.000 |",
        "| accepted / drafted | 4 / 7 (57.1%) |",
        "identical over 8 tokens",
        "| round | output token | drafted | accepted | target's own |",
        "1 2 9 8 7 1 2 3",
    ):
        assert part in text


def test_what_was_not_measured_is_not_a_number():
    text = issue(trace_of(lossless=None))
    assert "| speedup, measured | not measured |" in text
    assert "Against plain decoding: not checked." in text


def test_a_bug_is_told_with_both_tokens_and_the_margin():
    report = LosslessReport("BUG", 8, 2, 5, 9, 3.0, 1.0, 2.0, 0.1)
    text = issue(trace_of(lossless=report, pieces=trace_of(lossless=report).pieces))
    assert "first at output token 2: plain 5" in text
    assert "logit margin 2, tolerance 0.1: not a rounding tie" in text


def test_a_second_run_stands_beside_the_first():
    one = Story("p").add([" a", " b"], 2, " c").trace()
    two = Story("p").add([" a", " x"], 2, " c").trace()
    text = issue(one, two)
    assert "| | this run | the other run |" in text.replace("|  |", "| |")
    assert "first at byte 2 of the output" not in text
    assert "first at byte 3 of the output; this run token 1" in text
    assert "` b`" in text
    assert "` x`" in text


def test_the_prompt_can_be_left_out():
    trace = replace(Story("secret").add([" a"], 1, " b").trace(), prompt_text="secret", title="")
    assert "secret" in issue(trace)
    assert "secret" not in issue(redact(trace))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_tokens_break_neither_table_nor_block(text):
    trace = Story(text).add([text, " ok"], 1, text).trace()
    page = issue(replace(trace, title=text, prompt_text=text))
    rounds = page[page.index("#### Rounds") : page.index("#### Prompt")]
    for line in rounds.splitlines()[2:]:
        if line:
            assert line.count("|") == 6, line
    outside = re.sub(r"(?ms)^(`{3,})text\n.*?^\1$", "", page)
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", outside)
    assert not re.search(r"(?<!\\)<(?!/?(details|summary)\b)", outside)


def test_code_and_blocks_are_never_closed_from_inside():
    assert code("a`b") == "``a`b``"
    assert code("`") == "`` ` ``"
    assert code("a|b\n") == "`a¦b↵`"
    assert fence("```\nx\n```").startswith("````text\n")
