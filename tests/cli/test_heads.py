"""Heads on the command line."""

from pathlib import Path

import pytest

from tests.cli.conftest import Call, Outcome
from tests.cli.folders import write_model
from tests.heads_on_disk import LAYERS, LAYOUTS, write_head


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "deep", layers=LAYERS)


@pytest.fixture(scope="module")
def heads(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("heads")
    return {scheme: str(write_head(scheme, folder / scheme)) for scheme in LAYOUTS}


@pytest.fixture
def draft(call: Call, deep: Path) -> Call:
    def run(scheme: str, *flags: str) -> Outcome:
        model = ("--model", str(deep), "--device", "cpu", "--dtype", "float32")
        shape = ("--prompt", "abcabc", "--max-tokens", "12", "--ignore-eos", "-D", "3", "--json")
        return call("run", *model, *shape, "--scheme", scheme, *flags)

    return run


@pytest.mark.parametrize("scheme", LAYOUTS)
def test_a_head_from_a_folder_decodes_the_plain_text(
    scheme: str, draft: Call, heads: dict[str, str]
) -> None:
    facts = draft(scheme, "--head", heads[scheme]).json
    assert facts["lossless"]["class"] == "identical"
    assert (facts["head"], facts["draft_model"]) == (scheme, None)
    assert facts["drafted"] > 0


def test_a_tree_and_confidence_are_flags(draft: Call, heads: dict[str, str]) -> None:
    tree = draft("eagle3", "--head", heads["eagle3"], "--tree", "2,2").json
    assert tree["lossless"]["class"] == "identical"
    cut = draft("dspark", "--head", heads["dspark"], "--confidence", "1").json
    assert cut["drafted"] == 0


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ((), "--head"),
        (("--head", "/nowhere/at/all"), "/nowhere/at/all"),
        (("--head", "", "--tree", "2,2"), "head is ''"),
        (("--tree", "8"), "K,DEPTH"),
        (("--tree", "8,99"), "tree_depth is 99"),
        (("--tree", "0,2"), "tree_top_k is 0"),
        (("--layer-ids", "2,x"), "numbers with commas"),
        (("--confidence", "1.5"), "confidence_threshold is 1.5"),
    ],
)
def test_h16_what_cannot_be_is_refused_with_a_way_out(
    flags: tuple[str, ...], said: str, draft: Call
) -> None:
    outcome = draft("eagle3", *flags)
    assert outcome.status == 2
    assert said in outcome.err
    assert "Traceback" not in outcome.err


def test_a_head_of_another_scheme_is_named(draft: Call, heads: dict[str, str]) -> None:
    outcome = draft("mtp", "--head", heads["dflash"])
    assert outcome.status == 2
    assert "dflash is a head for dflash" in outcome.err
