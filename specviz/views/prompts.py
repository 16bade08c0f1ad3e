"""What classes of prompts are called."""

from specviz.metrics.sweep import ALL
from specviz.words import _


def class_name(name: str) -> str:
    """Return the word for a class of prompts; that of a file's own class is the file's."""
    return {
        ALL: _("all prompts"),
        "chat": _("Chat"),
        "code": _("Code"),
        "edit": _("Code edit"),
        "copy": _("Copy"),
        "json": _("JSON"),
        "maths": _("Maths"),
    }.get(name, name)
