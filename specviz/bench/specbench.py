"""Prompts in the format of Spec-Bench (arXiv:2401.07851), and the ones that are measured here."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from specviz.bench.prompts import BuiltInPrompt
from specviz.errors import PromptError
from specviz.words import _

MT_BENCH = (
    *("writing", "roleplay", "reasoning", "math"),
    *("coding", "extraction", "stem", "humanities"),
)
OTHERS = ("translation", "summarization", "qa", "math_reasoning", "rag")
EACH = 8  # of the others; of MT-Bench one of each category


@dataclass(frozen=True, slots=True)
class BenchPrompt:
    """One prompt; the eight categories of MT-Bench are one class, as Spec-Bench has it."""

    id: str
    category: str
    text: str

    @property
    def kind(self) -> str:
        """Class it is reported in."""
        return "mt_bench" if self.category in MT_BENCH else self.category


def of_built_in(prompt: BuiltInPrompt) -> BenchPrompt:
    """Take over a prompt that comes with the program."""
    return BenchPrompt(prompt.id, prompt.prompt_class, prompt.text)


def read_prompts(path: Path) -> tuple[BenchPrompt, ...]:
    """Read lines with question_id, category and turns; only the first turn is used.

    Raises:
        PromptError: the file cannot be read, or a line is no question; says which.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        text = _("the prompts {file} cannot be read ({error}); give a file of JSON lines")
        raise PromptError(text.format(file=path, error=error)) from error
    found = tuple(_prompt(line, n, path) for n, line in enumerate(lines, 1) if line.strip())
    if not found:
        raise PromptError(_("{file} holds no prompt; give at least one line").format(file=path))
    return found


def _prompt(line: str, number: int, path: Path) -> BenchPrompt:
    try:
        known = json.loads(line)
        turns = known["turns"]
        first = turns[0] if isinstance(turns, list) else turns
        if isinstance(first, str) and first.strip():
            return BenchPrompt(str(known["question_id"]), str(known["category"]), first)
    except (ValueError, KeyError, TypeError, IndexError):
        pass
    raise PromptError(
        _(
            "line {n} of {file} is no question; each line must be a JSON object as "
            '{{"question_id": 1, "category": "qa", "turns": ["text"]}}'
        ).format(n=number, file=path)
    )


def selection(prompts: Sequence[BenchPrompt]) -> tuple[BenchPrompt, ...]:
    """Return the first of each category of MT-Bench and the first eight of each other class.

    Raises:
        PromptError: a category has too few prompts.
    """
    ranked = sorted(prompts, key=lambda prompt: (len(prompt.id), prompt.id))  # ids are numbers
    found: list[BenchPrompt] = []
    for category, count in (*((name, 1) for name in MT_BENCH), *((name, EACH) for name in OTHERS)):
        of_it = [prompt for prompt in ranked if prompt.category == category][:count]
        if len(of_it) < count:
            text = _("{count} prompts of the category {name!r} are needed; the file has {found}")
            raise PromptError(text.format(count=count, name=category, found=len(of_it)))
        found += of_it
    return tuple(found)


def some(prompts: Sequence[BenchPrompt], count: int) -> tuple[BenchPrompt, ...]:
    """Return up to `count` prompts, spread evenly over all."""
    if count >= len(prompts):
        return tuple(prompts)
    return tuple(prompts[i * len(prompts) // count] for i in range(count))
