"""Compile every Triton kernel for GPUs that are not here, and read what came out.

`python -m kernels.compile out.json` writes what the test compares and the app shows as "compiled,
not run". It needs triton, with its own assembler, and no GPU.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from kernels.tree_attention.plan import TILES, Device, Problem, make_plan

ARCHITECTURES = (80, 90, 100, 120)
_INSTRUCTION = re.compile(
    r"(wgmma)\.mma_async\.sync\.aligned\.(m\d+)n\d+k\d+"
    r"|(mma\.sync)\.aligned\.(m\d+n\d+k\d+)"
    r"|(tcgen05\.mma)\.(cta_group::\d)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One specialisation: types of the arguments, constants, and how it is launched."""

    kernel: str  # module.function under `kernels`
    types: dict[str, str]  # of arguments that are no constants
    constants: dict[str, int | bool]
    aligned: tuple[str, ...]  # arguments divisible by 16: pointers, and strides of whole heads
    warps: int = 4
    stages: int = 3

    @property
    def block_m(self) -> int | None:
        """Rows of the tile, for kernels that have one."""
        return self.constants.get("BLOCK_M")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """What the assembler made of a variant."""

    kernel: str
    arch: str
    block_m: int | None
    constants: dict[str, int | bool]
    warps: int
    registers: int  # per thread
    spilled: int  # bytes of stack per thread: 0 means that no register was spilled
    shared: int  # bytes per program
    instructions: tuple[str, ...]  # matrix instructions, none for kernels that multiply nothing

    @property
    def key(self) -> str:
        constants = ", ".join(f"{name}={value}" for name, value in sorted(self.constants.items()))
        return f"{self.arch} {self.kernel} {constants}"


def attention_variants(capability: int) -> Iterator[Variant]:
    """Every tile of the attention kernel for Llama-like heads (128 wide), and the rest."""
    device = Device(capability=capability, sms=132)
    for tile in TILES:
        problem = Problem(batch=1, rows=tile // 8, kv_heads=8, group=8, head_dim=128, longest=8192)
        plan = make_plan(problem, device, 1.0, block_m=tile)
        for direct in (True, False):
            strides = [f"{t}_{n}" for t in "qkv" for n in ("batch", "head")]
            tokens = ["q_row", "k_key", "v_key"]
            whole = ["group", "ancestors_batch", "rows", "words", "kv_heads", "splits"]
            pointers = dict.fromkeys("qkv", "*bf16") | {"past": "*i32", "ancestors": "*i32"}
            pointers["out"] = "*bf16" if direct else "*fp32"
            pointers |= dict.fromkeys(("top_out", "mass_out"), pointers["out"])
            numbers = dict.fromkeys([*strides, *tokens, *whole], "i32") | {"scale": "fp32"}
            yield Variant(
                kernel="tree_attention.attend_split",
                types=pointers | numbers,
                constants={
                    "HEAD_DIM": 128,
                    "BLOCK_D": 128,
                    "BLOCK_M": tile,
                    "BLOCK_N": plan.block_n,
                    "TAIL": plan.tail,
                    "DIRECT": direct,
                },
                aligned=(*pointers, *strides, *tokens),
                warps=plan.warps,
                stages=plan.stages,
            )
    pointers = {"parts": "*fp32", "tops": "*fp32", "masses": "*fp32", "out": "*bf16"}
    yield Variant(
        kernel="tree_attention.combine_splits",
        types=pointers | dict.fromkeys(("group", "rows", "kv_heads", "splits"), "i32"),
        constants={"HEAD_DIM": 128, "BLOCK_D": 128, "BLOCK_S": 32},
        aligned=tuple(pointers),
    )


def other_variants() -> Iterator[Variant]:
    """The verdict, greedy and with everything on, and the move of a path."""
    pointers = {
        "logits": "*fp32",
        "tokens_in": "*i64",
        "parents_in": "*i32",
        "q": "*fp32",
        "uniforms": "*fp64",
        "steps": "*i64",
        "whole": "*i64",
        "parts": "*fp32",
        "arrived": "*i32",
    }
    whole = dict.fromkeys(("stride", "vocab", "nodes", "top_k", "position"), "i32")
    real = dict.fromkeys(("temperature", "top_p", "min_p"), "fp32")
    for greedy in (True, False):
        names = ("TOP_K", "TOP_P", "DENSE", "PHILOX")
        yield Variant(
            kernel="verify_tree.verify_rows",
            types=pointers | whole | real | {"seed": "i64"},
            constants={
                "GREEDY": greedy,
                **dict.fromkeys(names, not greedy),
                "NODES": 16,
                "BLOCK": 2048,
            },
            aligned=(*pointers, "stride", "vocab"),
            warps=8,
        )
    pointers = {"cache": "*bf16", "start": "*i32", "path": "*i64", "accepted": "*i64"}
    strides = ("stride_0", "stride_1", "stride_2", "stride_token", "width")
    yield Variant(
        kernel="kv_keep.move_path",
        types=pointers | dict.fromkeys(("size_1", "size_2", *strides), "i32"),
        constants={"BLOCK": 128},
        aligned=(*pointers, *strides),
        warps=1,
    )


def variants(capability: int) -> tuple[Variant, ...]:
    """Return everything that is compiled for one architecture."""
    return (*attention_variants(capability), *other_variants())


def compile_variant(variant: Variant, capability: int) -> Compiled:
    """Compile to machine code and read registers, stack, shared memory and instructions."""
    import importlib

    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    op, function = variant.kernel.split(".")
    kernel = getattr(importlib.import_module(f"kernels.{op}.triton"), function)
    names = list(kernel.arg_names)
    signature = {n: variant.types.get(n, "constexpr") for n in names}
    divisible = {(names.index(n),): [["tt.divisibility", 16]] for n in variant.aligned}
    made = triton.compile(
        ASTSource(kernel, signature, variant.constants, divisible),
        target=GPUTarget("cuda", capability, 32),
        options={"num_warps": variant.warps, "num_stages": variant.stages},
    )
    registers, stack = _resources(made.asm["cubin"])
    return Compiled(
        kernel=variant.kernel,
        arch=f"sm_{capability}",
        block_m=variant.block_m,
        constants=variant.constants,
        warps=variant.warps,
        registers=registers,
        spilled=stack,
        shared=made.metadata.shared,
        instructions=instructions(made.asm["ptx"]),
    )


def instructions(ptx: str) -> tuple[str, ...]:
    """Return the matrix instructions of a listing, as "wgmma m64" or "mma.sync m16n8k16"."""
    found = {" ".join(filter(None, match)) for match in _INSTRUCTION.findall(ptx)}
    return tuple(sorted(found))


def _resources(cubin: bytes) -> tuple[int, int]:
    """Registers and bytes of stack per thread, as the tool that comes with triton reads them."""
    import triton

    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [str(tool), "-res-usage", file.name]
        listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    registers, stack = re.findall(r"REG:(\d+) STACK:(\d+)", listing)[-1]
    return int(registers), int(stack)


def main() -> int:
    """Compile everything and write it to the file named on the command line."""
    import triton

    made = [compile_variant(v, cap) for cap in ARCHITECTURES for v in variants(cap)]
    written = {"format": 1, "triton": triton.__version__, "compiled": [asdict(c) for c in made]}
    Path(sys.argv[1]).write_text(json.dumps(written, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
