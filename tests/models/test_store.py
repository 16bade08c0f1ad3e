"""Folders of the cache are whole or absent, and what the disk refuses is said."""

import errno
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from specviz.errors import CacheError
from specviz.models.store import cache_dir, damage, make_folder, sha256, write_atomically


def fill(folder: Path) -> None:
    (folder / "a.bin").write_bytes(b"a" * 1000)
    (folder / "b.txt").write_text("b")


def refuse(folder: Path) -> None:
    pytest.fail(f"{folder} was filled again")


@pytest.mark.parametrize(
    ("platform", "variable", "tail"),
    [
        ("linux", "XDG_CACHE_HOME", "specviz"),
        ("win32", "LOCALAPPDATA", "specviz"),
        ("darwin", None, "Library/Caches/specviz"),
    ],
)
def test_the_cache_is_where_the_platform_wants_it(monkeypatch, tmp_path, platform, variable, tail):
    monkeypatch.delenv("SPECVIZ_CACHE", raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    if variable:
        monkeypatch.setenv(variable, str(tmp_path))
    assert cache_dir() == tmp_path / tail


def test_specviz_cache_overrides_the_platform(monkeypatch, tmp_path):
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path / "mine"))
    assert cache_dir() == tmp_path / "mine"


def test_a_folder_is_filled_once(tmp_path):
    final = tmp_path / "x" / "model"
    assert make_folder(final, fill) == final
    assert damage(final) is None
    make_folder(final, refuse)
    assert (final / "a.bin").read_bytes() == b"a" * 1000


@pytest.mark.parametrize("name", ["a.bin", "b.txt", "manifest.json"])
@pytest.mark.parametrize("harm", ["change", "cut", "delete"])
def test_damage_is_noticed_and_repaired(tmp_path, name, harm):
    final = make_folder(tmp_path / "model", fill)
    path = final / name
    content = path.read_bytes()
    if harm == "change":
        path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    elif harm == "cut":
        path.write_bytes(content[:-1])
    else:
        path.unlink()
    said = damage(final)
    assert said is not None
    assert name in said
    make_folder(final, fill)
    assert damage(final) is None


def test_a_copied_cache_is_hashed_once_and_then_trusted(tmp_path):
    final = make_folder(tmp_path / "model", fill)
    for path in final.iterdir():
        os.utime(path, ns=(1, 1))
    assert damage(final) is None
    written = json.loads((final / "manifest.json").read_text())["files"]["a.bin"]["mtime_ns"]
    assert (final / "a.bin").stat().st_mtime_ns == written


@pytest.mark.parametrize("content", ["[]", '{"files": 3}', '{"files": {"a.bin": 1}}', "\x00"])
def test_a_manifest_that_makes_no_sense_counts_as_damage(tmp_path, content):
    final = make_folder(tmp_path / "model", fill)
    (final / "manifest.json").write_text(content)
    assert damage(final) is not None


def test_what_a_crash_left_is_cleared_away(tmp_path):
    leftover = tmp_path / ".model.4242.partial"
    leftover.mkdir()
    (leftover / "a.bin").write_bytes(b"half")
    (tmp_path / "model").mkdir()
    final = make_folder(tmp_path / "model", fill)
    assert damage(final) is None
    assert not leftover.exists()


def test_a_failure_halfway_leaves_no_folder(tmp_path):
    def fail(folder: Path) -> None:
        fill(folder)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_folder(tmp_path / "model", fail)
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_says_how_to_go_on(tmp_path, monkeypatch, code):
    write = Path.write_bytes

    def full(path: Path, data: bytes) -> int:
        write(path, data[:10])
        raise OSError(code, os.strerror(code), str(path))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(CacheError, match=r"disk is full.*about 400 MB.*SPECVIZ_CACHE"):
        make_folder(tmp_path / "model", fill)
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def test_a_full_disk_under_the_real_converter_is_a_cache_error(tmp_path, monkeypatch):
    """A file size limit is the nearest thing to a full disk that needs no special disk."""
    from tests.models.gguf_files import write_gguf

    write_gguf(tmp_path / "tiny.gguf")
    code = (
        "import errno, resource, signal, sys\n"
        "from pathlib import Path\n"
        "from specviz.errors import CacheError\n"
        "from specviz.models.gguf import convert_gguf\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
        "try:\n    convert_gguf(Path(sys.argv[1]))\n"
        "except CacheError as error:\n    print('said:', error)\n"
    )
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path / "cache"))
    command = [sys.executable, "-c", code, str(tmp_path / "tiny.gguf")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("said: the cache folder"), done.stdout + done.stderr
    assert not list((tmp_path / "cache" / "models").glob("*/"))


def test_a_file_where_the_folder_should_be_is_a_cache_error(tmp_path):
    (tmp_path / "cache").write_text("not a folder")
    with pytest.raises(CacheError, match="SPECVIZ_CACHE"):
        make_folder(tmp_path / "cache" / "model", fill)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write all")
def test_a_read_only_cache_is_a_cache_error(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(CacheError, match="cannot be written"):
        make_folder(tmp_path / "model", fill)


def test_a_refused_permission_is_a_cache_error(tmp_path):
    def refused(folder: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(folder / "a.bin"))

    with pytest.raises(CacheError, match=r"a\.bin cannot be written"):
        make_folder(tmp_path / "model", refused)


def test_of_two_starts_one_works_and_the_other_waits(tmp_path):
    started, go_on, filled, waited = threading.Event(), threading.Event(), [], threading.Event()

    def slow(folder: Path) -> None:
        filled.append(folder)
        started.set()
        assert go_on.wait(20)
        fill(folder)

    first = threading.Thread(target=make_folder, args=(tmp_path / "model", slow))
    first.start()
    assert started.wait(20)
    progress = lambda what, _: waited.set()  # noqa: E731
    second = threading.Thread(target=make_folder, args=(tmp_path / "model", slow, progress))
    second.start()
    assert waited.wait(20)
    go_on.set()
    first.join(20)
    second.join(20)
    assert len(filled) == 1
    assert damage(tmp_path / "model") is None


def test_another_process_that_dies_does_not_block_for_ever(tmp_path):
    code = (
        "import os, sys\nfrom pathlib import Path\n"
        "from specviz.models.store import make_folder\n"
        "make_folder(Path(sys.argv[1]), lambda folder: os._exit(9))\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "model")]
    assert subprocess.run(command, check=False).returncode == 9
    assert damage(make_folder(tmp_path / "model", fill)) is None


def test_hashing_reports_how_far_it_is(tmp_path):
    path = tmp_path / "large"
    path.write_bytes(bytes(3 << 20))
    seen: list[float] = []
    digest = sha256(path, lambda _, done: seen.append(done))
    assert digest == "bbd05cf6097ac9b1f89ea29d2542c1b7b67ee46848393895f5a9e43fa1f621e5"
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_small_files_are_replaced_in_one_step(tmp_path):
    path = tmp_path / "deep" / "x.json"
    write_atomically(path, "one")
    write_atomically(path, "two")
    assert path.read_text() == "two"
    assert list(path.parent.iterdir()) == [path]
