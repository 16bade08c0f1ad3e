"""The user's cache folder: complete folders appear in it at once or not at all."""

import errno
import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from specviz.errors import CacheError
from specviz.words import _

Progress = Callable[[str, float], None]  # what is happening, fraction done 0..1

MODEL_MB = 400  # what the embedded model takes while it is made ready
MANIFEST = "manifest.json"
CHUNK = 1 << 20


def silent(what: str, fraction: float) -> None:
    """Report progress to nobody."""


def cache_dir() -> Path:
    """Folder of everything we download or convert: SPECVIZ_CACHE or the platform's own place."""
    chosen = os.environ.get("SPECVIZ_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "specviz"


@contextmanager
def cache_errors(folder: Path) -> Iterator[None]:
    """Turn what the file system refuses into a CacheError that says how to go on."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise CacheError(
                _(
                    "the disk is full: {folder} cannot take more. The embedded model needs about "
                    "{model_mb} MB there. Free some space, or set SPECVIZ_CACHE to a folder on "
                    "another disk."
                ).format(folder=folder, model_mb=MODEL_MB)
            ) from error
        if isinstance(error, PermissionError) or error.errno == errno.EROFS:
            raise CacheError(
                _(
                    "{filename} cannot be written. Make it writable, or set SPECVIZ_CACHE to a "
                    "folder that is."
                ).format(filename=error.filename or folder)
            ) from error
        raise CacheError(
            _(
                "the cache folder {folder} failed: {error}. Repair or delete it, or set "
                "SPECVIZ_CACHE to another folder."
            ).format(folder=folder, error=error)
        ) from error


def sha256(path: Path, progress: Progress = silent, what: str = "Checking") -> str:
    """Hash a file, reporting how far it has come."""
    digest, done = hashlib.sha256(), 0
    size = path.stat().st_size or 1
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            done += len(chunk)
            progress(what, min(1.0, done / size))
    return digest.hexdigest()


def damage(folder: Path) -> str | None:
    """Say what is wrong with a folder that `make_folder` made; None if it is whole.

    A file whose size and modification time are as written is trusted: hashing hundreds of
    megabytes at every start would cost more than loading them. Anything else is hashed.
    """
    try:
        files = json.loads((folder / MANIFEST).read_text("utf-8"))["files"]
        for name, entry in files.items():
            path = folder / name
            stat = path.stat()
            if stat.st_size != entry["size"]:
                return f"{name} has {stat.st_size} bytes instead of {entry['size']}"
            if stat.st_mtime_ns != entry["mtime_ns"]:
                if sha256(path) != entry["sha256"]:
                    return f"{name} was changed"
                with suppress(OSError):  # copied, not changed: trust it next time
                    os.utime(path, ns=(stat.st_atime_ns, entry["mtime_ns"]))
    except FileNotFoundError as error:
        return f"{Path(error.filename).name} is missing"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"{MANIFEST} is damaged ({error})"
    return None


def make_folder(final: Path, fill: Callable[[Path], None], progress: Progress = silent) -> Path:
    """Return `final`, filled by `fill` unless it is there and whole.

    `fill` writes into a hidden folder beside `final`, which is flushed to disk and renamed when
    it is complete. Of several processes one works and the others wait for it.
    """
    if damage(final) is None:
        return final
    with cache_errors(final.parent):
        final.parent.mkdir(parents=True, exist_ok=True)
        with _alone(final, progress):
            if damage(final) is None:
                return final
            _remove_leftovers(final)
            partial = final.with_name(f".{final.name}.{os.getpid()}.partial")
            partial.mkdir()
            try:
                fill(partial)
                _seal(partial)
                partial.rename(final)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    return final


@contextmanager
def _alone(final: Path, progress: Progress) -> Iterator[None]:
    """Hold the lock of `final`; the system drops it if this process dies."""
    lock = FileLock(final.with_name(f".{final.name}.lock"))
    while True:
        try:
            lock.acquire(timeout=0)
            break
        except Timeout:
            progress(_("Another specviz is preparing this; waiting for it"), 0.0)
            time.sleep(0.2)
    try:
        yield
    finally:
        lock.release()


def _remove_leftovers(final: Path) -> None:
    """Delete what a crashed process left, and `final` itself, which is damaged."""
    for leftover in final.parent.glob(f".{final.name}.*.partial"):
        shutil.rmtree(leftover, ignore_errors=True)
    if final.is_dir():
        shutil.rmtree(final)
    else:
        final.unlink(missing_ok=True)


def _seal(folder: Path) -> None:
    """Flush every file to disk and write the manifest last."""
    files = {}
    for path in sorted(folder.iterdir()):
        _flush(path)
        stat = path.stat()
        files[path.name] = {
            "size": stat.st_size,
            "mtime_ns": stat.st_mtime_ns,
            "sha256": sha256(path),
        }
    manifest = folder / MANIFEST
    manifest.write_text(json.dumps({"schema": 1, "files": files}, indent=1), "utf-8")
    _flush(manifest)
    if os.name == "posix":
        _flush(folder)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_atomically(path: Path, text: str) -> None:
    """Replace a small file in one step."""
    with cache_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        try:
            partial.write_text(text, "utf-8")
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
