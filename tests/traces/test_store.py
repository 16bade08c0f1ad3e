"""Trace files: what is saved comes back, in standard JSON, whole or not at all."""

import gzip
import json
import os
import resource
import subprocess
import sys
from dataclasses import replace

import pytest

from specviz.config import SamplingParams
from specviz.errors import TraceError
from specviz.events import Candidate, Evidence, NodeScore, Row
from specviz.traces import schema
from specviz.traces.schema import HIDDEN, Branch, Trace, redact, shown_tokens
from specviz.traces.store import GZIP_FROM, library, load, load_header, save, to_json
from tests.traces.samples import CARD, PROMPT, ROUNDS, chain_round, sampled_trace, trace_of

RICH = trace_of(
    draft=replace(CARD, name="draft", sha="ab" * 32),
    parent=Branch("run-0", 2),
    title='<b>"quoted"</b> \u2028 \N{GRINNING FACE} $x$',
    params=SamplingParams(stop=("\n\n", "</s>"), stop_ids=(2,), logit_bias=((3, float("-inf")),)),
)


@pytest.mark.parametrize("trace", [trace_of(), RICH], ids=["small", "rich"])
@pytest.mark.parametrize("name", ["a.json", "a.json.gz", "new folder/a.json"])
def test_what_is_saved_comes_back(trace, name, tmp_path):
    save(trace, tmp_path / name)
    loaded = load(tmp_path / name)
    assert loaded == replace(trace, rounds=loaded.rounds)
    # seconds are rounded to 0.1 microseconds, nothing else in these rounds
    assert loaded.rounds == tuple(replace(r, began=round(r.began, 7)) for r in trace.rounds)
    assert list(tmp_path.rglob(".*")) == []


@pytest.mark.parametrize("seed", range(3))
def test_numbers_keep_six_digits_and_decisions_every_bit(seed):
    trace = sampled_trace(30, seed)
    loaded = load(to_json(trace).encode())
    assert load(to_json(loaded).encode()) == loaded
    for old, new in zip(trace.rounds, loaded.rounds, strict=True):
        assert new.checks == old.checks
        assert new.last_u == old.last_u
        assert all((c.u < c.threshold) == c.accepted for c in new.checks)
        assert [row.best for row in new.rows] == [row.best for row in old.rows]
        for a, b in zip(old.nodes, new.nodes, strict=True):
            assert (b.p, b.q, b.logprob) == pytest.approx((a.p, a.q, a.logprob), rel=1e-5)


def test_logprobs_of_certain_tokens_do_not_become_zero():  # H8
    row = Row(1, 0.0, None, (Candidate(1, 1.0, 0.0, -1.25e-9),))
    r = chain_round([], 0, 1, rows=(row,), last_logprob=-1.25e-9)
    loaded = load(to_json(trace_of((r,), lossless=None)).encode())
    assert loaded.rounds[0].rows[0].top[0].logprob == -1.25e-9
    assert loaded.rounds[0].last_logprob == -1.25e-9


def test_files_are_standard_json_with_infinity_as_a_word():
    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    data = json.loads(to_json(RICH), parse_constant=refuse)
    assert data["params"]["logit_bias"] == [[3, "-inf"]]
    assert data["schema"] == schema.SCHEMA
    assert data["rounds"][0]["checks"]["accepted"] == [True, True, False]


def test_c4_ids_and_bytes_are_exported():
    data = json.loads(to_json(trace_of()))
    assert data["prompt"] == list(PROMPT)
    assert {int(k): v.encode("latin-1") for k, v in data["pieces"].items()} == trace_of().pieces
    assert load(to_json(trace_of()).encode()).tokens == trace_of().tokens


def test_bytes_that_are_no_text_survive():
    pieces = {token: bytes(range(256)) for token in trace_of().pieces}
    loaded = load(to_json(trace_of(pieces=pieces)).encode())
    assert loaded.pieces == pieces


def test_text_that_utf8_cannot_hold_does_not_lose_the_run():
    loaded = load(to_json(trace_of(prompt_text="a\udcffb")).encode())
    assert loaded.prompt_text == "a?b"


def test_h1_every_drafted_token_keeps_what_its_decision_rests_on():
    data = json.loads(to_json(sampled_trace(1)))["rounds"][0]
    assert {"node", "p", "q", "threshold", "u", "accepted"} == data["checks"].keys()
    assert {"p", "q", "logprob", "rank"} == data["nodes"].keys()
    assert {"q_kind", "start", "scheme", "budget", "draft", "evidence", "timing"} <= data.keys()


def test_small_files_stay_readable_and_large_ones_are_gzipped(tmp_path):
    save(trace_of(), tmp_path / "small.json")
    save(sampled_trace(200), tmp_path / "large.json")
    assert (tmp_path / "small.json").read_bytes().startswith(b'{"format":"specviz-trace"')
    assert len(to_json(sampled_trace(200))) > GZIP_FROM
    large = (tmp_path / "large.json").read_bytes()
    assert gzip.decompress(large).startswith(b'{"format":"specviz-trace"')
    assert len(large) < 2**20  # 600 tokens in full detail
    save(sampled_trace(200), tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == large


def test_a_trace_opens_without_torch_or_streamlit(tmp_path):
    save(trace_of(), tmp_path / "a.json")
    code = (
        "import sys; sys.modules['torch'] = sys.modules['streamlit'] = None; "
        "from specviz.traces.store import load; import specviz.traces.timeline, specviz.metrics; "
        f"assert len(load({str(tmp_path / 'a.json')!r}).output) == 8; "
        "assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_full_disk_is_named_and_leaves_nothing_behind(tmp_path):
    save(trace_of(), tmp_path / "a.json")
    before = (tmp_path / "a.json").read_bytes()
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, limit[1]))
    try:
        with pytest.raises(
            TraceError, match=r"cannot write the trace .*a\.json: .* Free some space"
        ):
            save(RICH, tmp_path / "a.json")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert (tmp_path / "a.json").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_what_is_no_file_is_never_replaced(tmp_path, make):
    place = tmp_path / "place.json"
    make(place)
    kind = place.stat().st_ino
    for name in (place, tmp_path / "link.json"):
        if name != place:
            name.symlink_to(place)
        with pytest.raises(TraceError, match="a folder, a device or a pipe"):
            save(trace_of(), name)
    assert place.stat().st_ino == kind


def test_a_link_is_followed_to_the_file_behind_it(tmp_path):
    (tmp_path / "real").mkdir()
    real, link = tmp_path / "real" / "a.json", tmp_path / "link.json"
    link.symlink_to(real)
    for trace in (trace_of(), RICH):
        save(trace, link)
        assert link.is_symlink()
        assert load(real) == load(link)
    assert len(load(real).rounds) == len(RICH.rounds)


def test_a_folder_in_the_way_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "a.json", tmp_path):
        with pytest.raises(TraceError, match="cannot write the trace"):
            save(trace_of(), place)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_run_that_load_would_refuse_is_not_saved(tmp_path):
    nan = chain_round([], 0, 1, last_p=float("nan"))
    for rounds in ((nan,), ROUNDS[1:]):
        with pytest.raises(TraceError, match="cannot be saved: rounds"):
            save(trace_of(rounds, lossless=None), tmp_path / "a.json")
    assert list(tmp_path.iterdir()) == []


def test_a_score_that_is_not_a_number_names_its_place():  # B3
    scores = (NodeScore(0.5, 1.0, -0.1), NodeScore(float("nan"), 1.0, -0.1))
    with pytest.raises(TraceError, match=r"rounds\[0\]\.nodes\.p\[1\] is NaN"):
        to_json(trace_of((chain_round([1, 2], 0, 3, nodes=scores),), lossless=None))


def test_an_older_schema_is_brought_up_to_date(monkeypatch):
    old = json.loads(to_json(trace_of()))
    old["name"] = old.pop("title")
    next_ = schema.SCHEMA + 1
    new = {"schema": next_, "title": "a copy task"}
    monkeypatch.setitem(
        schema.MIGRATIONS,
        schema.SCHEMA,
        lambda d: {k: v for k, v in d.items() if k != "name"} | new,
    )
    monkeypatch.setattr(schema, "SCHEMA", next_)
    loaded = load(json.dumps(old).encode())
    assert (loaded.schema, loaded.title) == (next_, "a copy task")


OF_HEADS = ("note", "trained", "confidence", "unbiased", "unbiased_scores")
HEAD_OPTIONS = ("head", "layer_ids", "tree_depth", "tree_top_k", "confidence_threshold")


def test_files_of_schema_1_know_no_heads_and_load():
    old = json.loads(to_json(trace_of())) | {"schema": 1}
    for name in HEAD_OPTIONS:
        del old["config"]["options"][name]
    for told in old["rounds"]:
        for name in OF_HEADS:
            del told["evidence"][name]
    assert load(json.dumps(old).encode()) == load(to_json(trace_of()).encode())


def test_evidence_of_heads_comes_back_and_its_tokens_are_spelled():
    evidence = Evidence(
        scores=(0.5, 0.25),
        note="reused",
        trained=1,
        confidence=(0.75, 0.5, 0.125),
        unbiased=(40, 41),
        unbiased_scores=(0.5, 0.25),
    )
    trace = trace_of((chain_round([1, 2], 1, 3, evidence=evidence),), lossless=None)
    assert {40, 41} <= trace.pieces.keys()
    assert load(to_json(trace).encode()).rounds[0].evidence == evidence


@pytest.mark.parametrize(
    "wrong",
    [
        {"confidence": (0.5,)},
        {"confidence": (0.5, 2.0)},
        {"unbiased": (1,)},
        {"unbiased_scores": (0.5, 0.5, 0.5)},
        {"trained": -1},
    ],
)
def test_evidence_of_heads_that_does_not_fit_its_draft_is_refused(wrong):
    event = chain_round([1, 2], 1, 3, evidence=Evidence(**wrong))
    with pytest.raises(TraceError, match=f"evidence.{next(iter(wrong))}"):
        to_json(trace_of((event,), lossless=None))


def test_redacted_traces_keep_counts_and_lose_the_prompt(tmp_path):
    secret = trace_of(title="copy this \u2026", prompt=(60, 61, 62))
    safe = redact(secret)
    save(safe, tmp_path / "a.json")
    raw = (tmp_path / "a.json").read_text()
    assert "copy this" not in raw
    loaded = load(tmp_path / "a.json")
    assert loaded.redacted
    assert loaded.prompt == (HIDDEN,) * 3
    assert loaded.output == secret.output
    assert loaded.pieces.keys() == shown_tokens((), ROUNDS)
    assert loaded.piece(HIDDEN) == b""
    assert redact(trace_of(title="my run")).title == "my run"


def test_text_ends_where_the_visible_output_ends():
    trace = trace_of(pieces={t: f"{t},".encode() for t in range(10)})
    assert trace.text == "1,2,9,8,7,1,2,3,"
    assert trace.finish is not None
    cut = replace(trace, finish=replace(trace.finish, reason="stop_string", text_bytes=4))
    assert cut.text == "1,2,"
    assert isinstance(cut, Trace)


def test_a_library_lists_headers_newest_first_and_damage_last(tmp_path):
    save(trace_of(created="2026-01-01T00:00:00Z", title="old"), tmp_path / "z.json")
    save(sampled_trace(100, created="2026-02-01T00:00:00Z"), tmp_path / "a.json.gz")
    (tmp_path / "broken.json").write_bytes(b'{"format":"specviz-trace","schema":9}')
    (tmp_path / "notes.txt").write_text("not a trace")
    (tmp_path / "folder.json").mkdir()
    entries = library(tmp_path)
    assert [e.path.name for e in entries] == ["a.json.gz", "z.json", "broken.json"]
    assert entries[1].header.title == "old"
    assert entries[0].header.counts.rounds == 100
    assert "newer specviz" in entries[2].problem
    assert library(tmp_path / "nowhere") == ()


def test_headers_of_files_another_program_rewrote_are_read(tmp_path):
    data = json.loads(to_json(trace_of()))
    for indent in (None, 2):
        (tmp_path / "a.json").write_text(json.dumps(data, indent=indent))
        assert load_header(tmp_path / "a.json").title == "a copy task"
        assert load(tmp_path / "a.json").tokens == trace_of().tokens
