"""The list of drafters on the Step page: what is of use can be chosen, the rest says why not."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from specviz.bench.found import user_folder
from specviz.ui.state import weights
from tests.cli.folders import write_model
from tests.heads_on_disk import LAYERS, write_head

ROOT = Path(__file__).parents[2]


@pytest.fixture
def page(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    target = write_model(tmp_path / "deep", layers=LAYERS)
    write_head("mtp", user_folder() / "mine")
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    test.query_params["target"] = str(target)
    test.run()
    assert not test.exception
    assert "listed here once the target is loaded" in "\n".join(c.value for c in test.caption)
    weights().get(str(target))
    test.run()
    assert not test.exception
    return test


def test_a_head_of_ones_own_is_chosen_with_a_click(page):
    mine = next(b for b in page.button if "mine" in b.label)
    assert not mine.disabled
    mine.click().run()
    assert not page.exception
    assert page.session_state["scheme"] == "mtp"
    assert page.session_state["head"] == str(user_folder() / "mine")


def test_what_is_of_no_use_is_disabled_and_says_why(page):
    shipped = [b for b in page.button if (b.key or "").startswith("found-") and b.disabled]
    assert len(shipped) == 5  # those of the embedded model
    said = "\n".join(c.value for c in page.caption)
    assert said.count("It is made for a vocabulary of 49152 ids") >= 4
