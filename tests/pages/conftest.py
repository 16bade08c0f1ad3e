"""A tiny model on disk, and ways to wait for the engine thread."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from specviz.config import DrafterOptions, SamplingParams, SessionConfig
from specviz.ui.run import Order, Run
from specviz.ui.runner import Engine
from specviz.ui.weights import Weights
from tests.cli.folders import write_model

PATIENCE = 30.0  # seconds; reached only by a hanging engine


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "tiny", context=4096)


@pytest.fixture(scope="session")
def weights() -> Weights:
    return Weights()


@pytest.fixture
def engine(weights: Weights) -> Iterator[Engine]:
    engine = Engine(weights)
    yield engine
    engine.close()
    engine._thread.join(PATIENCE)


@pytest.fixture
def order(model: Path) -> Callable[..., Order]:
    """Make an order for the tiny model; keywords go to the settings they belong to."""

    def make(
        *,
        scheme="ngram",
        D=4,
        check=0,
        prompt="abcabcabcabc",
        draft=None,
        spec=None,
        head=None,
        **params,
    ):
        return Order(
            prompt=prompt,
            params=SamplingParams(**{"max_tokens": 24, "ignore_eos": True} | params),
            config=SessionConfig(
                scheme=scheme, draft_length=D, options=DrafterOptions(draft_model=draft, head=head)
            ),
            spec=str(spec or model),
            check_limit=check,
        )

    return make


def until(holds: Callable[[], bool]) -> None:
    """Wait for the engine thread."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "the engine did not get there"
        time.sleep(0.002)


def settled(run: Run) -> Run:
    """Wait until the engine has nothing more to do for a run."""
    until(lambda: not run.active)
    return run
