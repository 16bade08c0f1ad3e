"""What a kernel refuses, in words: this folder stands alone, so its errors do too."""


class KernelError(ValueError):
    """An input no backend here can run: what was given, what is allowed."""


class BackendUnavailable(KernelError):
    """A backend that was asked for by name and does not work here; the message says why."""
