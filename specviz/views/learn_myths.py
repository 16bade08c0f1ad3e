"""Myth and measurement: what popular articles say, and a number for what is so.

A number is measured (in a recording that comes with specviz), published, or worked out. None is
written here that belongs to a recording.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from specviz.cost.tiles import TILE, Tiling
from specviz.metrics import speedup, summarise
from specviz.traces.schema import Trace
from specviz.words import _

How = Literal["measured", "published", "worked out"]
Timed = tuple[float, Trace]  # a run behind its speedup

CODESIGN = "NVIDIA Technical Blog, 2 Sep 2026, Co-Designing AI Models Using Speculative Decoding"
DFLASH = "DFlash, arXiv:2602.06036"
DFLASH_BLOG = "NVIDIA Technical Blog, 23 Jun 2026, DFlash on Blackwell"
DSPARK = "DSpark, arXiv:2607.05147"


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One claim one can read, what is so, and the number that shows it."""

    myth: str
    fact: str
    number: str
    how: How
    source: str


def how(kind: How) -> str:
    """Return the word for how a number is known."""
    return {
        "measured": _("measured"),
        "published": _("published"),
        "worked out": _("worked out"),
    }[kind]


def cards(recordings: Mapping[str, Trace]) -> tuple[Card, ...]:
    """Return the cards; `recordings` are the traces they measure, by name."""
    runs = [trace for trace in recordings.values() if len(trace.rounds)]
    return (*_measured(runs), *_worked_out(runs), *_published())


def _where(trace: Trace) -> str:
    env, config = trace.environment, trace.config
    text = _("recording {title}, {device}, {dtype}, {date}, batch 1")
    return text.format(
        title=f"{_(trace.title)} ({config.scheme}, D = {config.draft_length})",
        device=env.device_name,
        dtype=env.dtype,
        date=trace.created[:10],
    )


def _gain(trace: Trace) -> float | None:
    plain = trace.lossless.plain_tpot if trace.lossless else None
    return speedup(plain, summarise(trace.rounds).tpot)


def _measured(runs: list[Trace]) -> tuple[Card, ...]:
    timed = [(gain, trace) for trace in runs if (gain := _gain(trace)) is not None]
    if not timed:
        return ()
    (low, slow), (high, fast) = _apart(timed)
    gain, dear = min(timed, key=_kept)
    s = summarise(fast.rounds)
    return (
        Card(
            myth=_("Speculative decoding makes this model N times faster."),
            fact=_("There is no N: the same drafter and D on another prompt gain something else."),
            number=_("{low} on one prompt, {high} on another").format(
                low=f"{low:.2f}x", high=f"{high:.2f}x"
            ),
            how="measured",
            source=f"{_where(slow)}; {_(fast.title)}",
        ),
        Card(
            myth=_("E[L] is how many drafts the target accepts."),
            fact=_("E[L] also counts the token the target adds itself, so it begins at 1."),
            number=_("{kept} accepted per round, E[L] = {length}").format(
                kept=f"{s.accepted / s.rounds:.2f}", length=_length(fast)
            ),
            how="measured",
            source=_where(fast),
        ),
        Card(
            myth=_("E[L] is the speedup."),
            fact=_("A round is dearer than a plain pass: drafting and the wider pass cost time."),
            number=_("E[L] = {length}, speedup {gain}").format(
                length=_length(dear), gain=f"{gain:.2f}x"
            ),
            how="measured",
            source=_where(dear),
        ),
    )


def _apart(timed: list[Timed]) -> tuple[Timed, Timed]:
    """The slowest and the fastest run of one drafter at one D: where prompts differ most."""
    alike: dict[tuple[str, int], list[Timed]] = {}
    for each in timed:
        config = each[1].config
        alike.setdefault((config.scheme, config.draft_length), []).append(each)
    pairs = [(min(runs, key=_first), max(runs, key=_first)) for runs in alike.values()]
    return max(pairs, key=lambda pair: pair[1][0] / pair[0][0])


def _first(pair: Timed) -> float:
    return pair[0]


def _kept(pair: Timed) -> float:
    """The part of E[L] that is left as speedup."""
    return pair[0] / (summarise(pair[1].rounds).acceptance_length or 1.0)


def _length(trace: Trace) -> str:
    return f"{summarise(trace.rounds).acceptance_length or 0.0:.2f}"


def _worked_out(runs: list[Trace]) -> tuple[Card, ...]:
    if not runs:
        return ()
    target, length = runs[0].target, runs[0].config.draft_length
    group, rows = target.group_size, target.group_size * (1 + length)
    best = TILE // group - 1
    tiling = Tiling(rows)
    return (
        Card(
            myth=_("G is the number of attention groups."),
            fact=_("G is query heads per KV head. The number of groups advises the opposite."),
            number=_("{model}: {heads} heads / {kv} KV heads, G = {g}").format(
                model=target.name, heads=target.heads, kv=target.kv_heads, g=group
            ),
            how="worked out",
            source=_("the model's own config"),
        ),
        Card(
            myth=_("D must fill the tile of {tile} rows: G x (1 + D) = {tile}.").format(tile=TILE),
            fact=_(
                "That is where to begin when attention rules a long context. A small model's "
                "acceptance ends long before, and kernels have smaller tiles for fewer rows."
            ),
            number=_("the rule: D = {best}; this recording: {d}, filling {share}").format(
                best=best, d=length, share=f"{tiling.utilisation:.0%}"
            ),
            how="worked out",
            source=CODESIGN,
        ),
    )


def _published() -> tuple[Card, ...]:
    return (
        Card(
            myth=_("128 is the physical edge of the matrix unit."),
            fact=_("It is the software tile of one benchmarked kernel; hardware has other steps."),
            number=_("64 rows (wgmma), 64, 128 or 256 (tcgen05), 16 x 8 x 16 (mma.sync)"),
            how="published",
            source=_("PTX instruction set; {blog}").format(blog=CODESIGN),
        ),
        Card(
            myth=_("DFlash is 6 times faster."),
            fact=_("That is the best of its test sets; the mean is lower."),
            number=_("6.08x on MATH-500, 2.75x on MT-Bench, mean 4.86x"),
            how="published",
            source=_("{paper}, Qwen3-8B, greedy, Transformers").format(paper=DFLASH),
        ),
        Card(
            myth=_("DFlash drafts blocks of 7."),
            fact=_("Its own block is larger; 7 is the setting DSpark was compared in."),
            number=_("16 = 15 drafts and an anchor"),
            how="published",
            source=f"{DFLASH}; {DSPARK}",
        ),
        Card(
            myth=_("Up to 15 times faster with long contexts."),
            fact=_(
                "A ratio of throughputs at one fixed speed per user, where plain decoding can "
                "serve almost nobody. It is not about long contexts."
            ),
            number=_("15x at 500-600 tokens/s per user; 2.3x at equal concurrency"),
            how="published",
            source=_("{blog}: gpt-oss-120b, coding, 8 x B300").format(blog=DFLASH_BLOG),
        ),
        Card(
            myth=_("DSpark is 60-85% faster than MTP."),
            fact=_("Per user, at matched throughput, one model, against an MTP of one token."),
            number=_("+60 to +85% (V4-Flash), +57 to +78% (V4-Pro)"),
            how="published",
            source=DSPARK,
        ),
        Card(
            myth=_("DSpark accepts 30% more than EAGLE-3, on any model."),
            fact=_("True on three targets of one family; the order depends on the target."),
            number=_("+30.9, +26.7, +30.0% on Qwen3-4B, 8B, 14B"),
            how="published",
            source=DSPARK,
        ),
        Card(
            myth=_("High acceptance shows that the output is right."),
            fact=_("Acceptance compares drafts with a target whose state may be wrong."),
            number=_("64-81% accepted with 0 of 20 valid JSON answers"),
            how="published",
            source="vllm-project/vllm#39273",
        ),
    )
