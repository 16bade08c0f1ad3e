"""Both sides of each job in one row."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from specviz.bench.conformance.job import Counts, acceptance_length

COLUMNS = (
    "scheme",
    "D",
    "E[L] ours",
    "E[L] vLLM",
    "apart",
    "rounds",
    "same prefix",
    "same text",
    "E[L] on same text",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One scheme: what either engine counted, or why vLLM did not run it."""

    scheme: str
    draft_length: int
    ours: tuple[Counts, ...]
    theirs: tuple[Counts, ...] = ()
    refusal: str = ""

    @property
    def pairs(self) -> list[tuple[Counts, Counts]]:
        """Counts of the same prompt side by side; none if vLLM did not run."""
        return list(zip(self.ours, self.theirs, strict=False))

    @property
    def same(self) -> list[tuple[Counts, Counts]]:
        """Pairs with the same output: there differing counts are differing drafts."""
        return [(a, b) for a, b in self.pairs if a.output == b.output]

    @property
    def same_prefix(self) -> float | None:
        """Share of output tokens before the first that differs, over all prompts."""
        total = sum(max(len(a.output), len(b.output)) for a, b in self.pairs)
        return sum(shared(a.output, b.output) for a, b in self.pairs) / total if total else None

    @property
    def apart(self) -> float | None:
        """(E[L] ours - E[L] vLLM) / E[L] vLLM."""
        ours, theirs = acceptance_length(self.ours), acceptance_length(self.theirs)
        return None if ours is None or theirs is None else ours / theirs - 1

    def facts(self) -> dict[str, object]:
        """Return the row for JSON."""
        return asdict(self) | {
            "acceptance_length": acceptance_length(self.ours),
            "acceptance_length_vllm": acceptance_length(self.theirs),
            "apart": self.apart,
            "same_prefix": self.same_prefix,
            "same_text": len(self.same),
        }

    def cells(self) -> tuple[str, ...]:
        """Return the row for the table."""
        on_same = [acceptance_length(side) for side in _sides(self.same)]
        return (
            self.scheme,
            str(self.draft_length),
            _number(acceptance_length(self.ours)),
            _number(acceptance_length(self.theirs)),
            "n/a" if self.apart is None else f"{100 * self.apart:+.1f}%",
            f"{sum(c.rounds for c in self.ours)} / {sum(c.rounds for c in self.theirs)}",
            "n/a" if self.same_prefix is None else f"{100 * self.same_prefix:.1f}%",
            f"{len(self.same)} of {len(self.pairs)}",
            " / ".join(map(_number, on_same)),
        )


def shared(a: Sequence[int], b: Sequence[int]) -> int:
    """Return how many leading tokens are the same."""
    pairs = zip(a, b, strict=False)
    return next((i for i, (x, y) in enumerate(pairs) if x != y), min(len(a), len(b)))


def as_text(rows: Sequence[Row]) -> str:
    """Return the table as Markdown, with what vLLM refused below it."""
    lines = [COLUMNS, ("---",) * len(COLUMNS), *(row.cells() for row in rows)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([table, *(f"{row.scheme}: {row.refusal}" for row in rows if row.refusal)])


def _sides(pairs: list[tuple[Counts, Counts]]) -> tuple[list[Counts], list[Counts]]:
    return [a for a, _b in pairs], [b for _a, b in pairs]


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}"
