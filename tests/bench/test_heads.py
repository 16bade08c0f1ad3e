"""Runs with heads on a tiny model: from a folder to a checked trace."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from specviz import checkpoints
from specviz.bench.drafts import find, keeps_for, listened_to, load_draft
from specviz.bench.runner import Request, open_session, run
from specviz.config import DrafterOptions, SamplingParams, SessionConfig
from specviz.drafters import make_drafter
from specviz.errors import ConfigError, SpecvizError, UnsupportedModel
from specviz.heads.base import Head
from specviz.metrics import alarms
from specviz.models.load import Loaded, load
from specviz.session import DecodeSession
from specviz.traces import store
from specviz.views.decision import Settings, decision
from specviz.views.sentences import refused_nodes
from tests.cli.folders import write_model
from tests.heads_on_disk import LAYERS, LAYOUTS, TAPS, write_head
from tests.stubs import random_table


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    folder = tmp_path_factory.mktemp("models") / "deep"
    write_model(folder, layers=LAYERS)
    return load(str(folder), device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def heads(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("heads")
    return {scheme: write_head(scheme, folder / scheme) for scheme in LAYOUTS}


def request(scheme: str, head: Path | None = None, **options: object) -> Request:
    chosen = DrafterOptions(head=None if head is None else str(head), **options)  # type: ignore[arg-type]
    return Request(
        prompt="abcabc",
        params=SamplingParams(max_tokens=60, ignore_eos=True),
        config=SessionConfig(scheme=scheme, draft_length=3, options=chosen),
    )


@pytest.fixture(scope="module")
def plain(deep: Loaded) -> tuple[int, ...]:
    return run(deep, request("none"), limit=0).output


@pytest.mark.parametrize("scheme", LAYOUTS)
def test_b6_an_untrained_head_keeps_the_text_and_raises_the_alarm(
    scheme: str, deep: Loaded, heads: dict[str, Path], plain: tuple[int, ...], tmp_path: Path
) -> None:
    trace = run(deep, request(scheme, heads[scheme]))
    assert trace.output == plain
    assert trace.lossless is not None
    assert trace.lossless.kind == "identical"
    assert any(alarm.kind == "dead" for alarm in alarms(trace.rounds))
    assert trace.draft is not None
    assert (trace.draft.name, bool(trace.draft.sha)) == (scheme, True)
    store.save(trace, tmp_path / "run.json")
    assert store.load(tmp_path / "run.json").draft == trace.draft


@pytest.mark.parametrize("scheme", LAYOUTS)
def test_a_sampled_run_with_a_head_repeats_exactly(
    scheme: str, deep: Loaded, heads: dict[str, Path]
) -> None:
    asked = request(scheme, heads[scheme])
    asked = replace(asked, params=replace(asked.params, temperature=1.0, max_tokens=20))
    assert run(deep, asked).output == run(deep, asked).output


def test_d6_a_head_with_part_of_the_vocabulary_drafts_nothing_else_and_says_its_size(
    deep: Loaded, heads: dict[str, Path]
) -> None:
    trace = run(deep, request("eagle3", heads["eagle3"], tree_depth=2, tree_top_k=2), limit=0)
    drafted = {token for event in trace.rounds for token in event.draft.tokens}
    assert drafted
    assert all(token % 2 == 0 for token in drafted)
    assert any(token % 2 for token in trace.output)
    assert trace.draft is not None
    assert trace.draft.vocab == trace.target.vocab // 2


def test_d6_a_draft_refused_for_a_token_the_head_lacks_says_so(
    deep: Loaded, heads: dict[str, Path], tmp_path: Path
) -> None:
    trace = run(deep, request("eagle3", heads["eagle3"]), limit=0)
    odd = {token for token in trace.pieces if token % 2}
    assert set(trace.undraftable) == odd
    store.save(trace, tmp_path / "run.json")
    again = store.load(tmp_path / "run.json")
    assert again.undraftable == trace.undraftable
    settings = Settings(again.pieces, again.params, again.config, again.undraftable)
    seen = set()
    for event in again.rounds:
        for node in refused_nodes(event):
            said = "not in the draft vocabulary" in " ".join(decision(event, node, settings).lines)
            assert said == (event.last_token in odd)
            seen.add(said)
    assert seen == {True, False}
    assert not run(deep, request("mtp", heads["mtp"]), limit=0).undraftable


def test_d8_q_of_a_head_with_part_of_the_vocabulary_is_compared_at_full_width(
    deep: Loaded, heads: dict[str, Path]
) -> None:
    asked = request("eagle3", heads["eagle3"])
    asked = replace(asked, params=replace(asked.params, temperature=1.0))
    session = open_session(deep, asked)
    session.step()
    scored = session.scored
    assert scored is not None
    assert scored.q is not None
    assert scored.q.shape == (3, deep.target.config.vocab) == scored.p[1:].shape
    assert scored.q.sum(-1).tolist() == pytest.approx([1.0] * 3, abs=1e-5)
    assert not scored.q[:, 1::2].any()


def test_confidence_shortens_the_drafts_of_dspark(deep: Loaded, heads: dict[str, Path]) -> None:
    free = run(deep, request("dspark", heads["dspark"]), limit=0)
    bound = run(deep, request("dspark", heads["dspark"], confidence_threshold=1.0), limit=0)
    assert all(len(event.draft) == 3 for event in free.rounds[:5])
    assert all(len(event.draft) == 0 for event in bound.rounds)
    assert all(len(event.evidence.confidence) == 1 for event in bound.rounds[:5])
    assert bound.output == free.output


@pytest.mark.parametrize("scheme", LAYOUTS)
def test_b5_a_target_that_keeps_no_hidden_states_stops_the_run(
    scheme: str, deep: Loaded, heads: dict[str, Path]
) -> None:
    asked = request(scheme, heads[scheme])
    head = load_draft(deep, asked.config)
    drafter = make_drafter(asked.config, deep.target, draft=head)
    deaf = DecodeSession(deep.target.fork(0), drafter, (1, 2, 3), asked.params, asked.config)
    with pytest.raises(SpecvizError, match=r"hidden states|with_taps"):
        deaf.step()


@pytest.mark.parametrize("scheme", LAYOUTS)
def test_b5_hidden_states_that_were_never_written_stop_the_run(
    scheme: str, deep: Loaded, heads: dict[str, Path]
) -> None:
    session = open_session(deep, request(scheme, heads[scheme]))
    features = session.target.features
    assert features is not None
    features[2] = 0
    with pytest.raises(SpecvizError, match="position 2 is all zeros"):
        session.step()


def test_a_target_listens_to_what_the_head_reads(deep: Loaded, heads: dict[str, Path]) -> None:
    head = load_draft(deep, request("dflash", heads["dflash"]).config)
    assert isinstance(head, Head)
    assert head.taps == TAPS
    assert not keeps_for(deep.target, head)
    assert keeps_for(listened_to(deep.target, head), head)
    assert keeps_for(deep.target, None)


def test_a_target_that_hides_its_states_is_refused_by_name(heads: dict[str, Path]) -> None:
    table = Loaded(random_table(), None, "table")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedModel, match=r"hidden states that heads read.*ngram"):
        load_draft(table, request("eagle3", heads["eagle3"]).config)


def test_layer_ids_override_the_folder_and_must_fit(deep: Loaded, heads: dict[str, Path]) -> None:
    head = load_draft(deep, request("eagle3", heads["eagle3"], layer_ids=(2,)).config)
    assert isinstance(head, Head)
    assert head.taps == (2,)
    with pytest.raises(SpecvizError, match="hidden states"):
        load_draft(deep, request("eagle3", heads["eagle3"], layer_ids=(9,)).config)


def test_a_shipped_head_is_found_by_the_target_on_its_card(
    deep: Loaded, heads: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = deep.target.config
    monkeypatch.setattr(checkpoints, "SHIPPED", tmp_path)
    assert find(shape, "mtp") is None
    with pytest.raises(ConfigError, match="needs a head"):
        load_draft(deep, request("mtp").config)
    write_head("mtp", tmp_path / "some-model" / "mtp")
    target = {"name": "another name", "sha": shape.sha}
    card = tmp_path / "some-model" / "mtp" / "card.json"
    card.write_text(json.dumps({"scheme": "mtp", "target": target}))
    assert find(shape, "mtp") == card.parent
    assert checkpoints.find("another name", "mtp") == card.parent
    assert find(shape, "eagle3") is None
    assert isinstance(load_draft(deep, request("mtp").config), Head)
