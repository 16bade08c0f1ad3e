"""What a draft costs is measured on real rounds, and the session decodes what it would have."""

import pytest

from specviz.bench.drafting import SCHEMES, as_text, main, measure
from specviz.bench.runner import Request, decode, open_session
from specviz.config import SamplingParams
from specviz.errors import ConfigError


def test_every_part_of_a_round_is_timed_and_operations_are_counted(loaded):
    config = SCHEMES["ngram"]
    params = SamplingParams(max_tokens=80, ignore_eos=True)
    request = Request(prompt="one two one two one two", params=params, config=config)
    cost = measure(loaded, "ngram", config, request)
    assert cost.draft.n == cost.score.n == cost.verify.n > 2
    assert cost.score.median > cost.draft.median >= 0
    assert cost.operations == 0  # a lookup multiplies nothing
    session = open_session(loaded, request)
    decode(session)
    assert 1 <= cost.committed <= 6
    row = as_text([cost]).splitlines()[2].split(" | ")
    assert row[0] == "| ngram"
    assert row[1] == "5"


def test_a_scheme_that_is_not_measured_is_refused():
    with pytest.raises(ConfigError, match="eagle3 tree"):
        main(["--schemes", "eagle9"])
