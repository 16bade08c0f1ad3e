"""Two traces side by side: where their outputs part, which settings and numbers differ."""

from dataclasses import dataclass, fields, is_dataclass

from specviz.cli.summary import Value, as_json
from specviz.cli.terminal import quoted
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
    """`at` is the first output index where the tokens differ, None if one begins with the other."""

    same_prompt: bool
    same_output: bool
    at: int | None
    tokens: tuple[int, int] | None
    settings: tuple[Pair, ...]
    numbers: tuple[Pair, ...]

    def as_json(self) -> dict[str, Value]:
        """Return plain data."""
        return {
            "same_prompt": self.same_prompt,
            "same_output": self.same_output,
            "first_difference": self.at,
            "tokens": list(self.tokens) if self.tokens else None,
            "settings": {pair.name: [pair.a, pair.b] for pair in self.settings},
            "numbers": {pair.name: [pair.a, pair.b] for pair in self.numbers},
        }


def compare(a: Trace, b: Trace) -> Difference:
    """Compare two traces by token ids, never by text."""
    pairs = enumerate(zip(a.output, b.output, strict=False))
    at = next((index for index, (x, y) in pairs if x != y), None)
    ours, theirs = as_json(a), as_json(b)
    return Difference(
        same_prompt=a.prompt == b.prompt,
        same_output=a.output == b.output,
        at=at,
        tokens=None if at is None else (a.output[at], b.output[at]),
        settings=_settings(a, b),
        numbers=tuple(Pair(name, ours[name], theirs[name]) for name in NUMBERS),
    )


def _settings(a: Trace, b: Trace) -> tuple[Pair, ...]:
    ours, theirs = _flat(a), _flat(b)
    return tuple(
        Pair(name, ours.get(name), theirs.get(name))
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    )


def _flat(trace: Trace) -> dict[str, str]:
    """Every setting of a trace under its name, dots between the levels."""
    found: dict[str, str] = {}

    def walk(name: str, value: object) -> None:
        if is_dataclass(value) and not isinstance(value, type):
            for field in fields(value):
                walk(f"{name}.{field.name}" if name else field.name, getattr(value, field.name))
        else:
            found[name] = str(value)

    for part in (trace.params, trace.config, trace.environment):
        walk("", part)
    walk("target", trace.target)
    walk("chat", trace.chat)
    return found


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
    lines += [f"{pair.name}: {pair.a} | {pair.b}" for pair in found.settings]
    lines += [f"{pair.name}: {_number(pair.a)} | {_number(pair.b)}" for pair in found.numbers]
    return "\n".join(lines)


def _number(value: Value) -> str:
    if value is None:
        return "not measured"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
