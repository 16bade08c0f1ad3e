"""Log lines of vLLM, SGLang and llama.cpp."""

import re
from collections.abc import Callable, Iterator

from specviz.traces.imports import EngineRun, count, real
from specviz.words import later

_N = r"([0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?)"
_LIST = r"\(?([0-9., ]*[0-9])\)?"
MOST = 100_000  # lines of a log that are looked at

_VLLM = re.compile(r"SpecDecoding metrics:(.*)")
_SGLANG = re.compile(rf"Decode batch.*?accept len: {_N}(.*)")
_LLAMA = re.compile(
    rf"draft acceptance(?: rate)? = {_N} \(\s*([0-9]+) accepted /\s*([0-9]+) generated\)(.*)"
)
_LLAMA_POSITIONS = re.compile(rf"acc(?:eptance rate)? per pos(?:ition)? = {_LIST}")
_LLAMA_STATISTICS = re.compile(
    r"statistics ([\w-]+):\s*#calls(?:\(b,g,a\))? = ([0-9 ,]+[0-9]),?(.*)"
)


def read(text: str) -> Iterator[EngineRun]:
    """Yield one run for each line that speaks of speculative decoding."""
    for number, line in enumerate(text.splitlines()[:MOST], 1):
        for pattern, reader in _READERS:
            found = pattern.search(line)
            if found:
                yield reader(found, later("line {n} of the text").format(n=number))
                break


def _vllm(found: "re.Match[str]", about: str) -> EngineRun:
    said = _pairs(found[1])
    rate = real(said.get("Avg Draft acceptance rate", "").rstrip("%"))
    return EngineRun(
        engine="vLLM",
        source=later("log line"),
        about=about,
        acceptance_length=real(said.get("Mean acceptance length")),
        accepted=_count(said.get("Accepted")),
        drafted=_count(said.get("Drafted")),
        per_position=_list(said.get("Per-position acceptance rate", "")),
        acceptance_rate=None if rate is None else round(rate / 100, 6),
        said=tuple(said.items()),
    )


def _pairs(text: str) -> dict[str, str]:
    """Split "Name: value, Name: v, v, v, Name: value" where a new name begins."""
    parts = re.split(r",?\s*([A-Z][A-Za-z -]*): ", text)
    return {name: value.strip(" ,.") for name, value in zip(parts[1::2], parts[2::2], strict=True)}


def _sglang(found: "re.Match[str]", about: str) -> EngineRun:
    rest = dict(re.findall(rf"(accept rate|cap len|block accept len): {_N}", found[2]))
    return EngineRun(
        engine="SGLang",
        source=later("log line"),
        about=about,
        acceptance_length=real(found[1]),
        acceptance_rate=real(rest.get("accept rate")),
        rate_means=_SGLANG_RATE if "accept rate" in rest else "",
        said=(("accept len", found[1]), *rest.items()),
    )


_SGLANG_RATE = "accepted / (rounds x (num_draft_tokens - 1))"


def _llama(found: "re.Match[str]", about: str) -> EngineRun:
    length = re.search(rf"mean (?:acceptance length|len) = {_N}", found[4])
    positions = _LLAMA_POSITIONS.search(found[4])
    said = [
        ("draft acceptance", found[1]),
        ("accepted", found[2]),
        ("generated", found[3]),
    ]
    if length:
        said.append(("mean acceptance length", length[1]))
    if positions:
        said.append(("acceptance rate per position", positions[1]))
    return EngineRun(
        engine="llama.cpp",
        source=later("log line"),
        about=about,
        acceptance_rate=real(found[1]),
        accepted=count(found[2]),
        drafted=count(found[3]),
        acceptance_length=real(length[1]) if length else None,
        per_position=_list(positions[1]) if positions else (),
        said=tuple(said),
    )


def _llama_positions(found: "re.Match[str]", about: str) -> EngineRun:
    return EngineRun(
        engine="llama.cpp",
        source=later("log line"),
        about=about,
        per_position=_list(found[1]),
        said=(("acc per pos", found[1]),),
    )


def _llama_statistics(found: "re.Match[str]", about: str) -> EngineRun:
    rest = dict(re.findall(r"#(gen drafts|acc drafts|gen tokens|acc tokens) = *([0-9]+)", found[3]))
    return EngineRun(
        engine="llama.cpp",
        source=later("log line"),
        about=f"{about}, {found[1]}",
        rounds=_count(rest.get("gen drafts")),
        drafted=_count(rest.get("gen tokens")),
        accepted=_count(rest.get("acc tokens")),
        said=(("type", found[1]), ("#calls", found[2]), *((f"#{k}", v) for k, v in rest.items())),
    )


def _count(text: str | None) -> int | None:
    found = re.match(r"[0-9]+", text or "")
    return count(found[0]) if found else None


def _list(text: str) -> tuple[float, ...]:
    """Return the numbers; none if one of them is none, as the others would change place."""
    numbers = [real(number) for number in re.split(r"[,\s]+", text.strip(" ,()")) if number]
    return tuple(n for n in numbers if n is not None) if None not in numbers else ()


_READERS: tuple[tuple["re.Pattern[str]", Callable[["re.Match[str]", str], EngineRun]], ...] = (
    (_VLLM, _vllm),
    (_SGLANG, _sglang),
    (_LLAMA, _llama),
    (_LLAMA_STATISTICS, _llama_statistics),
    (_LLAMA_POSITIONS, _llama_positions),
)
