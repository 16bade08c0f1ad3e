"""Hardware fit and Sweep with and without a recording of a GPU, made here by `gpu-check` itself."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from specviz import recordings
from specviz.cost.published import MLA
from specviz.errors import TraceError
from specviz.recordings.gpu import compiled, gpu_runs
from specviz.views.hardware_recorded import recorded_curves

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of recordings with what a CPU makes of the tiny sizes."""
    folder = tmp_path_factory.mktemp("recordings")
    shutil.copytree(recordings.FOLDER / "kernels", folder / "kernels")
    command = [sys.executable, "-m", "specviz", "gpu-check", "--tiny", "--device", "cpu"]
    done = subprocess.run(
        [*command, "--stages", "attention,decode", "--out", str(folder / "gpu")],
        env=os.environ | {"OMP_NUM_THREADS": "1", "SPECVIZ_CACHE": str(folder / "cache")},
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def page() -> AppTest:
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    test.switch_page("pages/hardware.py")
    test.query_params["section"] = "measured"
    test.run()
    assert not test.exception, test.exception
    return test


def text(test: AppTest) -> str:
    parts = (*test.markdown, *test.caption, *test.info, *test.warning)
    return "\n".join(item.value for item in parts).replace("\\", "")


def charts(test: AppTest) -> list[object]:
    return [*test.get("vega_lite_chart"), *test.get("arrow_vega_lite_chart")]


def test_without_a_recording_the_page_says_so_and_shows_what_was_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path))
    shutil.copytree(recordings.FOLDER / "kernels", tmp_path / "kernels")
    monkeypatch.setattr(recordings, "FOLDER", tmp_path)
    test = page()
    said = text(test)
    assert "No GPU recording comes with this installation yet" in said
    assert "aiconfigurator-core 0.12.0" in said
    assert "read from the source, not measured here" in said
    assert "compiled, not run" in said
    assert len(charts(test)) == 2
    tables = [frame.value for frame in test.dataframe]
    tiles = next(t for t in tables if "BLOCK_M" in t.columns)
    assert set(tiles["Architecture"]) == {"sm_80", "sm_90", "sm_100", "sm_120"}
    assert {"wgmma m64", "tcgen05.mma cta_group::1"} <= set(tiles["Matrix instruction"])


def test_a_recording_is_drawn_with_its_device_and_date(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path))
    monkeypatch.setattr(recordings, "FOLDER", recorded)
    (run,) = gpu_runs()
    test = page()
    said = text(test)
    assert f"Recorded on {run.device}, {run.date}" in said
    assert "Tiny sizes" in said
    assert "No GPU recording" not in said
    assert len(charts(test)) == 4
    picked = test.selectbox(key="hw_series-0-4")
    assert picked.options[0] == "G = 2, 48 cached, batch 1"
    picked.set_value((3, 48, 2)).run()
    assert "G = 3, 48 cached, batch 2" in text(test)


def test_recorded_passes_join_the_live_curves_of_sweep(recorded: Path) -> None:
    (run,) = gpu_runs(recorded)
    curves = recorded_curves((run,))
    assert len(curves) == len(run.passes) == 2
    for name, curve in curves.items():
        assert name.endswith(run.label)
        assert curve[1] == 1.0
        assert set(curve) == {1, 2, 4}


def test_a_damaged_recording_is_named_and_the_page_stays(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path / "cache"))
    shutil.copytree(recordings.FOLDER / "kernels", tmp_path / "kernels")
    whole = json.loads((recorded / "gpu" / "gpu-check.json").read_text())
    del whole["environment"]
    (tmp_path / "gpu-check.json").write_text(json.dumps(whole))
    with pytest.raises(TraceError, match=r"gpu-check\.json is not a file of gpu-check \(KeyError"):
        gpu_runs(tmp_path)
    monkeypatch.setattr(recordings, "FOLDER", tmp_path)
    assert "is not a file of gpu-check" in text(page())


def test_the_published_ladder_has_the_step_that_is_spoken_of() -> None:
    h200, *_others = MLA
    assert h200.relative[128] / h200.relative[64] == pytest.approx(1.94, abs=0.01)
    assert {one.block_m for one in compiled()[1] if one.block_m} == {16, 32, 64, 128}
