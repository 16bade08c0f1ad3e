"""Metrics pages (Prometheus text) of vLLM, SGLang, TensorRT-LLM and llama.cpp."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from specviz.traces.imports import EngineRun, count, real
from specviz.words import later

_SAMPLE = re.compile(
    r"^([a-zA-Z_:][\w:]*)(?:\{(.*?)\})?\s+([-+]?[0-9.]+(?:e[-+]?[0-9]+)?)\s*$", re.IGNORECASE
)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_POSITION = ("position", "token_position")
# Prefix of the counters, and the names behind it: rounds, drafted, accepted, accepted by position.
_COUNTERS = {
    "vLLM": ("vllm:spec_decode_", "num_drafts", "num_draft_tokens", "num_accepted_tokens"),
    "llama.cpp": ("llamacpp:spec_decode_", "num_drafts", "num_draft_tokens", "num_accepted_tokens"),
    "TensorRT-LLM": (
        "trtllm_spec_decode_", "", "num_draft_tokens", "num_accepted_tokens",
    ),
}  # fmt: skip
_BY_POSITION = ("num_accepted_tokens_per_pos", "accepted_tokens")
_WHOLE = "the whole server since its start"

Samples = Mapping[str, list[tuple[dict[str, str], float]]]


def read(text: str) -> Iterator[EngineRun]:
    """Yield one run for each engine whose counters are on the page."""
    samples: dict[str, list[tuple[dict[str, str], float]]] = defaultdict(list)
    for line in text.splitlines():
        found = _SAMPLE.match(line.strip())
        value = real(found[3]) if found else None
        if found and value is not None:
            labels = dict(_LABEL.findall(found[2] or ""))
            samples[found[1].removesuffix("_total")].append((labels, value))
    for engine, names in _COUNTERS.items():
        if any(name.startswith(names[0]) for name in samples):
            yield _counted(engine, names, samples)
    if any(name.startswith("sglang:spec_") for name in samples):
        yield _sglang(samples)


def _counted(engine: str, names: tuple[str, str, str, str], samples: Samples) -> EngineRun:
    prefix = names[0]
    rounds, drafted, accepted = (_sum(samples, prefix + n) if n else None for n in names[1:])
    by_position = next(
        (p for name in _BY_POSITION if (p := _positions(samples.get(prefix + name, [])))), ()
    )
    length = _last(samples, prefix + "acceptance_length")
    return EngineRun(
        engine=engine,
        source=later("metrics"),
        about=_WHOLE,
        rounds=rounds,
        drafted=drafted,
        accepted=accepted,
        acceptance_length=length,
        per_position=tuple(n / rounds for n in by_position) if rounds else (),
        said=_said(samples, prefix),
    )


def _sglang(samples: Samples) -> EngineRun:
    """Gauges of the last interval: they cannot be added up."""
    rate = _last(samples, "sglang:spec_accept_rate")
    return EngineRun(
        engine="SGLang",
        source=later("metrics"),
        about=later("the last interval"),
        acceptance_length=_last(samples, "sglang:spec_accept_length"),
        acceptance_rate=rate,
        rate_means="" if rate is None else "accepted / (rounds x (num_draft_tokens - 1))",
        said=_said(samples, "sglang:spec_"),
    )


def _sum(samples: Samples, name: str) -> int | None:
    found = samples.get(name)
    return count(int(sum(value for _labels, value in found))) if found else None


def _last(samples: Samples, name: str) -> float | None:
    found = samples.get(name)
    return found[-1][1] if found else None


def _positions(found: list[tuple[dict[str, str], float]]) -> tuple[float, ...]:
    """Counts by position, from 0; empty if one of them is missing."""
    counts: dict[int, float] = defaultdict(float)
    for labels, value in found:
        at = next((labels[name] for name in _POSITION if name in labels), "")
        place = count(at)
        if place is not None:
            counts[place] += value
    first = min(counts, default=0)
    ordered = [counts.get(first + i) for i in range(len(counts))]
    return tuple(n for n in ordered if n is not None) if None not in ordered else ()


def _said(samples: Samples, prefix: str) -> tuple[tuple[str, str], ...]:
    rows = []
    for name, found in samples.items():
        if name.startswith(prefix):
            for labels, value in found:
                place = next((f"[{labels[p]}]" for p in _POSITION if p in labels), "")
                rows.append((name + place, f"{value:g}"))
    return tuple(rows)
