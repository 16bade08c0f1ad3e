"""A trace in numbers: the object of `--json` and the paragraph below the rounds."""

from collections.abc import Mapping

from specviz.events import LosslessReport, Round
from specviz.metrics import alarms, predicted_speedup, speedup, summarise
from specviz.traces.schema import Trace

Value = str | int | float | bool | None | list["Value"] | dict[str, "Value"]


def as_json(trace: Trace) -> dict[str, Value]:
    """Return what `run --json` prints. What was not measured is None, never 0."""
    return {**_setting(trace), **_output(trace), **_counts(trace), **_speed(trace)}


def baseline_tpot(trace: Trace) -> float | None:
    """Return the seconds per token of plain decoding, measured on the same text."""
    return trace.lossless.plain_tpot if trace.lossless else None


def _setting(trace: Trace) -> dict[str, Value]:
    env, params = trace.environment, trace.params
    drafted_by = trace.draft.name if trace.draft else None
    return {
        "scheme": trace.config.scheme,
        "draft_length": trace.config.draft_length,
        "verifier": trace.config.verifier,
        "temperature": params.temperature,
        "seed": params.seed,
        "model": trace.target.name,
        "model_sha": trace.target.sha,
        "draft_model": drafted_by if trace.config.scheme == "draft_model" else None,
        "head": drafted_by if trace.config.scheme != "draft_model" else None,
        "chat_template": trace.chat,
        "device": env.device,
        "device_name": env.device_name,
        "dtype": env.dtype,
        "threads": env.threads,
        "torch": env.torch,
        "specviz": env.specviz,
    }


def _output(trace: Trace) -> dict[str, Value]:
    ids: list[Value] = [*trace.output]
    finish = trace.finish
    return {
        "prompt_tokens": len(trace.prompt),
        "output_tokens": len(ids),
        "output_ids": ids,
        "text": trace.text,
        "text_excludes_stop": bool(finish and finish.text_bytes is not None),
        "finish_reason": finish.reason if finish else None,
        "finish_detail": finish.detail if finish else None,
    }


def _counts(trace: Trace) -> dict[str, Value]:
    summary = summarise(trace.rounds)
    return {
        "rounds": summary.rounds,
        "drafted": summary.drafted,
        "accepted": summary.accepted,
        "acceptance_length": summary.acceptance_length,
        "acceptance_rate": summary.acceptance_rate,
        "hit_rate": summary.hit_rate,
        "per_position": [*summary.per_position],
        "lossless": _lossless(trace.lossless),
        "alarms": [
            {"kind": alarm.kind, "severity": alarm.severity, "sentence": alarm.sentence}
            for alarm in alarms(trace.rounds, baseline_tpot(trace), trace.lossless)
        ],
    }


def _lossless(report: LosslessReport | None) -> Value:
    report = report or LosslessReport("not-run")
    return {
        "class": report.kind,
        "first_divergence": report.first_divergence,
        "margin": report.margin,
        "worst_gap": report.worst_gap,
        "compared": report.compared,
        "tolerance": report.tolerance,
    }


def _speed(trace: Trace) -> dict[str, Value]:
    summary = summarise(trace.rounds)
    plain, decode = baseline_tpot(trace), summary.timing.total
    whole = decode + trace.prefill_seconds
    tokens = summary.output_tokens
    return {
        "tpot_ms": _ms(summary.tpot),
        "baseline_tpot_ms": _ms(plain),
        "speedup": speedup(plain, summary.tpot),
        "predicted_speedup": predicted_speedup(summary, plain),
        "prefill_ms": _ms(trace.prefill_seconds),
        "tokens_per_second_decode": tokens / decode if decode and tokens else None,
        "tokens_per_second_with_prefill": tokens / whole if whole and tokens else None,
        "timing_unit": "ms per round",
        "timing": timing(trace.rounds),
    }


def timing(rounds: tuple[Round, ...]) -> dict[str, Value]:
    """Return the milliseconds of a mean round, phase by phase; None without rounds."""
    mean = summarise(rounds).mean_timing
    names = ("draft", "score", "verify", "commit", "other")
    return {name: _ms(getattr(mean, name)) if rounds else None for name in names}


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds


def paragraph(trace: Trace) -> str:
    """Return the numbers of a run in words."""
    summary, facts = summarise(trace.rounds), as_json(trace)
    env = trace.environment
    lines = [
        f"{trace.target.name} on {env.device_name}, {env.dtype}, {env.threads} threads, batch 1",
        f"scheme {trace.config.scheme}, D = {trace.config.draft_length}, "
        f"{'chat template' if trace.chat else 'raw text'}",
        f"{summary.output_tokens} tokens in {summary.rounds} rounds: "
        f"{_number(summary.acceptance_length, 2)} per round, bonus included",
        f"{summary.accepted} of {summary.drafted} drafted tokens accepted "
        f"({_percent(summary.acceptance_rate)}); "
        f"{_percent(summary.hit_rate)} of rounds had a draft",
        f"per token, prefill not counted: {_number(facts['tpot_ms'], unit=' ms')}; plain decoding: "
        f"{_number(facts['baseline_tpot_ms'], unit=' ms')}; "
        f"speedup: {_number(facts['speedup'], 2, 'x')}; "
        f"predicted: {_number(facts['predicted_speedup'], 2, 'x')}",
        f"mean round, ms: {_phases(facts['timing'])}",
        f"same as plain decoding: {verdict(trace.lossless)}",
        f"finished: {_finish(trace)}",
    ]
    found = alarms(trace.rounds, baseline_tpot(trace), trace.lossless)
    return "\n".join([*lines, *(f"{alarm.severity}: {alarm.sentence}" for alarm in found)])


def verdict(report: LosslessReport | None) -> str:
    """Return the lossless report as one sentence."""
    if report is None or report.kind == "not-run":
        return "not checked"
    if report.kind == "sampled":
        return "not comparable token by token (sampled); plain decoding was only timed"
    if report.kind == "identical":
        return f"identical over {report.compared} tokens"
    return (
        f"{report.kind}: first difference at output token {report.first_divergence}, plain "
        f"decoding preferred {report.plain_token} over {report.token} by "
        f"{_number(report.margin, 4)} (tolerance {_number(report.tolerance, 4)})"
    )


def _finish(trace: Trace) -> str:
    finish = trace.finish
    if finish is None:
        return "no"
    return f"{finish.reason} ({finish.detail})" if finish.detail else finish.reason


def _phases(values: Value) -> str:
    assert isinstance(values, Mapping)
    return ", ".join(f"{name} {_number(value)}" for name, value in values.items())


def _number(value: Value, digits: int = 1, unit: str = "") -> str:
    return f"{value:.{digits}f}{unit}" if isinstance(value, int | float) else "not measured"


def _percent(value: float | None) -> str:
    return "n/a" if value is None else f"{100 * value:.0f}%"
