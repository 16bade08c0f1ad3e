"""The engine computes on its own thread, stops when told, and tells what went wrong."""

import threading
import time

import pytest
from safetensors.torch import load_file, save_file

from specviz.bench.runner import Request, open_session
from specviz.events import Finish
from specviz.models import llama
from specviz.ui.run import Run
from specviz.ui.runner import Engine
from specviz.ui.weights import Turn, Weights
from tests.cli.folders import write_model
from tests.pages.conftest import PATIENCE, settled, until


def tokens(run):
    return tuple(token for event in run.rounds for token in event.committed)


def alone(weights, order):
    """The output of the same order without any thread."""
    request = Request(prompt=order.prompt, params=order.params, config=order.config)
    session = open_session(weights.get(order.spec), request)
    list(session)
    return session.output


def test_a_run_is_the_sessions_own(engine, weights, order):
    run = settled(engine.start(order()))
    assert run.status == "done"
    assert tokens(run) == alone(weights, order())
    assert run.finish == Finish("length", run.finish.detail)
    trace = run.trace()
    assert trace.output == tokens(run)
    assert all(token in trace.pieces for token in trace.tokens)


def test_a_trace_is_made_anew_only_when_something_changed(engine, order):
    run = settled(engine.start(order()))
    assert run.trace() is run.trace()


def test_rounds_one_at_a_time_are_the_same_run(engine, weights, order):
    run = settled(engine.start(order(), rounds=1))
    assert (run.status, len(run.rounds)) == ("paused", 1)
    while run.status == "paused":
        before = len(run.rounds)
        engine.advance(run, 1)
        settled(run)
        assert len(run.rounds) <= before + 1
    assert tokens(run) == alone(weights, order())


def test_g8_stop_really_stops_and_keeps_every_round(engine, order):
    run = engine.start(order(scheme="none", max_tokens=3000))
    until(lambda: len(run.rounds) > 3)
    engine.stop()
    settled(run)
    kept = list(run.rounds)
    time.sleep(0.05)
    assert run.status == "paused"
    assert run.rounds == kept
    assert len(kept) < 3000
    engine.advance(run)
    until(lambda: len(run.rounds) > len(kept))
    assert run.rounds[: len(kept)] == kept


def test_g8_a_second_run_cancels_the_first_cleanly(engine, weights, order):
    first = engine.start(order(scheme="none", max_tokens=3000))
    until(lambda: len(first.rounds) > 3)
    second = settled(engine.start(order()))
    assert first.status == "paused"
    assert second.status == "done"
    assert tokens(second) == alone(weights, order())


def test_ten_clicks_in_a_row_end_with_the_last_one(engine, order):
    runs = [engine.start(order(seed=n)) for n in range(10)]
    assert settled(runs[-1]).status == "done"
    assert all(not run.active for run in runs)


def test_two_tabs_never_mix(weights, order):
    engines = [Engine(weights), Engine(weights)]
    orders = [order(prompt="abcabcabc", max_tokens=60), order(prompt="xyzxyz12", max_tokens=60)]
    runs = [engine.start(o) for engine, o in zip(engines, orders, strict=True)]
    for run, o in zip(runs, orders, strict=True):
        assert tokens(settled(run)) == alone(weights, o)
    for engine in engines:
        engine.close()


def test_whoever_waits_is_served_next():
    turn, served = Turn(), []

    def worker(name):
        for _ in range(5):
            with turn:
                served.append(name)
                time.sleep(0.002)

    threads = [threading.Thread(target=worker, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert "aaa" not in "".join(served)
    assert "bbb" not in "".join(served)
    assert sorted(served) == ["a"] * 5 + ["b"] * 5


def test_a_missing_model_fails_with_a_way_out_and_the_next_run_works(engine, order, tmp_path):
    run = settled(engine.start(order(spec=tmp_path / "nowhere")))
    assert run.status == "failed"
    assert "nowhere" in run.failure.message
    assert not run.failure.bug
    assert settled(engine.start(order())).status == "done"


def test_nan_weights_stop_the_run_and_name_the_round(engine, order, tmp_path):
    broken = write_model(tmp_path / "nan", nan=True)
    run = settled(engine.start(order(spec=broken)))
    assert run.status == "failed"
    assert "NaN" in run.failure.message
    assert not run.failure.bug


def test_stop_before_the_first_round_takes_effect(order, model):
    loaded, going = Weights().get(str(model)), threading.Event()

    def slowly(spec, progress):
        going.wait(PATIENCE)
        return loaded

    engine = Engine(Weights(slowly))
    run = engine.start(order())
    assert not engine.stopping(run)
    engine.stop()
    assert engine.stopping(run)
    going.set()
    settled(run)
    until(lambda: not engine.busy)
    assert (run.status, run.rounds, run.session) == ("paused", [], None)
    assert not engine.stopping(run)
    engine.advance(run)
    assert settled(run).status == "done"
    engine.close()


@pytest.mark.parametrize("scheme", ["none", "draft_model"])
def test_stop_while_the_prompt_is_read_takes_effect_at_once(
    engine, weights, order, model, monkeypatch, scheme
):
    long = order(scheme=scheme, prompt="abc" * 400, draft=str(model))
    expected = alone(weights, long)
    monkeypatch.setattr(llama, "PIECE", 64)
    reading, pressed, passes = threading.Event(), threading.Event(), []
    forward = llama.LlamaTarget._forward

    def slowly(*args, **options):
        reading.set()
        pressed.wait(PATIENCE)
        passes.append(1)
        return forward(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(llama.LlamaTarget, "_forward", slowly)
        run = engine.start(long)
        assert reading.wait(PATIENCE)
        engine.stop()
        pressed.set()
        settled(run)
    assert (run.status, run.rounds, run.session, run.failure) == ("paused", [], None, None)
    assert len(passes) == 1
    monkeypatch.setattr(llama, "PIECE", 512)
    engine.advance(run)
    assert tokens(settled(run)) == expected


def test_stop_while_the_draft_model_reads_keeps_the_session(engine, order, model, monkeypatch):
    long = order(scheme="draft_model", prompt="abc" * 400, draft=str(model))
    until(lambda: not engine.busy)
    stopped = []
    check = llama.check_cancelled

    def stop_in_the_draft_model(run):
        if run.session is not None and not stopped:
            stopped.append(engine.stop())
        check()

    run = Run(origin="live", title="", order=long)
    monkeypatch.setattr(llama, "check_cancelled", lambda: stop_in_the_draft_model(run))
    settled(engine._begin(run, None))
    assert (run.status, run.rounds, len(stopped)) == ("paused", [], 1)
    assert run.session is not None
    engine.advance(run)
    assert settled(run).status == "done"
    assert all(event.path for event in run.rounds[:-1])


def test_an_unexpected_error_is_called_a_bug_and_the_thread_lives_on(order):
    def explode(spec, progress):
        raise ZeroDivisionError("whoops")

    engine = Engine(Weights(explode))
    for _ in range(2):
        run = settled(engine.start(order()))
        assert run.failure.bug
        assert "ZeroDivisionError" in run.failure.message
    engine.close()


@pytest.mark.parametrize("damage", ["missing", "corrupt"])
def test_b10_without_its_draft_model_a_run_is_plain_and_says_so(engine, order, tmp_path, damage):
    draft = tmp_path / "draft"
    if damage == "corrupt":
        write_model(draft)
        (draft / "model.safetensors").write_bytes(b"not weights")
    run = settled(engine.start(order(scheme="draft_model", draft=str(draft))))
    assert run.status == "done"
    assert "draft" in run.notice
    assert (run.trace().config.scheme, run.trace().config.draft_length) == ("none", 0)
    assert {event.scheme for event in run.rounds} == {"none"}


def test_a_draft_model_of_another_vocabulary_is_refused_by_name(engine, order, tmp_path):
    draft = write_model(tmp_path / "swapped", swap=True)
    run = settled(engine.start(order(scheme="draft_model", draft=str(draft))))
    assert run.status == "done"
    assert "5" in run.notice


def test_the_target_can_draft_for_itself(engine, order, model):
    run = settled(engine.start(order(scheme="draft_model", draft=str(model))))
    assert not run.notice
    assert sum(len(event.path) for event in run.rounds) == sum(len(e.draft) for e in run.rounds)


def test_a_branch_keeps_its_first_rounds_and_goes_on_differently(engine, order):
    trunk = settled(engine.start(order()))
    before = list(trunk.rounds)
    branch = settled(engine.branch(trunk, 2, order(scheme="none", temperature=1.0, seed=5)))
    assert branch.rounds[:2] == trunk.rounds[:2]
    assert {event.scheme for event in branch.rounds[2:]} == {"none"}
    assert trunk.rounds == before
    assert (branch.trace().parent.run_id, branch.trace().parent.round) == (trunk.id, 2)


def test_a_branch_with_the_same_settings_is_the_same_text(engine, order):
    trunk = settled(engine.start(order(temperature=1.0)))
    branch = settled(engine.branch(trunk, 3, order(temperature=1.0)))
    assert tokens(branch) == tokens(trunk)


def test_a_forced_token_opens_the_branch(engine, order):
    trunk = settled(engine.start(order()))
    branch = settled(engine.branch(trunk, 1, order(), forced=42))
    event = branch.rounds[1]
    assert (event.last_kind, event.committed) == ("forced", (42,))


def test_a_recording_can_be_branched_with_its_own_model(engine, order):
    trunk = settled(engine.start(order()))
    recording = Run.of_trace(trunk.trace(), "opened")
    branch = settled(engine.branch(recording, 2, order()))
    assert branch.failure is None
    assert tokens(branch) == tokens(trunk)


def test_a_recording_of_another_model_is_not_continued(engine, order, tmp_path):
    other = write_model(tmp_path / "other")
    file = other / "model.safetensors"
    save_file({name: 2 * tensor for name, tensor in load_file(file).items()}, file)
    recording = Run.of_trace(settled(engine.start(order(spec=other))).trace(), "opened")
    branch = settled(engine.branch(recording, 1, order()))
    assert branch.status == "failed"
    assert "choose that model" in branch.failure.message


def test_the_lossless_report_is_made_when_asked_for(engine, order):
    run = settled(engine.start(order(check=100)))
    assert run.trace().lossless.kind == "identical"
    unchecked = settled(engine.start(order()))
    assert unchecked.trace().lossless.kind == "not-run"
    engine.check(unchecked)
    assert settled(unchecked).trace().lossless.kind == "identical"


def test_closing_ends_the_thread(weights):
    engine = Engine(weights)
    engine.close()
    engine._thread.join(10)
    assert not engine._thread.is_alive()


def test_b11_a_warm_suffix_store_is_counted_and_can_be_forgotten(engine, order):
    def accepted():
        run = settled(engine.start(order(scheme="suffix", max_tokens=40)))
        return sum(len(event.path) for event in run.rounds)

    assert engine.remembered == (0, 0)
    cold = accepted()
    assert engine.remembered == (1, 40)
    assert accepted() > cold
    assert engine.remembered[0] == 2
    engine.forget()
    assert engine.remembered == (0, 0)
    assert accepted() == cold


def test_stop_ends_the_replay_too(engine, order):
    run = engine.start(order(max_tokens=400, check=400))
    until(lambda: run.status == "checking")
    engine.stop()
    settled(run)
    assert run.lossless.compared < 400
