import pytest

from specviz import recordings
from specviz.errors import TraceError
from specviz.traces.store import load


def test_an_unknown_recording_lists_the_names() -> None:
    with pytest.raises(TraceError, match="there are"):
        recordings.path("nope")


def test_three_recordings_of_the_real_model_come_with_the_program() -> None:
    assert {"ngram-copy", "ngram-edit", "ngram-chat"} <= set(recordings.names())
    for name in recordings.names():
        trace = load(recordings.path(name))
        assert "smollm2-135m-instruct" in trace.target.name.lower()
        assert trace.title
        assert trace.environment.device_name
        assert trace.created
        assert trace.config.detail == "full"
        assert trace.lossless is not None
        assert trace.lossless.kind in ("identical", "near-tie")


def test_the_recording_of_a_copy_shows_drafts_being_accepted() -> None:
    trace = load(recordings.path("ngram-copy"))
    assert sum(len(event.path) for event in trace.rounds) > len(trace.output) / 2
