"""How `make test` runs the notebooks: each in a kernel of its own, in under two minutes."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).parent.parent
# Translations have the code of the English ones, a test says, so it is not run twice.
collect_ignore = ["pt_BR"]
LIMIT = 120  # seconds of one notebook; a quiet machine needs a tenth of it

# Our own code and the cells raise on a warning, as in every other test; what others warn of does
# not end a notebook.
STARTUP = """\
import warnings
warnings.filterwarnings("error", module=r"(specviz|kernels|__main__)(\\.|$)")
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if getattr(item, "nbmake", False):
            item.add_marker(pytest.mark.timeout(LIMIT))
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Give the kernel the package, one thread as other tests have, and a profile of its own."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        startup = Path(folder) / "profile_default" / "startup"
        startup.mkdir(parents=True)
        (startup / "warnings.py").write_text(STARTUP, "utf-8")
        patch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
        patch.setenv("IPYTHONDIR", folder)
        patch.setenv("OMP_NUM_THREADS", "1")
        return (yield)
