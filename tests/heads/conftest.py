"""Fixtures of the tests of heads."""

from pathlib import Path

import pytest

from tests.heads.folders import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "head")
