"""Every kernel against its reference: on a GPU, or on a CPU through the interpreter of triton.

`python -m kernels.checks` runs all and prints one line of JSON for each: `{"name":, "error":}`.
On a CPU set TRITON_INTERPRET=1 before; speed means nothing there, values do.
"""

import json
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Check:
    """A promise by name, and what raises AssertionError if it is broken on a device."""

    name: str
    run: Callable[[torch.device], None]


def all_checks(device: torch.device) -> Iterator[Check]:
    """Yield the checks that fit the device; a GPU gets more sizes and bf16."""
    from kernels.checks import attention, keep, verify

    yield from keep.checks()
    yield from verify.checks(device)
    yield from attention.checks(device)


def outcomes(checks: Iterable[Check], device: torch.device) -> Iterator[tuple[str, str]]:
    """Run all; yield each name with "" or what went wrong. One failure stops nothing."""
    for check in checks:
        try:
            check.run(device)
        except Exception as error:  # whatever it is, it is the result of this check
            place = traceback.extract_tb(error.__traceback__)[-1]
            yield check.name, f"{type(error).__name__} in {place.name}: {error}"
        else:
            yield check.name, ""


def main() -> int:
    """Print the outcomes; the status is 1 if one is bad."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    bad = 0
    for name, error in outcomes(all_checks(device), device):
        sys.stdout.write(json.dumps({"name": name, "error": error}) + "\n")
        bad += bool(error)
    return min(bad, 1)
