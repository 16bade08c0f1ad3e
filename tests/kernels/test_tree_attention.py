"""`tree_attention` on a CPU: two more backends, the choice among them, what is refused."""

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from kernels.checks.attention import DEEP, FLAT, SMALL, Case, agrees
from kernels.errors import BackendUnavailable, KernelError
from kernels.tree_attention import (
    Attend,
    Backend,
    Choices,
    Inputs,
    chain_bits,
    choose,
    pack_bits,
    tree_attention,
    tree_bits,
    unpack_bits,
)
from kernels.tree_attention.choice import Choice, shape_class
from kernels.tree_attention.plan import Device, Problem, make_plan
from kernels.tree_attention.reference import tree_attention as reference
from specviz.events import Draft
from specviz.verify.masks import ancestor_mask

CPU = torch.device("cpu")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_packed_rows_on_a_cpu_are_as_exact_as_plain_torch(case: Case, dtype: torch.dtype) -> None:
    agrees(case, dtype, "sdpa", CPU)


@pytest.mark.parametrize("parents", [None, FLAT, DEEP], ids=["chain", "flat", "deep"])
def test_flex_agrees_where_it_is_not_compiled(parents: tuple[int, ...] | None) -> None:
    case = Case(group=4, nodes=5, past=(63, 7), parents=parents, kv_heads=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is slow without a compiler
        agrees(case, torch.float32, "flex", CPU)


@pytest.mark.parametrize("parents", [(), FLAT, DEEP, tuple(range(-1, 69))])
def test_bits_say_what_the_mask_of_the_session_says(parents: tuple[int, ...]) -> None:
    bits = tree_bits(parents)
    draft = Draft(tuple(range(len(parents))), parents)
    assert torch.equal(unpack_bits(bits), ancestor_mask(draft))
    assert torch.equal(pack_bits(ancestor_mask(draft)), bits)
    assert torch.equal(chain_bits(1 + len(parents)), tree_bits(range(-1, len(parents) - 1)))


def test_a_fast_path_never_runs_what_was_not_asked_for() -> None:
    case = SMALL[1]
    inputs = case.inputs(CPU, torch.float32)
    with pytest.raises(BackendUnavailable, match="takes bfloat16 or float16, not float32"):
        tree_attention(inputs, case.how("triton"))
    with pytest.raises(BackendUnavailable, match="it needs a GPU"):
        tree_attention(case.inputs(CPU, torch.float16), case.how("flash"))


def test_the_choice_says_why_it_was_made_and_why_others_were_not() -> None:
    how = Attend(scale=1.0, longest=100)
    choice = choose(SMALL[4].inputs(CPU, torch.float16), how)
    assert choice.backend == "sdpa"
    assert "CPU" in choice.reason
    assert choice.refused["flash"] == "it needs a GPU"


def test_what_was_measured_once_is_remembered_across_processes(tmp_path: Path) -> None:
    def never(backend: Backend) -> Callable[[], Tensor]:
        raise AssertionError(f"{backend} was measured again")

    path = tmp_path / "choices" / "attention.json"
    first = Choices(path)
    first.made["a device | a shape"] = kept = Choice(
        "flex", "it was", {"flex": 1e-5}, {"flash": "no"}
    )
    first._keep()
    assert Choices(path).choose("a device | a shape", [], never, {}) == kept
    path.write_text("{broken")
    assert Choices(path).made == {}


def test_calls_of_one_class_share_a_measurement() -> None:
    def name(rows: int, longest: int) -> str:
        problem = Problem(batch=1, rows=rows, kv_heads=8, group=4, head_dim=64, longest=longest)
        return shape_class(problem, torch.float16, chain=True)

    assert name(5, 3000) == name(8, 4096)  # up to 32 rows, up to 4096 keys
    assert len({name(5, 3000), name(9, 3000), name(5, 5000), name(40, 3000)}) == 4


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"block_m": 48}, "allowed: 16, 32, 64, 128"),
        ({"splits": 65}, "allowed: 1 to 64"),
    ],
)
def test_a_tile_that_does_not_exist_is_refused(change: dict[str, int], says: str) -> None:
    problem = Problem(batch=1, rows=5, kv_heads=8, group=4, head_dim=64, longest=1000)
    with pytest.raises(KernelError, match=says):
        make_plan(problem, Device(capability=90, sms=132), 1.0, **change)


def test_splits_fill_the_device_and_never_become_slivers() -> None:
    def splits(batch: int, longest: int) -> int:
        problem = Problem(batch=batch, rows=4, kv_heads=8, group=4, head_dim=128, longest=longest)
        return make_plan(problem, Device(capability=90, sms=132), 1.0).splits

    assert splits(1, 32_000) == 33  # 8 programs become 264, two for each SM
    assert splits(1, 1000) == 3
    assert splits(64, 32_000) == splits(1, 100) == 1


def test_shapes_that_do_not_fit_are_refused_in_words() -> None:
    q, k = torch.zeros(1, 3, 4, 16), torch.zeros(1, 2, 32, 16)
    past, bits = torch.zeros(1, dtype=torch.int32), chain_bits(3)
    with pytest.raises(KernelError, match="query heads must divide"):
        Inputs(q[:, :, :3], k, k, past, bits)
    with pytest.raises(KernelError, match=r"needed: int32 \(3, 1\)"):
        Inputs(q, k, k, past, bits.long())
    with pytest.raises(KernelError, match="needed"):
        Inputs(q[..., :8], k, k, past, bits)


def test_garbage_after_the_new_keys_is_never_read() -> None:
    case = SMALL[4]
    inputs = case.inputs(CPU, torch.float16)
    clean = reference(inputs, 1.0)
    inputs.k[:, :, case.past[0] + inputs.rows :] = torch.inf
    assert torch.equal(reference(inputs, 1.0), clean)
    assert tree_attention(inputs, case.how("sdpa")).isfinite().all()
