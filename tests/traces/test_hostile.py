"""Damaged and hostile trace files: a TraceError that says what is wrong, never anything else."""

import copy
import gzip
import json

import pytest

from specviz.errors import TraceError
from specviz.traces import store
from specviz.traces.schema import SCHEMA
from specviz.traces.store import load, load_header, to_json
from tests.traces.samples import sampled_trace, story, trace_of

RAW = to_json(trace_of()).encode()
DATA = json.loads(RAW)
ONE_ROUND = json.loads(to_json(trace_of(story(([1, 2], 1, 3)), lossless=None)))
SAMPLED = json.loads(to_json(sampled_trace(1)))
SWAPS = (None, True, -1, 2**70, 1.5, 1e999, float("nan"), "x", "inf", "\ud800", [], [[]], {})
ROUNDS = "rounds"


def leaves(value, path=()):
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    if isinstance(value, list):
        for key, item in enumerate(value[:2]):
            yield from leaves(item, (*path, key))


def changed(data, path, value):
    data = copy.deepcopy(data)
    if not path:
        return value
    place = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return data


def refused(raw, match=None):
    with pytest.raises(TraceError, match=match) as error:
        load(raw if isinstance(raw, bytes) else json.dumps(raw).encode())
    return str(error.value)


@pytest.mark.parametrize(
    "raw", [RAW[:-2] + b',"rounds":[]}', RAW.replace(b'"u":', b'"p":0,"u":', 1)]
)
def test_a_key_that_appears_twice_is_refused(raw):
    """Programs differ in which of two values they keep."""
    refused(raw, "damaged: the key '(rounds|p)' appears twice")


@pytest.mark.parametrize("part", range(20))
@pytest.mark.parametrize("packed", [False, True], ids=["json", "gzip"])
def test_a_file_cut_short_anywhere_says_so(part, packed):
    raw = gzip.compress(RAW, mtime=0) if packed else RAW.rstrip()
    refused(raw[: len(raw) * part // 20], "cut short")


def test_a_gzip_file_with_a_flipped_byte_or_a_tail_is_damaged():
    packed = gzip.compress(RAW, mtime=0)
    for at in range(10, len(packed), 97):
        damaged = bytearray(packed)
        damaged[at] ^= 0x20
        refused(bytes(damaged), "damaged|cut short|not a trace")
    refused(packed + b"more", "more bytes follow")


def test_a_newer_file_names_both_versions_and_the_way_out():
    message = refused(changed(DATA, ("schema",), 7), "Update specviz")
    assert "schema 7" in message
    assert f"schema {SCHEMA}" in message


@pytest.mark.parametrize(
    "raw",
    [b"", b"null", b"[]", b"{}", b"hello", b"\xff\xfe\x00", b'{"format":"other"}', b"\x89PNG\r\n"],
)
def test_what_is_no_trace_is_called_that(raw):
    refused(raw, "not a trace|not JSON")


@pytest.mark.parametrize("version", [None, 0, -1, "1", 1.0, True, []])
def test_a_schema_must_be_a_number_we_know(version):
    refused(changed(DATA, ("schema",), version), "schema")


def outcome(data):
    """The refusal, "" if it was read; whatever else is raised fails the test."""
    try:
        load(json.dumps(data).encode())
    except TraceError as error:
        return str(error)
    return ""


HEAD = [path for path in leaves(ONE_ROUND) if ROUNDS not in path]
ROUND = [path for path in leaves(SAMPLED) if ROUNDS in path]


@pytest.mark.parametrize(("data", "paths"), [(ONE_ROUND, HEAD), (SAMPLED, ROUND)])
def test_every_value_of_another_type_is_refused_or_read_never_anything_else(data, paths):
    messages = [outcome(changed(data, path, value)) for path in paths for value in SWAPS]
    assert max(map(len, messages)) < 500
    # what is read is a number for a number, any text for a title, null where it is allowed
    assert sum(map(bool, messages)) > 0.85 * len(messages)


def test_every_missing_key_is_named_or_has_a_default():
    for path in leaves(ONE_ROUND):
        if path and isinstance(path[-1], str):
            data = copy.deepcopy(ONE_ROUND)
            place = data
            for step in path[:-1]:
                place = place[step]
            del place[path[-1]]
            message = outcome(data)
            assert not message or any(
                word in message for word in (*map(str, path[-2:]), "columns", "counts")
            ), path


@pytest.mark.parametrize("key", ["__proto__", "constructor", "__class__", "", "a" * 10_000])
@pytest.mark.parametrize("path", [(), ("config",), (ROUNDS, 0), (ROUNDS, 0, "draft"), ("pieces",)])
def test_keys_that_do_not_belong_are_refused(key, path):
    refused(changed(DATA, (*path, key), {"x": 1}), "has the key|allowed")


def test_a_gzip_bomb_stops_at_the_limit(monkeypatch):
    monkeypatch.setattr(store, "MAX_BYTES", 2**20)
    refused(gzip.compress(b" " * 2**24, mtime=0), "too large: a trace holds up to 1 MiB")
    refused(b" " * (2**20 + 1), "too large")


@pytest.mark.parametrize("deep", [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 5_000_000])
def test_nesting_has_an_end(deep):
    refused(deep, "nested too deeply|lists and objects")


def test_a_number_with_ten_thousand_digits_is_refused():
    refused(RAW.replace(b'"index":0', b'"index":' + b"9" * 10_000), "not JSON")


@pytest.mark.parametrize("word", [b"NaN", b"Infinity", b"-Infinity"])
def test_numbers_json_does_not_have_are_refused(word):
    refused(RAW.replace(b'"began":0.0', b'"began":' + word), "not a JSON number")


# What the types allow and the story does not.
WRONG = {
    "a parent after its node": ((ROUNDS, 0, "draft", "parents"), [1, -1, 0], "parents"),
    "a node that is its own parent": ((ROUNDS, 0, "draft", "parents"), [-1, 1, 1], "parents"),
    "fewer parents than tokens": ((ROUNDS, 0, "draft", "parents"), [-1, 0], "parents"),
    "a path outside the draft": ((ROUNDS, 0, "path"), [0, 1, 7], "path"),
    "a negative node": ((ROUNDS, 0, "path"), [-1, 0], "path"),
    "a path that jumps": ((ROUNDS, 0, "path"), [1], "child of the one before"),
    "a path twice over": ((ROUNDS, 0, "path"), [0, 0], "child of the one before"),
    "a kept node past the end": ((ROUNDS, 0, "past_end"), [1], "child of the one before"),
    "a check of no node": ((ROUNDS, 0, "checks", "node"), [0, 1, 5], "checks"),
    "two checks of a node": ((ROUNDS, 0, "checks", "node"), [0, 1, 1], "each node once"),
    "a check against the path": ((ROUNDS, 0, "checks", "accepted"), [True, True, True], "path"),
    "columns of unequal length": ((ROUNDS, 0, "checks", "p"), [1.0], "unequal"),
    "a round that commits nothing": ((ROUNDS, 1, "last_token"), None, "last_token"),
    "a start that does not add up": ((ROUNDS, 2, "start"), 6, "start"),
    "an index that is not its place": ((ROUNDS, 2, "index"), 1, "index"),
    "a negative time": ((ROUNDS, 0, "timing", "draft"), -0.1, "timing.draft"),
    "a probability above 1": ((ROUNDS, 0, "checks", "p"), [1.0, 1.0, 1.5], "1.5"),
    "a score for too few nodes": (
        (ROUNDS, 0, "nodes"),
        {"p": [0.5], "q": [1], "logprob": [-1], "rank": [0]},
        "nodes",
    ),
    "rows for too few nodes": (
        (ROUNDS, 0, "rows"),
        [{"best": 1, "entropy": 0.1, "draft_entropy": None, "top": DATA[ROUNDS][0]["nodes"]}],
        "rows",
    ),
    "a span that ends before it starts": ((ROUNDS, 0, "evidence", "match"), [5, 2], "start before"),
    "a scheme with markup": ((ROUNDS, 0, "scheme"), "<script>", "scheme"),
    "a formula for a scheme": ((ROUNDS, 0, "scheme"), "=cmd()", "scheme"),
    "a run id that is a path": (("run_id",), "../../etc/passwd", "run_id"),
    "a drafted id without a piece": ((ROUNDS, 0, "draft", "tokens"), [1, 2, 33], "pieces is"),
    "an id past the vocabulary": ((ROUNDS, 0, "draft", "tokens"), [1, 2, 64], "0 to 63"),
    "a hidden id among drafts": ((ROUNDS, 0, "draft", "tokens"), [1, 2, -1], "0 to 63"),
    "a prompt hidden in part": (("prompt",), [5, -1, 7], "redacted"),
    "an empty prompt": (("prompt",), [], "prompt"),
    "a piece that is no bytes": (("pieces", "1"), "\u0142", "above 255"),
    "counts of another run": (("counts", "accepted"), 99, "counts"),
    "heads that cannot be grouped": (("target", "kv_heads"), 4, "divisor"),
    "no heads": (("target", "kv_heads"), 0, "kv_heads"),
    "a divergence after the end": (("lossless", "first_divergence"), 8, "divergence"),
    "a plain decoding before time": (("lossless", "plain_tpot"), -1.0, "lossless.plain_tpot"),
    "an endless prefill": (("prefill_seconds",), "inf", "prefill_seconds"),
    "a bug nowhere": (("lossless", "kind"), "BUG", "without a first_divergence"),
    "a temperature below 0": (("params", "temperature"), -1.0, "temperature is -1.0"),
    "an unknown verifier": (("config", "verifier"), "trust me", "allowed: auto"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_story_that_does_not_add_up_is_refused(name):
    path, value, match = WRONG[name]
    refused(changed(DATA, path, value), match)


# Two nodes kept, the third refused: draws that say so, and draws that do not.
@pytest.mark.parametrize(
    ("u", "holds"),
    [
        ((0.1, 0.1, 0.9), True),
        ((0.9, 0.1, 0.9), True),  # block verification: a later test passed
        ((0.1, 0.9, 0.9), False),
        ((0.1, 0.1, 0.1), False),
        ((0.1, 0.1, None), True),
    ],
)
def test_a_decision_that_contradicts_its_own_numbers_is_refused(u, holds):
    at = (ROUNDS, 0, "checks")
    data = changed(changed(DATA, (*at, "u"), u), (*at, "threshold"), [0.5, 0.5, 0.5])
    message = outcome(data)
    assert not message if holds else "u < threshold" in message


def test_a_round_told_twice_is_refused():
    refused(changed(DATA, (ROUNDS,), [*DATA[ROUNDS], DATA[ROUNDS][-1]]), "index")


def test_errors_name_file_and_place(tmp_path):
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(changed(DATA, (ROUNDS, 1, "timing", "score"), "fast")))
    with pytest.raises(
        TraceError, match=r"mine\.json is damaged: rounds\[1\]\.timing\.score is 'f"
    ):
        load(file)


@pytest.mark.parametrize("read", [load, load_header])
def test_files_that_are_not_there_are_named(read, tmp_path):
    with pytest.raises(TraceError, match=r"none\.json: cannot be opened: No such file"):
        read(tmp_path / "none.json")
    with pytest.raises(TraceError, match="cannot be opened"):
        read(tmp_path)
