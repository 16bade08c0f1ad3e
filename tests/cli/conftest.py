"""One tiny model on disk for all tests of the command line, and a way to call it."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from specviz.cli import main
from tests.cli.folders import write_model


@dataclass(frozen=True)
class Outcome:
    """What one command line said."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, object]:
        return json.loads(self.out)


Call = Callable[..., Outcome]


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Run a command line inside this process."""

    def run(*argv: str) -> Outcome:
        try:
            status = main(argv)
        except SystemExit as refused:  # argparse
            status = int(refused.code or 0)
        shown = capsys.readouterr()
        return Outcome(status, shown.out, shown.err)

    return run


@pytest.fixture
def decode(call: Call, model: Path) -> Call:
    """`run` on the tiny model, 24 tokens, in float32; later flags win."""
    fixed = ("--model", str(model), "--device", "cpu", "--dtype", "float32", "--max-tokens", "24")

    def run(*flags: str) -> Outcome:
        chosen = {"--prompt", "--prompt-file", "--prompt-id"} & set(flags)
        given = () if chosen else ("--prompt", "abcabcabc")
        return call("run", *fixed, *given, *flags)

    return run
