"""CASES.md tells the truth: every covered report has a test that names it."""

import re
from pathlib import Path

TESTS = Path(__file__).parent
ROW = re.compile(r"^\| ([A-I]\d+) \| ", re.MULTILINE)
NAMED = re.compile(r"(?:\b|_)([a-i][0-9]{1,2})(?=_|\b)", re.IGNORECASE)


def test_every_covered_case_is_named_by_a_test() -> None:
    covered = set(ROW.findall((TESTS / "CASES.md").read_text().split("## Waiting")[0]))
    sources = (p.read_text() for p in TESTS.rglob("test_*.py") if p != Path(__file__))
    named = {found.upper() for text in sources for found in NAMED.findall(text)}
    assert len(covered) > 50
    assert covered <= named
