"""Our folder shares its name with a package that transformers looks for: both must work."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Names that transformers 5.24 imports from the package, and a version it takes.
PACKAGE = """
__version__ = "0.18.2"
class Mode: ...
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return lambda *args, **options: (lambda module: module)
"""
MODEL = """
import torch
from transformers import LlamaConfig, LlamaForCausalLM
config = LlamaConfig(vocab_size=16, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
                     num_attention_heads=2, num_key_value_heads=1)
assert LlamaForCausalLM(config)(torch.tensor([[1, 2]])).logits.shape == (1, 2, 16)
"""
OURS = """
from specviz.models.own_kernels import find_own_kernels
find_own_kernels()
from kernels.tree_attention import tree_bits
assert tree_bits((-1, 0)).tolist() == [[1], [3], [7]]
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder as pip leaves it, with a stand-in for the package: it cannot be had everywhere."""
    home = tmp_path / "site"
    (home / "kernels" / "layer").mkdir(parents=True)
    (home / "kernels" / "__init__.py").write_text(PACKAGE)
    (home / "kernels" / "layer" / "__init__.py").write_text("")
    (home / "kernels" / "layer" / "mode.py").write_text("class Mode: ...\n")
    info = home / "kernels-0.18.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kernels\nVersion: 0.18.2\n")
    (info / "top_level.txt").write_text("kernels\n")
    return home


def run(code: str, *after: Path) -> None:
    """Run code in the root of the repository, with folders further down the path."""
    path = f"import sys; sys.path[:0] = [{str(ROOT)!r}]; sys.path += {[str(p) for p in after]!r}\n"
    done = subprocess.run(
        [sys.executable, "-c", path + code],
        env=os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr


HERE = "from transformers.utils import is_kernels_available as there\n"


def test_transformers_and_our_kernels_work_without_the_package() -> None:
    run(HERE + "assert not there()\n" + OURS + MODEL)


def test_transformers_and_our_kernels_work_with_the_package(package: Path) -> None:
    run(HERE + "assert there()\n" + OURS + MODEL, package)
