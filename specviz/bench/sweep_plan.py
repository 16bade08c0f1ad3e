"""What a sweep measures, and in which order: interleaved, so that a drift cancels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from specviz.bench.prompts import BuiltInPrompt
from specviz.config import MAX_DRAFT_LENGTH, DrafterOptions, require
from specviz.drafters import check_scheme
from specviz.errors import ConfigError
from specviz.metrics.sweep import Cell, Mode
from specviz.words import _

NEIGHBOURS = 5  # decodes between two of plain decoding
MOST_ROWS = 256
CONTEXT = 256  # cached tokens under the passes of a model
CALLS = 3
# The attention operation alone: 16 query heads, so that every G here divides them.
KERNEL_HEADS, KERNEL_GROUPS = 16, (1, 2, 4, 8, 16)
KERNEL_ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
KERNEL_CONTEXTS, KERNEL_BATCHES = (512, 2048), (1, 4)


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt of a sweep; the id tells it from all others of the file it is measured into."""

    id: str
    prompt_class: str
    text: str
    title: str = ""

    @classmethod
    def of(cls, prompt: BuiltInPrompt) -> "Prompt":
        """Take over a built-in prompt."""
        return cls(prompt.id, prompt.prompt_class, prompt.text, prompt.title)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to measure. `groups` are ways to turn G beside the target as it is."""

    prompts: tuple[Prompt, ...]
    schemes: tuple[str, ...] = ("ngram", "suffix")
    lengths: tuple[int, ...] = tuple(range(1, 9))
    temperatures: tuple[float, ...] = (0.0,)
    groups: tuple[Mode, ...] = ()
    tokens: int = 64
    repeats: int = 3
    rows: int = 64  # v(rows) is measured from 1 to here; 0: not at all
    seed: int = 0
    chat: bool = True
    options: DrafterOptions = DrafterOptions()

    def __post_init__(self) -> None:
        for name in ("prompts", "schemes", "lengths", "temperatures"):
            require(bool(getattr(self, name)), name, getattr(self, name), _("at least one"))
        most = MAX_DRAFT_LENGTH
        fits = all(1 <= d <= most for d in self.lengths)
        require(fits, "lengths", self.lengths, _("1 to {most}").format(most=most))
        for scheme in self.schemes:
            check_scheme(scheme)
        if "none" in self.schemes:
            raise ConfigError(
                _("plain decoding is always measured; leave 'none' out of the schemes")
            )
        require(self.repeats >= 1, "repeats", self.repeats, _("1 or more"))
        require(0 <= self.rows <= MOST_ROWS, "rows", self.rows, f"0-{MOST_ROWS}")


@dataclass(frozen=True, slots=True)
class Decode:
    """Decode one prompt under one setting."""

    cell: Cell
    prompt: Prompt
    repeat: int
    again: int = 0  # plain decoding comes several times in one repeat

    @property
    def key(self) -> tuple[Cell, str, int]:
        return self.cell, self.prompt.id, self.index

    @property
    def index(self) -> int:
        """The repeat that is noted down; baselines of one repeat are told apart."""
        return self.repeat if self.cell.scheme != "none" else self.repeat * 1000 + self.again


@dataclass(frozen=True, slots=True)
class Passes:
    """Time passes over rows of one model, or of the attention operation."""

    mode: Mode
    group_size: int
    rows: tuple[int, ...]
    repeat: int
    context: int = CONTEXT
    batch: int = 1
    calls: int = CALLS  # of each number of rows, the median counts


Task = Decode | Passes


def schedule(plan: Plan, own: int, divisors: Sequence[int], twins: Sequence[int]) -> Iterator[Task]:
    """Yield every measurement in order.

    Each prompt is decoded under all settings in turn, plain decoding before, between and after;
    from one prompt or repeat to the next the order is reversed. `own` is the target's G,
    `divisors` the others of the exact mode, `twins` those of the timed twins.
    """
    turns = list(product(range(plan.repeats), plan.temperatures, plan.prompts))
    for number, (repeat, temperature, prompt) in enumerate(turns):
        for group in (own, *divisors):
            cells = _cells(plan, group, temperature)
            plain, again = cells[0].plain, 0
            yield Decode(plain, prompt, repeat, again)
            for part in _parts(cells[::-1] if number % 2 else cells):
                yield from (Decode(cell, prompt, repeat) for cell in part)
                again += 1
                yield Decode(plain, prompt, repeat, again)
                if again == 1 and (prompt, temperature) == (plan.prompts[0], plan.temperatures[0]):
                    yield from _passes(plan, "exact", group, repeat)
                else:
                    yield from _between(plan, group, (1 + number) * 1000 + again)
    for repeat in range(plan.repeats):
        for group in twins if "twin" in plan.groups else ():
            yield from _passes(plan, "twin", group, repeat)
        yield from _kernels(plan, repeat) if "kernel" in plan.groups else ()


def _cells(plan: Plan, group: int, temperature: float) -> list[Cell]:
    """Every setting of a target: D from the middle out, so that early points span the curve."""
    lengths = sorted(dict.fromkeys(plan.lengths))
    middle = lengths[(len(lengths) - 1) // 2]
    ends = (middle, lengths[0], lengths[-1])
    spread = sorted(lengths, key=lambda d: (d not in ends, d != middle))
    return [
        Cell(scheme=scheme, draft_length=d, group_size=group, temperature=temperature)
        for d in spread
        for scheme in plan.schemes
    ]


def _parts(cells: list[Cell]) -> Iterator[list[Cell]]:
    for at in range(0, len(cells), NEIGHBOURS):
        yield cells[at : at + NEIGHBOURS]


def _passes(plan: Plan, mode: Mode, group: int, repeat: int) -> Iterator[Passes]:
    if plan.rows:
        rows = tuple(range(1, plan.rows + 1))
        yield Passes(mode, group, rows[::-1] if repeat % 2 else rows, repeat)


def _between(plan: Plan, group: int, number: int) -> Iterator[Passes]:
    """Time the rows of the drafts once more, so that v is of the same hours as the decodes."""
    rows = tuple(range(1, min(plan.rows, 1 + max(plan.lengths)) + 1))
    if rows:
        yield Passes("exact", group, rows[::-1] if number % 2 else rows, number, calls=1)


def _kernels(plan: Plan, repeat: int) -> Iterator[Passes]:
    rows = tuple(r for r in KERNEL_ROWS if r <= plan.rows)
    for group, context, batch in product(KERNEL_GROUPS, KERNEL_CONTEXTS, KERNEL_BATCHES):
        yield Passes("kernel", group, rows, repeat, context, batch)
