"""What is found on this machine to draft for a target, and why some of it is of no use."""

import json
import shutil

import pytest

from specviz import checkpoints
from specviz.bench.found import find_drafters, folders, user_folder
from specviz.models.load import load
from tests.cli.folders import write_model
from tests.heads_on_disk import LAYERS, LAYOUTS, write_head, write_small_llama


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("models") / "deep", layers=LAYERS)


@pytest.fixture(scope="module")
def loaded(model):
    return load(str(model), device="cpu", dtype="float32")


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path / "cache"))
    user_folder().mkdir(parents=True)
    return user_folder()


def look(loaded, tmp_path, where="yours"):
    return {f.name: f for f in find_drafters(loaded, tmp_path / "hub") if f.where == where}


@pytest.mark.parametrize("scheme", LAYOUTS)
def test_a_head_of_ours_is_found_with_its_scheme(loaded, mine, tmp_path, scheme):
    write_head(scheme, mine / "one")
    found = look(loaded, tmp_path)["one"]
    assert (found.scheme, found.problem) == (scheme, "")


def test_draft_models_are_told_by_their_vocabulary(loaded, model, mine, tmp_path):
    write_small_llama(model, mine / "small")
    shutil.copytree(model, mine / "whole")
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    vocab = tokenizer["model"]["vocab"]
    first, second = list(vocab)[:2]
    vocab[first], vocab[second] = vocab[second], vocab[first]
    shutil.copytree(model, mine / "other")
    (mine / "other" / "tokenizer.json").write_text(json.dumps(tokenizer))
    found = look(loaded, tmp_path)
    assert {f.scheme for f in found.values()} == {"draft_model"}
    assert (found["small"].problem, found["whole"].problem) == ("", "")
    assert "in the target and" in found["other"].problem


def test_a_head_of_another_model_is_listed_last_with_the_reason(loaded, mine, tmp_path):
    good = write_head("eagle3", mine / "good")
    for name, change in (("ids", {"vocab_size": 999}), ("wide", {"target_hidden_size": 64})):
        shutil.copytree(good, mine / name)
        settings = json.loads((good / "config.json").read_text())
        (mine / name / "config.json").write_text(json.dumps(settings | change))
    found = look(loaded, tmp_path)
    assert found["good"].problem == ""
    assert found["ids"].problem.startswith("It is made for a vocabulary of 999 ids; deep has 258")
    assert found["wide"].problem.startswith("It is made for hidden states of width 64; those of")
    every = find_drafters(loaded, tmp_path / "hub")
    assert [bool(f.problem) for f in every] == sorted(bool(f.problem) for f in every)


def test_shipped_heads_are_of_no_use_to_another_target(loaded, mine, tmp_path):
    found = look(loaded, tmp_path, "shipped")
    assert len(found) == len(list(checkpoints.SHIPPED.glob("*/*/config.json"))) > 0
    assert all(f.problem for f in found.values())
    assert all("49152" in f.problem for f in found.values())  # ids of the embedded model


def test_of_the_hub_only_heads_are_listed_by_their_id(loaded, model, mine, tmp_path):
    snapshots = tmp_path / "hub" / "models--someone--head" / "snapshots"
    snapshots.mkdir(parents=True)
    write_head("dflash", snapshots / "0")
    other = tmp_path / "hub" / "models--someone--model" / "snapshots"
    other.mkdir(parents=True)
    shutil.copytree(model, other / "0")
    found = look(loaded, tmp_path, "hub")
    assert list(found) == ["someone/head"]
    assert found["someone/head"].problem == ""


def test_damaged_files_are_listed_and_a_change_is_seen(loaded, mine, tmp_path):
    before = folders(tmp_path / "hub")
    (mine / "broken").mkdir()
    (mine / "broken" / "config.json").write_text("{")
    assert folders(tmp_path / "hub") != before
    assert look(loaded, tmp_path)["broken"].problem
