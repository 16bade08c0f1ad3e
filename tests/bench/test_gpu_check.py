"""One command for a GPU, tested where there is none: tiny sizes, and stages that fail."""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import torch

from specviz.bench import gpu_check
from specviz.bench.gpu_check import STAGES, run_all, run_stage
from specviz.bench.gpu_fit import fit
from specviz.bench.gpu_plot import Chart

ROOT = Path(__file__).parents[2]
CPU = torch.device("cpu")
NOT_NEEDED = ("streamlit", "plotly", "altair", "pandas", "pyarrow", "gguf", "matplotlib", "pytest")


@pytest.mark.timeout(1500)  # a minute of work, on a machine that may be busy
def test_it_runs_end_to_end_with_little_installed_and_survives_a_stage_that_fails(
    tmp_path: Path,
) -> None:
    block = f"import sys\nsys.modules.update(dict.fromkeys({NOT_NEEDED!r}))\n"
    (tmp_path / "sitecustomize.py").write_text(block)
    out = tmp_path / "out"
    done = subprocess.run(
        [sys.executable, "-m", "specviz", "gpu-check", "--tiny", "--device", "cpu", "--out", out],
        env=os.environ
        | {
            "PYTHONPATH": str(tmp_path),
            "SPECVIZ_CACHE": str(tmp_path / "cache"),  # without the embedded model
            "OMP_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    found = json.loads((out / "gpu-check.json").read_text())
    stages = found["stages"]
    assert list(stages) == list(STAGES)
    states = {name: (stage["state"], stage["error"]) for name, stage in stages.items()}
    assert states.pop("schemes")[0] == "failed"
    assert "the embedded model is not in" in stages["schemes"]["error"]
    assert set(states.values()) == {("ok", "")}, states
    assert done.returncode == 1
    assert "failed schemes" in done.stdout
    assert found["tiny"] is True
    assert found["environment"]["versions"]["torch"].startswith("2.")
    assert stages["kernels"]["result"]["checks"] > 3
    points = stages["attention"]["result"]["points"]
    assert {(p["group"], p["batch"]) for p in points} == {(2, 1), (2, 2), (3, 1), (3, 2)}
    assert all(p["seconds"] > 0 for p in points)
    size = stages["decode"]["result"]["sizes"][0]
    assert [d["scheme"] for d in size["drafters"]] == ["eagle3", "mtp", "dflash", "dspark"]
    assert size["twins"][0]["eager_because"] == ["no GPU"]
    plots = sorted(path.name for path in out.glob("*.svg"))
    assert plots[0] == "attention-s48-b1-g2.svg"
    assert plots[-1] == "passes-tiny.svg"


def test_a_stage_that_hangs_is_ended_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(gpu_check.LIMITS, "device", 0.05)
    found = run_all(["device"], CPU, lambda stage: None, tiny=False)
    stage = found["stages"]["device"]
    assert stage["state"] == "failed"
    assert stage["error"] == "it took longer than 0.05 seconds"


def test_what_goes_wrong_in_a_stage_becomes_its_outcome(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path))
    outcome = run_stage("schemes", CPU, tiny=True, bandwidth=1e9)
    assert outcome.state == "failed"
    assert outcome.error.startswith("ModelNotFound: the embedded model is not in")


ROWS = (8, 16, 32, 64, 72, 96, 128, 136, 192, 256, 264, 384, 512)


def test_a_flat_cost_has_no_step() -> None:
    found = fit(ROWS, [1.0 + 0.004 * (-1) ** i for i in range(len(ROWS))])
    assert found.shape == "constant"
    assert found.text == "flat: no step seen"


def test_a_rising_cost_has_no_step() -> None:
    found = fit(ROWS, [1.0 + row / 100 for row in ROWS])
    assert found.shape == "linear"
    assert found.slope == pytest.approx(0.01)


@pytest.mark.parametrize("tile", [64, 128])
def test_a_staircase_is_found_with_the_edges_it_has(tile: int) -> None:
    found = fit(ROWS, [0.5 + 2.0 * -(-row // tile) + 0.001 * (row % 3) for row in ROWS])
    assert (found.shape, found.tile) == ("step", tile)
    assert found.slope == pytest.approx(2.0, rel=0.01)
    first = next(row for row in ROWS if row > tile)
    assert found.steps[0] == first
    assert found.text.startswith(f"steps of {tile} rows, at {first}")


def test_noise_is_not_taken_for_a_step() -> None:
    generator = torch.Generator().manual_seed(3)
    for _ in range(30):
        noise = torch.randn(len(ROWS), generator=generator).tolist()
        assert fit(ROWS, [1 + 0.02 * n for n in noise]).shape != "step"


def test_a_chart_is_a_document_with_every_line_named() -> None:
    chart = Chart(
        title="a < b",
        x_title="rows",
        y_title="ms",
        lines={"triton": [(1, 2.0), (2, 3.0)], "sdpa & co": [(1, 4.0)]},
        rules=(1.5, 99),
    )
    root = ET.fromstring(chart.svg())
    texts = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "a < b" in texts
    assert {"triton", "sdpa & co"} <= set(texts)
    assert len(list(root.iter("{http://www.w3.org/2000/svg}polyline"))) == 2
