"""What a sweep measures and what comes of it: plain data, kept in files and drawn in charts."""

from dataclasses import dataclass, field
from typing import Literal

from specviz.events import Timing

# Where a G comes from. "exact": the model itself, or rewritten with its KV heads repeated: the
# same function. "twin": the same shapes with other KV heads and random weights, used for time
# only. "kernel": the attention operation alone.
Mode = Literal["exact", "twin", "kernel"]

ALL = "all"  # the prompt class that means every prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One setting that is measured."""

    scheme: str
    draft_length: int
    group_size: int
    mode: Mode = "exact"
    temperature: float = 0.0

    @property
    def plain(self) -> "Cell":
        """The baseline of this cell: the same target, nothing drafted."""
        return Cell(
            scheme="none",
            draft_length=0,
            group_size=self.group_size,
            mode=self.mode,
            temperature=self.temperature,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One decode of one prompt. Seconds are sums over its rounds, prefill excluded."""

    cell: Cell
    prompt: str  # its id
    prompt_class: str
    repeat: int
    order: int  # which measurement of the sweep it was: what neighbours it in time
    rounds: int
    tokens: int
    drafted: int
    accepted: int
    lengths: tuple[int, ...]  # [d]: rounds whose draft had exactly d tokens
    survived: tuple[int, ...]  # [k]: rounds that accepted at least k
    timing: Timing
    prompt_tokens: int
    digest: str  # of the output, to compare texts
    trace: str = ""  # file of its trace, "" if none is kept

    @property
    def key(self) -> tuple[Cell, str, int]:
        """What must not be measured twice."""
        return self.cell, self.prompt, self.repeat

    @property
    def tpot(self) -> float:
        """Seconds of decoding per output token."""
        return self.timing.total / self.tokens

    @property
    def acceptance_length(self) -> float:
        return self.tokens / self.rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One timed pass over `rows` rows: of a whole model, or of one attention operation."""

    mode: Mode
    group_size: int
    rows: int
    context: int  # cached tokens
    repeat: int
    seconds: float
    batch: int = 1

    @property
    def key(self) -> tuple[Mode, int, int, int, int, int]:
        """What must not be measured twice."""
        return self.mode, self.group_size, self.rows, self.context, self.batch, self.repeat


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One cell over the prompts of a class, measured against plain decoding and predicted.

    `speedup` is the median over prompts, `low` to `high` its 95% bootstrap interval over prompts
    (the range of the repeats of a single prompt). Seconds are means per round. `remainder` is what
    a round took beyond verify and draft, in plain rounds: what the prediction leaves out.
    """

    cell: Cell
    prompt_class: str
    speedup: float
    low: float
    high: float
    predicted: float | None  # None before the passes it rests on were measured
    remainder: float | None
    acceptance_length: float
    acceptance_rate: float | None
    conditional: tuple[float | None, ...]
    marginal: tuple[float, ...]
    timing: Timing
    plain_round: float
    prompts: int
    repeats: int
    busy: bool
    same_text: bool | None  # None: not greedy, or plain decoding of it is still to come
    is_block: bool = False  # plans a block: says nothing about another D
    traces: tuple[str, ...] = field(default=())

    @property
    def error(self) -> float | None:
        """Predicted / measured - 1."""
        return None if self.predicted is None else self.predicted / self.speedup - 1
