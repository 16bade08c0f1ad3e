import json
from pathlib import Path

import pytest
import torch

from specviz.bench import report as reports
from specviz.bench.overhead import overhead
from specviz.bench.peers import TransformersPeer, check_peers
from specviz.bench.prompts import of_class
from specviz.bench.runner import environment
from specviz.bench.speed import Plan, against_peer, against_plain, common
from specviz.bench.spread import Spread
from specviz.errors import ConfigError
from specviz.models.load import Loaded

PLAN = Plan(prompts=of_class(["maths"])[:1], draft_length=3, tokens=12, repeats=2)


def silent(what: str) -> None:
    """Report to nobody."""


@pytest.fixture(scope="module")
def full(loaded: Loaded) -> reports.Report:
    peer = TransformersPeer.load(Path(loaded.spec), torch.device("cpu"), torch.float32)
    return reports.Report(
        date="2026-01-02",
        environment=environment(loaded),
        model=loaded.target.config.name,
        repeats=PLAN.repeats,
        draft_length=PLAN.draft_length,
        load=0.0,
        peers=against_peer(loaded, peer, PLAN, silent),
        schemes=against_plain(loaded, PLAN, silent),
        overheads=overhead(loaded, PLAN, "ngram", silent),
    )


def test_transformers_does_the_same_work_and_says_the_same(full: reports.Report) -> None:
    (row,) = full.peers
    assert row.tokens == 12
    assert row.same == 12
    assert row.ratio.n == PLAN.repeats


def test_a13_both_conventions_are_measured(full: reports.Report) -> None:
    (row,) = full.peers
    assert row.theirs.median > row.theirs_with_prefill.median > 0
    assert row.ours.median > row.ours_with_prefill.median > 0


def test_every_scheme_is_measured_beside_plain_decoding(full: reports.Report) -> None:
    assert [row.scheme for row in full.schemes] == ["none", "ngram", "suffix"]
    plain = full.schemes[0]
    assert plain.speedup == Spread(1.0, 1.0, 1.0, PLAN.repeats)
    assert plain.summary.acceptance_length == 1
    assert all(row.same for row in full.schemes)


def test_recording_is_measured_at_both_levels(full: reports.Report) -> None:
    assert [row.detail for row in full.overheads] == ["light", "full"]
    assert [row.allowed for row in full.overheads] == [0.03, 0.10]
    assert full.overheads[1].recorded.median > 0


def test_h14_the_table_has_the_columns_of_other_benches(full: reports.Report) -> None:
    text = reports.as_text(full)
    for column in ("task", "rounds", "accepted", "rate", "a.len", "pos accept"):
        assert column in text
    assert "transformers" in text
    assert "2026-01-02" in text
    assert "float32" in text


def test_markdown_tables_have_as_many_cells_in_each_line(full: reports.Report) -> None:
    tables = [
        block.splitlines()
        for block in reports.as_text(full, markdown=True).split("\n\n")
        if block.startswith("|")
    ]
    assert len(tables) == 3
    for table in tables:
        assert len({line.count("|") for line in table}) == 1


def test_json_has_the_medians_and_the_spread(full: reports.Report) -> None:
    known = json.loads(reports.as_json(full))
    assert set(known["peers"][0]["ratio"]) == {"median", "low", "high", "n"}
    assert known["schemes"][1]["acceptance_length"] >= 1
    assert known["schemes"][0]["acceptance_rate"] is None


def test_a18_repeats_far_apart_are_called_a_busy_machine() -> None:
    assert Spread.of([1.0, 1.0, 1.4]).busy
    assert not Spread.of([1.0, 1.05, 1.1]).busy


def test_a_spread_is_the_median_and_the_ends() -> None:
    assert Spread.of([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0, 3)


def test_outputs_are_compared_token_by_token() -> None:
    assert common((1, 2, 3), (1, 2, 4)) == 2
    assert common((1, 2), (1, 2, 4)) == 2


def test_an_unknown_peer_is_refused() -> None:
    with pytest.raises(ConfigError, match="transformers"):
        check_peers(["torch"])
