"""What other engines say of a run: coarse, without text, and nothing added to it.

A number an engine did not give stays None. Two numbers that contradict each other are both kept,
and the contradiction is said.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from math import isfinite

from specviz.errors import TraceError
from specviz.traces.scalars import MAX_INT
from specviz.words import _

ROUNDED = 0.006  # what rounding a rate to whole percents can do
TOLERANCE = 0.02  # of the identity 1 + sum of the rates per position = tokens per round


def real(value: object) -> float | None:
    """Return a number, or text that is one, as a float; None for NaN, infinity and all else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None


def count(value: object) -> int | None:
    """Return a count, or text that is one, as an int; None for all else."""
    if isinstance(value, str):
        fits = value.isascii() and value.isdecimal() and len(value) < len(str(MAX_INT))
        return int(value) if fits else None
    fits = isinstance(value, int) and not isinstance(value, bool)
    return value if fits and isinstance(value, int) and 0 <= value <= MAX_INT else None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRun:
    """One log line, one response or one server's counters.

    `acceptance_length` counts the target's own token, `acceptance_rate` is accepted / drafted
    unless `rate_means` says otherwise, `per_position` is accepted at i / rounds.
    """

    engine: str
    source: str  # what was read: "log line", "metrics", "response", ...
    about: str = ""  # request or line it is about
    rounds: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    output_tokens: int | None = None
    draft_length: int | None = None
    acceptance_length: float | None = None
    acceptance_rate: float | None = None
    rate_means: str = ""  # another denominator than drafted tokens, in words
    per_position: tuple[float, ...] = ()
    histogram: tuple[int, ...] = ()  # [a]: rounds that accepted exactly a drafts
    accepted_by_round: tuple[int, ...] = ()
    drafted_by_round: tuple[int, ...] = ()
    from_draft: tuple[bool, ...] = ()  # of each output token
    said: tuple[tuple[str, str], ...] = ()  # every number in the engine's own name

    @property
    def contradictions(self) -> tuple[str, ...]:
        """Identities that the given numbers do not keep."""
        return tuple(_contradictions(self))


@dataclass(frozen=True, slots=True)
class Derived:
    """A number that follows from given ones, and the formula."""

    name: str
    value: float
    formula: str


def derived(run: EngineRun) -> tuple[Derived, ...]:
    """Work out what follows exactly from the given numbers and was not given."""
    found = []
    drafted = run.drafted if run.drafted is not None else sum(run.drafted_by_round) or None
    accepted = run.accepted
    if accepted is None and run.accepted_by_round:
        accepted = sum(run.accepted_by_round)
    rounds = run.rounds if run.rounds is not None else len(run.accepted_by_round) or None
    if run.acceptance_rate is None and drafted and accepted is not None:
        found.append(Derived("acceptance_rate", accepted / drafted, "accepted / drafted"))
    if run.acceptance_length is None and rounds and accepted is not None:
        found.append(Derived("acceptance_length", 1 + accepted / rounds, "1 + accepted / rounds"))
    if run.from_draft:
        share = sum(run.from_draft) / len(run.from_draft)
        found.append(Derived("accepted_share", share, "accepted / output tokens"))
    return tuple(found)


def _contradictions(run: EngineRun) -> Iterator[str]:
    length, rate, rounds = run.acceptance_length, run.acceptance_rate, run.rounds
    if run.per_position and length is not None:
        total = 1 + sum(run.per_position)
        if abs(total - length) > TOLERANCE:
            text = _(
                "1 + the sum of the rates per position is {total:.3f}, but it says {length:.3f} "
                "tokens per round: they count different rounds."
            )
            yield text.format(total=total, length=length)
    if any(a < b for a, b in zip(run.per_position, run.per_position[1:], strict=False)):
        yield _(
            "A later position is accepted more often than one before it: no share of all rounds."
        )
    accepted, drafted = run.accepted, run.drafted
    if accepted is not None and drafted is not None and accepted > drafted:
        yield _("More tokens are accepted than were drafted.")
    elif accepted is not None and drafted and rate is not None and not run.rate_means:
        own = accepted / drafted
        if abs(own - rate) > ROUNDED:
            text = _("{accepted} of {drafted} drafts is {own:.3f}, but it says {rate:.3f}.")
            yield text.format(accepted=accepted, drafted=drafted, own=own, rate=rate)
    if run.output_tokens is not None and accepted is not None and rounds is not None:
        emitted, most = accepted + rounds, 1 + (run.draft_length or 0)
        if abs(run.output_tokens - emitted) > most:
            text = _(
                "accepted + rounds is {emitted}, but it says {tokens} output tokens: more than "
                "the prefill's token and a cut last round explain."
            )
            yield text.format(emitted=emitted, tokens=run.output_tokens)


def read(text: str) -> tuple[EngineRun, ...]:
    """Read whatever it is: a log, a metrics page, JSON of one or several records.

    Raises:
        TraceError: nothing in it is known.
    """
    from specviz.traces import imports_json, imports_logs, imports_metrics

    found: list[EngineRun] = []
    stripped = text.strip()
    if stripped.startswith(("{", "[")):
        found = list(imports_json.read(stripped))
    if not found:
        found = [*imports_metrics.read(text), *imports_logs.read(text)]
    if not found:
        raise TraceError(
            _(
                "nothing about speculative decoding was found in this text; it can be a log, a "
                "/metrics page or a JSON response of {engines}, or a trace of specviz"
            ).format(engines=", ".join(ENGINES))
        )
    return tuple(found)


ENGINES = ("vLLM", "SGLang", "TensorRT-LLM", "llama.cpp", "mlx-lm", "mlx-vlm", "LM Studio")


def facts(run: EngineRun) -> list[tuple[str, str]]:
    """Return every field that was given, by its name."""
    skip = {"said", "engine", "source", "about"}
    rows = []
    for each in fields(run):
        value = getattr(run, each.name)
        if each.name not in skip and value not in (None, (), ""):
            rows.append((each.name, written(value)))
    return rows


def written(value: object) -> str:
    """Return a number, or a list of them, as text."""
    if isinstance(value, tuple):
        return ", ".join(map(written, value))
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def as_json(run: EngineRun) -> dict[str, object]:
    """Return plain data: what was not given is None or an empty list."""
    plain: dict[str, object] = {each.name: getattr(run, each.name) for each in fields(run)}
    plain["said"] = dict(run.said)
    plain["derived"] = {each.name: each.value for each in derived(run)}
    plain["contradictions"] = list(run.contradictions)
    return plain
