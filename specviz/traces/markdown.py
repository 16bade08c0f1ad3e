"""A run as Markdown, as one would paste it into an issue of an engine.

In English whatever the language of the page: that is what issue trackers are written in. Token
text is quoted so that no renderer reads it as Markdown or HTML.
"""

import re
from collections.abc import Sequence
from dataclasses import fields

from specviz.config import DrafterOptions, SamplingParams
from specviz.events import LosslessReport
from specviz.metrics import alarms, predicted_speedup, speedup, summarise
from specviz.traces.diff import Divergence, compare
from specviz.traces.schema import Trace

ROUNDS = 12  # shown around the place in question
_PHASES = ("draft", "score", "verify", "commit", "other")


def issue(trace: Trace, other: Trace | None = None) -> str:
    """Return versions, settings, numbers, the first divergence, rounds, prompt and output.

    `other` is a second run to compare with; `redact` the trace first to leave the prompt out.
    """
    found = compare(trace, other).divergence if other else None
    about = _token_index(trace, found)
    parts = [
        f"### {_line(trace.title) or 'A speculative decoding run'}",
        _bullets(_versions(trace)),
        "#### Settings",
        _bullets(_settings(trace)),
        "#### Numbers",
        _numbers(trace, other),
        "#### First divergence",
        _divergence(trace, other, found),
        f"#### Rounds{'' if len(trace.rounds) <= ROUNDS else ' around it'}",
        _rounds(trace, about),
        "#### Prompt",
        "left out" if trace.redacted else fence(trace.prompt_text or ""),
        "#### Output",
        fence(trace.text),
        _details("Token ids of the output", fence(" ".join(map(str, trace.output)))),
    ]
    return "\n\n".join(parts) + "\n"


def code(text: str) -> str:
    """Return `text` as inline code, fit for a table cell: one line, no pipe, no open backtick."""
    flat = text.replace("\n", "↵").replace("\r", "␍").replace("\t", "⇥")
    flat = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in flat).replace("|", "¦")
    ticks = "`" * (_longest_run(flat) + 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") or not flat.strip() else ""
    return f"{ticks}{pad}{flat}{pad}{ticks}" if flat else "(no bytes)"


def fence(text: str) -> str:
    """Return `text` as a block of code that nothing inside it can close."""
    ticks = "`" * max(3, _longest_run(text) + 1)
    end = "" if text.endswith("\n") else "\n"
    return f"{ticks}text\n{text}{end}{ticks}"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def _line(text: str) -> str:
    """One line of plain text: what Markdown or HTML would read is escaped."""
    return re.sub(r"([\\`*_{}\[\]<>()#|!~&$@:])", r"\\\1", " ".join(text.split()))


def _bullets(pairs: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"- {name}: {code(value)}" for name, value in pairs)


def _details(summary: str, body: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def _versions(trace: Trace) -> list[tuple[str, str]]:
    env, target = trace.environment, trace.target
    shape = f"{target.layers} layers, {target.heads} heads, {target.kv_heads} KV heads"
    rows = [
        ("specviz", env.specviz),
        ("torch", env.torch),
        ("transformers", env.transformers),
        ("Python", f"{env.python}, {env.platform}"),
        ("device", f"{env.device_name} ({env.device}), {env.dtype}, {env.threads} threads"),
        ("target", f"{target.name}, {shape}, G = {target.group_size}"),
        ("target weights", target.sha or "made in memory"),
    ]
    if trace.draft is not None:
        rows.append(("drafter", f"{trace.draft.name} {trace.draft.sha}".rstrip()))
    return [*rows, ("recorded", trace.created)]


def _settings(trace: Trace) -> list[tuple[str, str]]:
    """What was asked for: the main settings, and the others where they are not the default."""
    params, config = trace.params, trace.config
    rows = [
        ("scheme", config.scheme),
        ("D", str(config.draft_length)),
        ("verifier", config.verifier),
        ("temperature", f"{params.temperature:g}"),
        ("seed", str(params.seed)),
        ("max tokens", str(params.max_tokens)),
        ("prompt", "chat template" if trace.chat else "raw text"),
        ("batch", "1"),
    ]
    told = {"temperature", "seed", "max_tokens"}
    for given, default in ((params, SamplingParams()), (config.options, DrafterOptions())):
        for field in fields(given):
            value = getattr(given, field.name)
            if field.name not in told and value != getattr(default, field.name):
                rows.append((field.name, str(value)))
    return rows


def _numbers(trace: Trace, other: Trace | None) -> str:
    ours = _figures(trace)
    if other is None:
        return _table(("", "this run"), [(name, value) for name, value in ours.items()])
    theirs = _figures(other)
    rows = [(name, ours[name], theirs[name]) for name in ours]
    return _table(("", "this run", "the other run"), rows)


def _figures(trace: Trace) -> dict[str, str]:
    s = summarise(trace.rounds)
    plain = trace.lossless.plain_tpot if trace.lossless else None
    mean = s.mean_timing
    ms = ", ".join(f"{name} {1000 * getattr(mean, name):.2f}" for name in _PHASES)
    return {
        "prompt / output tokens": f"{len(trace.prompt)} / {s.output_tokens}",
        "rounds": str(s.rounds),
        "tokens per round, bonus included": _number(s.acceptance_length, ".3f"),
        "accepted / drafted": f"{s.accepted} / {s.drafted} ({_number(s.acceptance_rate, '.1%')})",
        "drafted per round": _number(s.mean_drafted, ".2f"),
        "accepted at position / rounds": ", ".join(f"{x:.3f}" for x in s.per_position) or "n/a",
        "ms per output token, decoding only": _number(s.tpot and 1000 * s.tpot, ".2f"),
        "ms per output token, plain": _number(plain and 1000 * plain, ".2f"),
        "speedup, measured": _number(speedup(plain, s.tpot), ".2f", "x"),
        "speedup, from the parts": _number(predicted_speedup(s, plain), ".2f", "x"),
        "mean round, ms": ms if s.rounds else "n/a",
        "warnings": "; ".join(
            alarm.sentence.replace("|", "¦")
            for alarm in alarms(trace.rounds, plain, trace.lossless)
        )
        or "none",
        "finish": trace.finish.reason if trace.finish else "not finished",
    }


def _number(value: float | None, form: str, unit: str = "") -> str:
    return "not measured" if value is None else f"{value:{form}}{unit}"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _divergence(trace: Trace, other: Trace | None, found: Divergence | None) -> str:
    lines = [_against_plain(trace, trace.lossless)]
    if other is not None:
        lines.append(_against_other(trace, other, found))
    return "\n".join(f"- {line}" for line in lines)


def _against_plain(trace: Trace, report: LosslessReport | None) -> str:
    if report is None or report.kind == "not-run":
        return "Against plain decoding: not checked."
    if report.kind == "sampled":
        return "Against plain decoding: sampled, so not comparable token by token."
    worst = _number(report.worst_gap, ".4g")
    if report.kind == "identical":
        return (
            f"Against plain decoding on the same weights: identical over {report.compared} tokens; "
            f"largest distance to the best logit {worst}."
        )
    theirs, ours = (
        _text(trace, () if token is None else (token,))
        for token in (report.plain_token, report.token)
    )
    kind = "a near tie" if report.kind == "near-tie" else "not a rounding tie"
    return (
        f"Against plain decoding on the same weights: first at output token "
        f"{report.first_divergence}: plain {report.plain_token} {theirs}, here "
        f"{report.token} {ours}; logit margin {_number(report.margin, '.4g')}, tolerance "
        f"{_number(report.tolerance, '.4g')}: {kind}."
    )


def _against_other(trace: Trace, other: Trace, found: Divergence | None) -> str:
    prompt = "" if trace.prompt == other.prompt else " The prompts DIFFER."
    if found is None:
        return f"Against the other run: the same text, {len(trace.output)} tokens.{prompt}"
    sides = "; ".join(
        f"{name} token {side.index}: "
        + ("ended" if side.token is None else f"{side.token} {code(side.text)}")
        + ("" if side.margin is None else f", its own margin {side.margin:.4g} nats")
        for name, side in (("this run", found.left), ("the other run", found.right))
    )
    return f"Against the other run: first at byte {found.byte} of the output; {sides}.{prompt}"


def _token_index(trace: Trace, found: Divergence | None) -> int:
    """Output token the table of rounds is about: where runs part, else the beginning."""
    if found is not None:
        return found.left.index
    report = trace.lossless
    return (report.first_divergence or 0) if report else 0


def _rounds(trace: Trace, about: int) -> str:
    start = len(trace.prompt) + about
    at = sum(r.start + r.acceptance_length <= start for r in trace.rounds)
    first = max(0, min(at - ROUNDS // 2, len(trace.rounds) - ROUNDS))
    rows = []
    for r in trace.rounds[first : first + ROUNDS]:
        last = "" if r.last_token is None else f"{r.last_kind} {_text(trace, (r.last_token,))}"
        mark = " **<**" if r.index == at and about else ""
        kept = tuple(r.draft.tokens[node] for node in r.path)
        rows.append(
            (
                f"{r.index + 1}{mark}",
                str(r.start - len(trace.prompt)),
                _text(trace, r.draft.tokens),
                _text(trace, kept),
                last,
            )
        )
    return _table(("round", "output token", "drafted", "accepted", "target's own"), rows)


def _text(trace: Trace, tokens: Sequence[int]) -> str:
    if not tokens:
        return ""
    return code(b"".join(map(trace.piece, tokens)).decode("utf-8", "backslashreplace"))
