"""Every kernel compiles for GPUs that are not here, and what came out is what the app shows."""

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

pytest.importorskip("triton")
ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "specviz" / "recordings" / "kernels" / "compiled.json"

# Bytes of shared memory that one program may have (CUDA C++ Programming Guide, table 27).
SHARED = {"sm_80": 163 << 10, "sm_90": 227 << 10, "sm_100": 227 << 10, "sm_120": 99 << 10}
SPILLED = 32  # bytes of stack: what the assembler puts there outside of loops for more programs
INSTRUCTION = {
    ("sm_80", 16): "mma.sync m16n8k16",
    ("sm_80", 128): "mma.sync m16n8k16",
    ("sm_90", 16): "mma.sync m16n8k16",
    ("sm_90", 128): "wgmma m64",
    ("sm_100", 16): "mma.sync m16n8k16",
    ("sm_100", 128): "tcgen05.mma cta_group::1",
    ("sm_120", 16): "mma.sync m16n8k16",
    ("sm_120", 128): "mma.sync m16n8k16",
}

# In a process of its own: compiling is what is tested, so nothing may come from a cache.
CODE = """
import json, sys
from dataclasses import asdict
from kernels.compile import compile_variant, variants

capability = int(sys.argv[1])
for v in variants(capability):
    if v.block_m is None or (v.block_m, v.constants["DIRECT"]) in {(16, False), (128, True)}:
        made = compile_variant(v, capability)
        print(json.dumps(asdict(made) | {"key": made.key}))
"""


@pytest.fixture(scope="module")
def recorded() -> dict[str, dict[str, object]]:
    from kernels.compile import Compiled

    lines = json.loads(RECORDED.read_text())["compiled"]
    return {Compiled(**line).key: line for line in lines}


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100", "sm_120"])
def test_kernels_compile_and_are_as_recorded(
    arch: str, recorded: dict[str, dict[str, object]], tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, arch.removeprefix("sm_")],
        env=os.environ | {"TRITON_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    made = [json.loads(line) for line in done.stdout.splitlines()]
    assert {m["kernel"] for m in made} == {line["kernel"] for line in recorded.values()}
    same = metadata.version("triton") == json.loads(RECORDED.read_text())["triton"]
    for one in made:
        key, tile = one.pop("key"), one["block_m"]
        assert one["shared"] <= SHARED[arch], key
        assert one["spilled"] <= SPILLED, key
        assert one["instructions"] == ([INSTRUCTION[arch, tile]] if tile else []), key
        if same:  # another compiler may count registers otherwise
            assert one == recorded[key]


def test_the_record_holds_every_tile_on_every_architecture(
    recorded: dict[str, dict[str, object]],
) -> None:
    from kernels.compile import ARCHITECTURES
    from kernels.tree_attention.plan import TILES

    seen = {(line["arch"], line["block_m"]) for line in recorded.values() if line["block_m"]}
    assert seen == {(f"sm_{a}", tile) for a in ARCHITECTURES for tile in TILES}
    assert max(int(str(line["spilled"])) for line in recorded.values()) <= SPILLED
