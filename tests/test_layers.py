"""Who may import whom: read from the source, so nothing is executed."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROWS = (
    ("errors", "words", "cancel", "config", "events"),
    ("metrics", "traces", "cost", "engines", "views", "recordings", "checkpoints"),
    ("cache", "models", "verify", "heads"),
    ("drafters",),
    ("session", "lossless", "stops", "stopwatch", "detail"),
    ("train", "bench", "cli", "__main__"),
    ("notebook",),
    ("ui",),
    ("app", "pages"),
)
RANK = {name: rank for rank, row in enumerate(ROWS, 1) for name in row}
STANDARD_ONLY, NO_TORCH = 1, 2
HEAVY = {"torch", "transformers", "streamlit"}
SOURCES = sorted(
    [*ROOT.glob("specviz/**/*.py"), *ROOT.glob("pages/*.py"), ROOT / "app.py"],
)


def noun(path: Path) -> str:
    """The folder or file that has a row: `specviz/models/llama.py` is "models"."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[1] if parts[0] == "specviz" else parts[0]


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_up_the_list(path: Path) -> None:
    here = noun(path)
    if here == "__init__":
        return
    rank = RANK[here]
    for module in imports(path):
        top, _, rest = module.partition(".")
        if top == "specviz":
            there = rest.split(".")[0]
            assert there == "__version__" or RANK[there] <= rank, f"{here} imports {module}"
        if rank == STANDARD_ONLY:
            assert top == "specviz" or top in sys.stdlib_module_names, module
        if rank <= NO_TORCH:
            assert top not in HEAVY, module
        if top == "streamlit":
            assert rank >= RANK["ui"], module
        if here == "drafters" and module.startswith("specviz.drafters."):
            of = module.split(".")[2]
            assert path.stem == "__init__" or of in {"base", "prefix", "eligibility", "block"}, (
                f"{path.stem} imports {of}"
            )


def test_kernels_import_torch_and_triton_only() -> None:
    paths = list(ROOT.glob("kernels/**/*.py"))
    assert paths
    for path in paths:
        tops = {module.partition(".")[0] for module in imports(path)}
        assert tops <= {"torch", "triton", "kernels", *sys.stdlib_module_names}, path
        assert path.read_text().count("\n") <= 300, path


def test_kernels_stay_a_namespace_for_the_package_of_the_same_name() -> None:
    assert not (ROOT / "kernels" / "__init__.py").exists()


def test_references_of_kernels_can_be_read_at_a_glance() -> None:
    for path in (*ROOT.glob("kernels/*/reference.py"), *ROOT.glob("kernels/*/probs.py")):
        assert path.read_text().count("\n") <= 40, path


def test_a_trace_opens_without_torch_transformers_or_streamlit() -> None:
    code = (
        "import sys, specviz.traces.store, specviz.metrics, specviz.views.tokens\n"
        f"assert not {HEAVY!r} & set(sys.modules), sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_files_functions_and_pages_stay_small() -> None:
    for path in SOURCES:
        lines = path.read_text().count("\n")
        assert lines <= (60 if noun(path) in {"app", "pages"} else 300), f"{path}: {lines} lines"
