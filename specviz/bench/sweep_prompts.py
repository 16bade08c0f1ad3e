"""Prompts of a sweep from a file: one JSON object per line."""

import hashlib
import json
from pathlib import Path

from specviz.bench.sweep_plan import Prompt
from specviz.errors import PromptError
from specviz.words import _

TEXT_KEYS = ("prompt", "text")
CLASS_KEYS = ("class", "prompt_class", "category")
OWN = "own"  # the class of prompts that name none


def own_prompt(text: str, name: str = "", prompt_class: str = OWN, title: str = "") -> Prompt:
    """Return a prompt under an id that no other text has."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return Prompt(f"{name or prompt_class}-{digest}", prompt_class, text, title or name)


def read_prompts(path: Path) -> tuple[Prompt, ...]:
    """Read lines like {"prompt": "...", "class": "chat", "id": "..."}; class and id may miss.

    Raises:
        PromptError: The file cannot be read, or a line holds no prompt; says which.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise PromptError(
            _("the prompts {file} cannot be read ({error}); give a file of JSON lines").format(
                file=path, error=error
            )
        ) from error
    found = tuple(_prompt(line, n, path) for n, line in enumerate(lines, 1) if line.strip())
    if not found:
        raise PromptError(_("{file} holds no prompt; give at least one line").format(file=path))
    return found


def _prompt(line: str, number: int, path: Path) -> Prompt:
    try:
        known = json.loads(line)
    except ValueError:
        known = None
    if not isinstance(known, dict) or not isinstance(_first(known, TEXT_KEYS), str):
        raise PromptError(
            _(
                "line {n} of {file} is no prompt; each line must be a JSON object as "
                '{{"prompt": "text", "class": "chat"}}'
            ).format(n=number, file=path)
        )
    text, kind = str(_first(known, TEXT_KEYS)), str(_first(known, CLASS_KEYS) or OWN)
    return own_prompt(text, str(known.get("id") or ""), kind)


def _first(known: dict[str, object], keys: tuple[str, ...]) -> object:
    return next((known[key] for key in keys if key in known), None)
