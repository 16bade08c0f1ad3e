"""Traces and sweeps that come with the program, each with its device, versions and date inside.

They are made by `python -m specviz.bench.record`.
"""

from pathlib import Path

from specviz.errors import TraceError
from specviz.words import _

FOLDER = Path(__file__).parent
SUFFIX = ".json.gz"
SWEEPS, SWEEP_SUFFIX = FOLDER / "sweeps", ".jsonl.gz"  # logs of sweeps, without traces


def names() -> tuple[str, ...]:
    """Return the names of the recordings, in alphabetical order."""
    return tuple(sorted(file.name.removesuffix(SUFFIX) for file in FOLDER.glob(f"*{SUFFIX}")))


def sweeps() -> tuple[Path, ...]:
    """Return the files of the recorded sweeps, in alphabetical order; there may be none."""
    return tuple(sorted(SWEEPS.glob(f"*{SWEEP_SUFFIX}")))


def path(name: str) -> Path:
    """Return the file of one recording.

    Raises:
        TraceError: There is none of that name; the message lists the names.
    """
    if name not in names():
        raise TraceError(
            _("there is no recording {name!r}; there are: {names}").format(
                name=name, names=", ".join(names())
            )
        )
    return FOLDER / f"{name}{SUFFIX}"
