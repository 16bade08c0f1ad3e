"""Every kernel against its reference, through the interpreter of triton in a process of its own.

The interpreter is chosen when triton is imported, for the whole process: other tests are not
slowed down. It knows no bf16; a GPU runs the same checks in both types (`gpu-check`).
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")
ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(900)  # 20 seconds of work, on a machine that may be busy


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "kernels.checks"],
        env=os.environ
        | {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines, done.stderr
    return {line["name"]: line["error"] for line in lines}


@pytest.mark.parametrize("op", ["tree_attention", "verify_tree", "verify_chain", "kv_keep"])
def test_kernels_agree_with_their_references(outcomes: dict[str, str], op: str) -> None:
    mine = {name: error for name, error in outcomes.items() if name.startswith(op)}
    assert mine
    assert {name: error for name, error in mine.items() if error} == {}
