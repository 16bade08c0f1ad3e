"""Records of GPUs: every figure has a source, and ridges come out where others put them."""

import pytest

from specviz.cost.hardware import GPUS, MATMUL_SHARE, Gpu, find_gpu, from_json, to_json
from specviz.errors import ConfigError


@pytest.mark.parametrize("gpu", GPUS.values(), ids=GPUS)
def test_every_figure_has_a_source(gpu):
    for figure in ("bf16", "fp8", "fp4", "bandwidth", "memory", "sms", "exps"):
        if getattr(gpu, figure):
            assert gpu.sources[figure], figure


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        *(("a100", 153), ("h100", 295), ("h200", 206), ("b200", 292), ("gb200", 312)),
        *(("l40s", 419), ("rtx4090", 164), ("rtx5090", 117), ("mi300x", 247)),
        *(("epyc9654", 32), ("xeon6980p", 310)),
    ],
)
def test_the_matmul_ridge_of_bf16_kv_is_peak_over_bandwidth(name, rows):
    gpu = GPUS[name]
    assert gpu.rate("bfloat16") / gpu.bandwidth == pytest.approx(rows, rel=0.01)


def test_what_a_part_lacks_runs_in_the_next_wider_type():
    assert GPUS["a100"].rate("fp8") == GPUS["a100"].bf16
    assert GPUS["h200"].rate("fp4") == GPUS["h200"].fp8
    assert GPUS["h200"].rate("float32") == GPUS["h200"].bf16


def test_achieved_rates_lower_a_data_sheet_and_leave_a_measurement_alone():
    sheet = GPUS["h200"]
    assert sheet.achieved.bf16 == sheet.bf16 * MATMUL_SHARE
    assert sheet.achieved.how == "modelled"
    measured = Gpu(
        name="this", title="x", family="cpu", bf16=1e11, bandwidth=1e10, memory=1e9, how="measured"
    )
    assert measured.achieved is measured


def test_the_achieved_ridge_of_an_h200_is_about_180_flop_per_byte():
    real = GPUS["h200"].achieved
    assert real.bf16 / real.bandwidth == pytest.approx(182, rel=0.02)


def test_a_name_is_found_however_it_is_written_and_an_unknown_one_lists_the_others():
    assert find_gpu("RTX 4090").name == "rtx4090"
    with pytest.raises(ConfigError, match=r"'tpu'; known are a100.*gb300"):
        find_gpu("tpu")
    with pytest.raises(ConfigError, match="not measured yet"):
        find_gpu("this")


def test_a_measured_machine_survives_its_file_and_damage_counts_as_none():
    gpu = GPUS["b300"]
    assert from_json(to_json(gpu)) == gpu
    assert find_gpu("this", gpu) is gpu
    for text in ("", "[]", "{}", '{"name": 1}', to_json(gpu).replace("4.38", "x")[:-9]):
        assert from_json(text) is None


@pytest.mark.parametrize("bad", [0, -1, float("inf"), float("nan")])
def test_a_rate_that_cannot_be_is_refused(bad):
    with pytest.raises(ConfigError, match="bandwidth of x"):
        Gpu(name="x", title="x", family="cpu", bf16=1, bandwidth=bad, memory=1)
