"""Two traces side by side: where their outputs part, which settings and numbers differ."""

from dataclasses import dataclass

from specviz.cli.summary import Value, as_json
from specviz.cli.terminal import quoted
from specviz.traces import diff
from specviz.traces.schema import Trace

NUMBERS = (
    "output_tokens",
    "rounds",
    "acceptance_length",
    "acceptance_rate",
    "tpot_ms",
    "speedup",
    "finish_reason",
)


@dataclass(frozen=True, slots=True)
class Pair:
    """What one trace says of something and what the other does."""

    name: str
    a: Value
    b: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """`at` is the first output index where the tokens differ, None if one begins with the other.

    `parted` is where the texts do, which is not the same if the runs have different tokenizers.
    """

    same_prompt: bool
    same_output: bool
    at: int | None
    tokens: tuple[int, int] | None
    settings: tuple[Pair, ...]
    numbers: tuple[Pair, ...]
    parted: diff.Divergence | None = None

    def as_json(self) -> dict[str, Value]:
        """Return plain data."""
        return {
            "same_prompt": self.same_prompt,
            "same_output": self.same_output,
            "first_difference": self.at,
            "tokens": list(self.tokens) if self.tokens else None,
            "first_byte": self.parted.byte if self.parted else None,
            "margins": [self.parted.left.margin, self.parted.right.margin] if self.parted else None,
            "settings": {pair.name: [pair.a, pair.b] for pair in self.settings},
            "numbers": {pair.name: [pair.a, pair.b] for pair in self.numbers},
        }


def compare(a: Trace, b: Trace) -> Difference:
    """Compare two traces by token ids, never by text."""
    pairs = enumerate(zip(a.output, b.output, strict=False))
    at = next((index for index, (x, y) in pairs if x != y), None)
    ours, theirs, found = as_json(a), as_json(b), diff.compare(a, b)
    return Difference(
        same_prompt=a.prompt == b.prompt,
        same_output=a.output == b.output,
        at=at,
        tokens=None if at is None else (a.output[at], b.output[at]),
        settings=tuple(Pair(s.name, s.left, s.right) for s in found.settings),
        parted=found.divergence,
        numbers=tuple(Pair(name, ours[name], theirs[name]) for name in NUMBERS),
    )


def as_text(found: Difference, a: Trace, b: Trace) -> str:
    """Return the difference in words."""
    lines = ["same prompt" if found.same_prompt else "DIFFERENT prompts"]
    if found.same_output:
        lines.append(f"same output, {len(a.output)} tokens")
    elif found.at is None:
        lines.append(f"one output begins with the other: {len(a.output)}, {len(b.output)} tokens")
    else:
        x, y = a.output[found.at], b.output[found.at]
        lines.append(
            f"outputs part at token {found.at}: {x} {quoted(a.piece(x))} "
            f"against {y} {quoted(b.piece(y))}"
        )
    if found.parted is not None:
        margins = (found.parted.left.margin, found.parted.right.margin)
        told = " | ".join("not recorded" if m is None else f"{m:.3g} nats" for m in margins)
        lines.append(f"texts part at byte {found.parted.byte}; each run's own margin: {told}")
    lines += [f"{pair.name}: {pair.a} | {pair.b}" for pair in found.settings]
    lines += [f"{pair.name}: {_number(pair.a)} | {_number(pair.b)}" for pair in found.numbers]
    return "\n".join(lines)


def _number(value: Value) -> str:
    if value is None:
        return "not measured"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
