"""JSON of engines: responses, server information, iteration statistics, profiles."""

import json
from collections.abc import Callable, Iterator, Mapping

from specviz.errors import TraceError
from specviz.traces.imports import EngineRun, count, real, written
from specviz.words import _, later

Found = Mapping[str, object]
MOST = 10_000  # records of one file
DEEP = 6  # levels below the top that are searched
LONGEST = 1000  # tokens of one round that a histogram may speak of


def read(text: str) -> Iterator[EngineRun]:
    """Yield one run for each record; JSON lines are read too.

    Raises:
        TraceError: it begins like JSON and is none.
    """
    for number, data in enumerate(_values(text)):
        if number >= MOST:
            return
        yield from _search(data, later("record {n}").format(n=number + 1), 0)


def _values(text: str) -> Iterator[object]:
    try:
        yield json.loads(text)
        return
    except (ValueError, RecursionError) as error:
        problem = error
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        values = [json.loads(line) for line in lines]
    except (ValueError, RecursionError):
        if '{"' in text and "SpecDecoding" not in text and "accept" not in text:
            raise TraceError(_("cut short, or not JSON: {e}").format(e=problem)) from problem
        return
    yield from values


def _search(data: object, about: str, depth: int) -> Iterator[EngineRun]:
    """Yield the records in `data`: those it is, else those inside it."""
    if isinstance(data, Mapping):
        for known, reader in _READERS:
            if known <= data.keys():
                yield reader(data, about)
                return
    if depth == DEEP:
        return
    flags = _flags(data)
    if flags:
        yield _mlx_lm(flags, about)
        return
    values = data.values() if isinstance(data, Mapping) else data if isinstance(data, list) else ()
    for number, value in enumerate(values):
        inner = f"{about}.{number + 1}" if isinstance(data, list) else about
        yield from _search(value, inner, depth + 1)


def _flags(data: object) -> list[bool]:
    """Return the flag of each token, none unless every one has it."""
    if not isinstance(data, list) or not all(isinstance(x, Mapping) for x in data):
        return []
    flags = [x.get("from_draft") for x in data]
    return flags if all(isinstance(flag, bool) for flag in flags) else []


def _whole(found: Found, name: str) -> int | None:
    value = found.get(name)
    return None if isinstance(value, str) else count(value)


def _real(found: Found, name: str) -> float | None:
    value = found.get(name)
    return None if isinstance(value, str) else real(value)


def _wholes(found: Found, name: str) -> tuple[int, ...]:
    """Return a list of counts; none if one of them is none, as the others would change place."""
    value = found.get(name)
    counts = [None if isinstance(x, str) else count(x) for x in _list(value)]
    return tuple(n for n in counts if n is not None) if None not in counts else ()


def _reals(value: object) -> tuple[float, ...]:
    numbers = [None if isinstance(x, str) else real(x) for x in _list(value)]
    return tuple(n for n in numbers if n is not None) if None not in numbers else ()


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _said(found: Found) -> tuple[tuple[str, str], ...]:
    plain = str | int | float
    return tuple(
        (name, written(tuple(value) if isinstance(value, list) else value))
        for name, value in found.items()
        if isinstance(value, plain)
        or (isinstance(value, list) and all(isinstance(x, plain) for x in value))
    )


def _vllm(found: Found, about: str) -> EngineRun:
    return EngineRun(
        engine="vLLM",
        source=later("response"),
        about=about,
        rounds=_whole(found, "num_spec_steps"),
        drafted=_whole(found, "num_draft_tokens"),
        accepted=_whole(found, "num_accepted_draft_tokens"),
        draft_length=_whole(found, "num_spec_tokens"),
        acceptance_length=_real(found, "mean_acceptance_length"),
        acceptance_rate=_real(found, "draft_acceptance_rate"),
        histogram=_wholes(found, "acceptance_histogram"),
        accepted_by_round=_wholes(found, "per_step_accepted"),
        drafted_by_round=_wholes(found, "per_step_drafted"),
        said=_said(found),
    )


def _sglang(found: Found, about: str) -> EngineRun:
    rate = _real(found, "spec_accept_rate")
    return EngineRun(
        engine="SGLang",
        source=later("response"),
        about=about,
        rounds=_whole(found, "spec_verify_ct"),
        drafted=_whole(found, "spec_num_proposed_drafts"),
        accepted=_whole(found, "spec_num_correct_drafts"),
        output_tokens=_whole(found, "completion_tokens"),
        acceptance_length=_real(found, "spec_accept_length"),
        acceptance_rate=rate,
        rate_means="" if rate is None else "accepted / (rounds x (num_draft_tokens - 1))",
        histogram=_wholes(found, "spec_correct_drafts_histogram"),
        said=_said(found),
    )


def _sglang_server(found: Found, about: str) -> EngineRun:
    return EngineRun(
        engine="SGLang",
        source=later("server information"),
        about=later("the whole server since its start"),
        acceptance_length=_real(found, "avg_spec_accept_length"),
        said=(("avg_spec_accept_length", written(found["avg_spec_accept_length"])),),
    )


def _tensorrt(found: Found, about: str) -> EngineRun:
    """Its length counts the bonus and leaves out requests without a draft."""
    return EngineRun(
        engine="TensorRT-LLM",
        source=later("iteration statistics"),
        about=about,
        rounds=_whole(found, "numRequestsWithDraftTokens"),
        drafted=_whole(found, "numDraftTokens"),
        accepted=_whole(found, "numAcceptedTokens"),
        acceptance_length=_real(found, "acceptanceLength"),
        said=_said(found),
    )


def _tensorrt_recorder(found: Found, about: str) -> EngineRun:
    histogram = _wholes(found, "accepted_draft_hist")
    return EngineRun(
        engine="TensorRT-LLM",
        source=later("DFlash recorder"),
        about=about,
        rounds=sum(histogram),
        accepted=sum(a * n for a, n in enumerate(histogram)),
        draft_length=len(histogram) - 1 if histogram else None,
        histogram=histogram,
        said=_said(found),
    )


def _llama(found: Found, about: str) -> EngineRun:
    return EngineRun(
        engine="llama.cpp",
        source=later("response"),
        about=about,
        drafted=_whole(found, "draft_n"),
        accepted=_whole(found, "draft_n_accepted"),
        output_tokens=_whole(found, "predicted_n"),
        said=_said(found),
    )


def _mlx_vlm(found: Found, about: str) -> EngineRun:
    return EngineRun(
        engine="mlx-vlm",
        source=later("response"),
        about=about,
        rounds=_whole(found, "rounds"),
        accepted=_whole(found, "accepted"),
        output_tokens=_whole(found, "n"),
        said=_said(found),
    )


def _mlx_lm(flags: list[bool], about: str) -> EngineRun:
    return EngineRun(
        engine="mlx-lm",
        source=later("response"),
        about=about,
        output_tokens=len(flags),
        accepted=sum(flags),
        from_draft=tuple(flags),
        said=(("from_draft", f"{sum(flags)} of {len(flags)}"),),
    )


def _lm_studio(found: Found, about: str) -> EngineRun:
    return EngineRun(
        engine="LM Studio",
        source=later("response"),
        about=about,
        accepted=_whole(found, "acceptedDraftTokensCount"),
        drafted=_whole(found, "totalDraftTokensCount"),
        output_tokens=_whole(found, "predictedTokensCount"),
        said=_said(found),
    )


def _profile(found: Found, about: str) -> EngineRun:
    """Schema 1.0 of specdec_bench. Its histogram counts lengths, so 1 is "nothing accepted"."""
    counts, conditions = found.get("acceptance_length_histogram"), found.get("target_model")
    known: Found = counts if isinstance(counts, Mapping) else {}
    by_accepted = {
        length - 1: _whole(known, text) or 0
        for text in known
        if (length := count(text)) and length <= LONGEST
    }
    histogram = tuple(by_accepted.get(a, 0) for a in range(max(by_accepted, default=-1) + 1))
    measured = found.get("measured") is not False
    return EngineRun(
        engine="speculation_profile.json",
        source=later("profile") if measured else later("profile that says nothing was measured"),
        about=" · ".join(str(x) for x in (found.get("method"), conditions) if x) or about,
        rounds=sum(histogram) or None,
        draft_length=_whole(found, "num_speculative_tokens"),
        acceptance_length=_real(found, "mean_accept_length"),
        per_position=_reals(found.get("marginal_accept_rates")) if measured else (),
        histogram=histogram,
        said=_said(found),
    )


def _ours(found: Found, about: str) -> EngineRun:
    """A run that was imported and saved before."""
    flags, said = (found.get(n) for n in ("from_draft", "said"))
    words = {name: str(found.get(name) or "") for name in ("engine", "source", "rate_means")}
    return EngineRun(
        engine=words["engine"],
        source=words["source"],
        about=str(found.get("about") or about),
        rate_means=words["rate_means"],
        acceptance_length=_real(found, "acceptance_length"),
        acceptance_rate=_real(found, "acceptance_rate"),
        per_position=_reals(found.get("per_position")),
        from_draft=tuple(x is True for x in flags) if isinstance(flags, list) else (),
        said=_said(said) if isinstance(said, Mapping) else (),
        rounds=_whole(found, "rounds"),
        drafted=_whole(found, "drafted"),
        accepted=_whole(found, "accepted"),
        output_tokens=_whole(found, "output_tokens"),
        draft_length=_whole(found, "draft_length"),
        histogram=_wholes(found, "histogram"),
        accepted_by_round=_wholes(found, "accepted_by_round"),
        drafted_by_round=_wholes(found, "drafted_by_round"),
    )


Reader = Callable[[Found, str], EngineRun]
# By the names that only this record has; the first that fits is taken.
_READERS: tuple[tuple[frozenset[str], Reader], ...] = (
    (frozenset({"engine", "said", "contradictions"}), _ours),
    (frozenset({"schema_version", "marginal_accept_rates"}), _profile),
    (frozenset({"num_spec_steps", "num_accepted_draft_tokens"}), _vllm),
    (frozenset({"spec_verify_ct"}), _sglang),
    (frozenset({"spec_accept_length"}), _sglang),
    (frozenset({"avg_spec_accept_length"}), _sglang_server),
    (frozenset({"numDraftTokens", "numAcceptedTokens"}), _tensorrt),
    (frozenset({"accepted_draft_hist"}), _tensorrt_recorder),
    (frozenset({"draft_n", "draft_n_accepted"}), _llama),
    (frozenset({"draft_kind", "rounds", "accepted"}), _mlx_vlm),
    (frozenset({"acceptedDraftTokensCount"}), _lm_studio),
)
