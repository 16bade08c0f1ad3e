"""A tiny loaded model for the tests of runs and measurements."""

import pytest

from specviz.models.load import Loaded, load
from tests.cli.folders import write_model


@pytest.fixture(scope="session")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    folder = write_model(tmp_path_factory.mktemp("models") / "tiny", context=1024)
    return load(str(folder), device="cpu", dtype="float32")
