"""Fixtures every test may use."""

import os
from pathlib import Path

import pytest
import torch

os.environ |= {"LANGUAGE": "en", "LC_ALL": "C.UTF-8"}  # tests read English, whoever runs them
torch.set_num_threads(1)  # tiny models: a second thread only waits


@pytest.fixture(scope="session")
def embedded_model() -> Path:
    """Folder of the embedded model, fetched once into the user cache."""
    from specviz.models.default import ensure_default

    return ensure_default()
