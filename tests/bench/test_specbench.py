"""Questions of Spec-Bench: read by line, chosen by category and number."""

import json
from pathlib import Path

import pytest

from specviz.bench.specbench import (
    EACH,
    MT_BENCH,
    OTHERS,
    BenchPrompt,
    read_prompts,
    selection,
    some,
)
from specviz.errors import PromptError


def write(path: Path, *lines: object) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def question(number: int, category: str) -> dict[str, object]:
    turns = [f"first of {number}", "second"]
    return {"question_id": number, "category": category, "turns": turns}


def test_the_first_turn_is_the_prompt(tmp_path: Path) -> None:
    (found,) = read_prompts(write(tmp_path / "a.jsonl", question(81, "writing")))
    assert found == BenchPrompt("81", "writing", "first of 81")
    assert found.kind == "mt_bench"


def test_the_first_of_each_category_and_the_first_eight_by_number(tmp_path: Path) -> None:
    lines = [question(200 - n, name) for name in MT_BENCH for n in range(2)]
    lines += [question(1000 - 3 * n, name) for name in OTHERS for n in range(20)]
    chosen = selection(read_prompts(write(tmp_path / "a.jsonl", *lines)))
    assert len(chosen) == 48
    assert [prompt.category for prompt in chosen[:8]] == list(MT_BENCH)
    assert {prompt.id for prompt in chosen[:8]} == {"199"}
    assert [prompt.id for prompt in chosen if prompt.category == "rag"] == [
        str(1000 - 3 * n) for n in range(19, 19 - EACH, -1)
    ]


def test_too_few_questions_of_a_category_are_told(tmp_path: Path) -> None:
    prompts = read_prompts(write(tmp_path / "a.jsonl", *(question(1, n) for n in MT_BENCH)))
    with pytest.raises(PromptError, match="8 prompts of the category 'translation'"):
        selection(prompts)


@pytest.mark.parametrize(
    "line",
    [
        "nothing",
        {"question_id": 1, "category": "qa"},
        {"question_id": 1, "category": "qa", "turns": []},
        {"question_id": 1, "category": "qa", "turns": [" "]},
        {"category": "qa", "turns": ["a"]},
    ],
)
def test_a_line_that_is_no_question_is_told_by_its_number(tmp_path: Path, line: object) -> None:
    with pytest.raises(PromptError, match="line 2"):
        read_prompts(write(tmp_path / "a.jsonl", question(1, "qa"), line))


def test_files_without_questions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match="at least one line"):
        read_prompts(write(tmp_path / "a.jsonl"))
    with pytest.raises(PromptError, match="cannot be read"):
        read_prompts(tmp_path / "none.jsonl")


def test_some_prompts_are_spread_over_all() -> None:
    prompts = [BenchPrompt(str(n), "qa", "x") for n in range(12)]
    assert [prompt.id for prompt in some(prompts, 4)] == ["0", "3", "6", "9"]
    assert len(some(prompts, 20)) == 12
