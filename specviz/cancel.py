"""Long work that can be told to stop: whoever starts it says how to ask, whoever does it asks.

Reading a prompt goes through targets, drafters and heads; none of them needs to know who may want
it to stop. `check_cancelled` between pieces of work costs well under a microsecond.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from specviz.errors import Cancelled
from specviz.words import _

_asked: ContextVar[Callable[[], bool]] = ContextVar("asked", default=lambda: False)


@contextmanager
def cancellable(asked: Callable[[], bool]) -> Iterator[None]:
    """Inside, in this thread, `check_cancelled` raises Cancelled as soon as `asked` says True."""
    before = _asked.set(asked)
    try:
        yield
    finally:
        _asked.reset(before)


def check_cancelled() -> None:
    """Raise Cancelled if this work was told to stop; to be called between pieces of long work."""
    if _asked.get()():
        raise Cancelled(_("stopped before the prompt was read"))
