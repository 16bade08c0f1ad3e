"""Keeping the process small."""

import ctypes
import sys


def give_back() -> None:
    """Return freed memory to the system where the C library would keep it.

    Batches differ in shape, so freed pieces rarely fit the next ones: without this a run on a CPU
    grows by some 50 MB a step.
    """
    if not sys.platform.startswith("linux"):
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's; others do not need it
    if trim is not None:
        trim(0)
