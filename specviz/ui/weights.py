"""The models of this process: each is loaded once and shared by every browser session."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from specviz.models.load import Loaded
    from specviz.models.store import Progress

DEFAULT = "default"  # the embedded model
EMBEDDED = "SmolLM2-135M-Instruct"  # its name
KEEP = 3  # models held; the least recently used one is let go


class Turn:
    """A lock that serves its waiters in order, so two runs take turns round by round."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._next = 0
        self._serving = 0

    def __enter__(self) -> Self:
        with self._changed:
            ticket = self._next
            self._next += 1
            self._changed.wait_for(lambda: self._serving == ticket)
        return self

    def __exit__(self, *failure: object) -> None:
        with self._changed:
            self._serving += 1
            self._changed.notify_all()


@dataclass(frozen=True, slots=True)
class Loading:
    """How far the loading of one model has come; `fraction` is 0 to 1."""

    message: str
    fraction: float


def _load(spec: str, progress: "Progress") -> "Loaded":
    from specviz.models.load import load  # torch: seconds, and no page needs it to be drawn

    return load(spec, progress=progress)


class Weights:
    """Loaded models by name. The KV cache of a loaded target is never used: sessions fork it."""

    def __init__(self, load: "Callable[[str, Progress], Loaded]" = _load) -> None:
        self.turn = Turn()  # whoever computes holds it, one round at a time
        self._load = load
        self._lock = threading.Lock()
        self._loading = threading.Lock()  # one model at a time: two would only swap each other out
        self._held: OrderedDict[str, Loaded] = OrderedDict()
        self._progress: dict[str, Loading] = {}

    def get(self, spec: str) -> "Loaded":
        """Return the model, loading it if it is not held.

        Raises:
            ModelError: It cannot be used; asking again tries again.
            CacheError: It could not be fetched or stored.
        """
        with self._loading:
            held = self.held(spec)
            if held is not None:
                return held
            try:
                loaded = self._load(spec, lambda what, part: self._report(spec, what, part))
            finally:
                with self._lock:
                    self._progress.pop(spec, None)
            with self._lock:
                self._held[spec] = loaded
                while len(self._held) > KEEP:
                    self._held.popitem(last=False)
            return loaded

    def held(self, spec: str) -> "Loaded | None":
        """Return the model if it is in memory, without waiting."""
        with self._lock:
            if spec in self._held:
                self._held.move_to_end(spec)
            return self._held.get(spec)

    def progress(self, spec: str) -> Loading | None:
        """Return how far loading has come; None if this model is not being loaded."""
        with self._lock:
            return self._progress.get(spec)

    def _report(self, spec: str, what: str, part: float) -> None:
        with self._lock:
            self._progress[spec] = Loading(what, min(1.0, max(0.0, part)))
