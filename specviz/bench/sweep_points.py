"""From measurements to points: speedup with its interval, what was predicted, what is left over."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import fmean, median

import numpy as np

from specviz.bench.spread import BUSY
from specviz.cost.speedup import speedup
from specviz.drafters import describe
from specviz.events import Timing
from specviz.metrics.summary import ratio
from specviz.metrics.sweep import ALL, Cell, Mode, Pass, Point, Sample

DRAWS = 500  # of the bootstrap
SURE = 0.95
SMALLEST = 2  # baselines from which on their spread says something

Curve = Mapping[int, float]  # seconds of a pass by rows


@dataclass(frozen=True, slots=True)
class _OfPrompt:
    """One prompt's repeats of one cell, each with the plain decoding around it."""

    samples: Sequence[Sample]
    plain: Sequence[float]  # seconds per plain round, one for each sample
    plain_rest: float  # seconds of a plain round outside its pass
    ratios: Sequence[float]
    predicted: float | None
    busy: bool
    same_text: bool | None

    @property
    def speedup(self) -> float:
        return median(self.ratios)

    @property
    def plain_round(self) -> float:
        return median(self.plain)


def pass_times(passes: Iterable[Pass], mode: Mode, group: int) -> dict[int, float]:
    """Return the median seconds of a pass over each number of rows."""
    seen: dict[int, list[float]] = {}
    for one in passes:
        if (one.mode, one.group_size, one.batch) == (mode, group, 1):
            seen.setdefault(one.rows, []).append(one.seconds)
    return {rows: median(times) for rows, times in sorted(seen.items())}


def verify_curve(times: Curve) -> dict[int, float]:
    """Return v(rows)/v(1); empty before a pass over one row was measured."""
    return {rows: t / times[1] for rows, t in times.items()} if 1 in times else {}


def points(samples: Sequence[Sample], passes: Sequence[Pass]) -> list[Point]:
    """Return a point for every cell and prompt class, and one over all classes."""
    by_cell: dict[Cell, dict[str, list[Sample]]] = {}
    for sample in samples:
        by_cell.setdefault(sample.cell, {}).setdefault(sample.prompt, []).append(sample)
    times = {key: pass_times(passes, *key) for key in {(p.mode, p.group_size) for p in passes}}
    found = list[Point]()
    for cell, own in by_cell.items():
        if cell.scheme != "none":
            curve = verify_curve(times.get((cell.mode, cell.group_size), {}))
            prompts = _by_prompt(cell, own, by_cell.get(cell.plain, {}), curve)
            found += _of_classes(cell, prompts)
            found += _twins(cell, prompts, times)
    return found


def _by_prompt(
    cell: Cell,
    own: Mapping[str, Sequence[Sample]],
    baseline: Mapping[str, Sequence[Sample]],
    curve: Curve,
) -> list[_OfPrompt]:
    found = []
    for prompt, mine in own.items():
        if prompt not in baseline:
            continue
        plain = baseline[prompt]
        base = [_neighbours(s, plain) for s in mine]
        rest = median((s.timing.total - s.timing.score) / s.rounds for s in plain)
        texts = {s.digest for s in plain}
        found.append(
            _OfPrompt(
                samples=mine,
                plain=base,
                plain_rest=rest,
                ratios=[b / s.tpot for b, s in zip(base, mine, strict=True)],
                predicted=_predicted(mine, median(base), rest, curve),
                busy=_is_busy([s.tpot for s in plain]),
                same_text=None if cell.temperature else {s.digest for s in mine} <= texts,
            )
        )
    return found


def _neighbours(sample: Sample, plain: Sequence[Sample]) -> float:
    """Seconds per plain round at the time of a sample: between the runs before and after it."""
    before = [p for p in plain if p.order < sample.order]
    after = [p for p in plain if p.order > sample.order]
    return fmean(p.tpot for p in (*before[-1:], *after[:1]))


def _is_busy(times: Sequence[float]) -> bool:
    """Whether plain decoding of one prompt took very different times, the odd one forgiven."""
    if len(times) < SMALLEST:
        return False
    low, high = np.quantile(times, (0.1, 0.9))
    return bool((high - low) / median(times) > BUSY)


def _predicted(samples: Sequence[Sample], plain: float, rest: float, curve: Curve) -> float | None:
    """E[L] / (pass + rest + draft): acceptance and drafting as in these rounds, v from passes.

    What a plain round takes outside its pass, `rest` of `plain`, does not grow with the rows.
    """
    rows = _mean_rows(samples, curve)
    if rows is None:
        return None
    rounds = sum(s.rounds for s in samples)
    draft = sum(s.timing.draft for s in samples) / rounds / plain
    verify = (rows * (plain - rest) + rest) / plain
    return speedup(_profile_length(samples), verify, draft)


def _mean_rows(samples: Sequence[Sample], curve: Curve) -> float | None:
    """Mean over the rounds of what a pass over 1 + drafted rows takes; None if one is unknown."""
    counts: dict[int, int] = {}
    for sample in samples:
        for drafted, rounds in enumerate(sample.lengths):
            if rounds:
                counts[1 + drafted] = counts.get(1 + drafted, 0) + rounds
    if any(rows not in curve for rows in counts):
        return None
    return sum(curve[rows] * n for rows, n in counts.items()) / sum(counts.values())


def marginal(samples: Sequence[Sample]) -> tuple[float, ...]:
    """Return the share of rounds that accepted at least k + 1 tokens, for every k."""
    rounds, longest = sum(s.rounds for s in samples), max(len(s.survived) for s in samples)
    kept = (sum(s.survived[k] for s in samples if k < len(s.survived)) for k in range(1, longest))
    return tuple(n / rounds for n in kept)


def _profile_length(samples: Sequence[Sample]) -> float:
    """E[L] of the acceptance profile."""
    return 1 + sum(marginal(samples))


def _of_classes(cell: Cell, prompts: Sequence[_OfPrompt]) -> list[Point]:
    classes = dict.fromkeys(p.samples[0].prompt_class for p in prompts)
    found = [_point(cell, name, [p for p in prompts if p.samples[0].prompt_class == name])
             for name in classes]  # fmt: skip
    return [*found, _point(cell, ALL, prompts)] if prompts else []


def _point(cell: Cell, name: str, prompts: Sequence[_OfPrompt]) -> Point:
    samples = [s for p in prompts for s in p.samples]
    low, high = interval([p.ratios for p in prompts])
    known = [p.predicted for p in prompts if p.predicted is not None]
    whole = len(known) == len(prompts)
    shares = marginal(samples)
    # A position that no draft reached was accepted in no round.
    shares += (0.0,) * (cell.draft_length - len(shares))
    drafted, accepted = sum(s.drafted for s in samples), sum(s.accepted for s in samples)
    texts = [p.same_text for p in prompts]
    return Point(
        cell=cell,
        prompt_class=name,
        speedup=median(p.speedup for p in prompts),
        low=low,
        high=high,
        predicted=median(known) if whole else None,
        remainder=median(map(_remainder, prompts)) if whole else None,
        acceptance_length=sum(s.tokens for s in samples) / sum(s.rounds for s in samples),
        acceptance_rate=ratio(accepted, drafted),
        marginal=shares,
        conditional=tuple(map(ratio, shares, (1.0, *shares[:-1]))),
        timing=_mean_round(samples),
        plain_round=fmean(p.plain_round for p in prompts),
        prompts=len(prompts),
        repeats=max(len(p.samples) for p in prompts),
        busy=any(p.busy for p in prompts),
        same_text=None if None in texts else all(texts),
        is_block=describe(cell.scheme).is_block,
        traces=tuple(s.trace for s in samples if s.trace),
    )


def _remainder(prompt: _OfPrompt) -> float:
    """Plain rounds per round that neither the pass nor draft nor a plain round's rest explains."""
    assert prompt.predicted is not None
    length = _profile_length(prompt.samples)
    return length / prompt.speedup - length / prompt.predicted


def _mean_round(samples: Sequence[Sample]) -> Timing:
    rounds = sum(s.rounds for s in samples)
    return Timing(*(sum(getattr(s.timing, f.name) for s in samples) / rounds
                    for f in fields(Timing)))  # fmt: skip


def interval(ratios: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return the 95% bootstrap interval of the median over prompts.

    `ratios` holds the repeats of each prompt. Prompts are drawn with replacement, because it is
    over prompts that the result is said to hold. Of one prompt it is the range of its repeats.
    """
    if len(ratios) == 1:
        return min(ratios[0]), max(ratios[0])
    medians = np.array([median(each) for each in ratios])
    drawn = np.random.default_rng(0).integers(len(medians), size=(DRAWS, len(medians)))
    low, high = np.quantile(np.median(medians[drawn], axis=1), ((1 - SURE) / 2, (1 + SURE) / 2))
    return float(low), float(high)


def _twins(
    cell: Cell, prompts: Sequence[_OfPrompt], times: Mapping[tuple[Mode, int], Curve]
) -> list[Point]:
    """The same rounds on timed twins: their passes, the measured target's acceptance and rest."""
    groups = sorted(group for mode, group in times if mode == "twin")
    if cell.mode != "exact" or cell.group_size in groups:
        return []
    found = list[Point]()
    for group in groups:
        turned = [_on_twin(p, times["twin", group]) for p in prompts]
        whole = [p for p in turned if p is not None]
        other = Cell(
            scheme=cell.scheme,
            draft_length=cell.draft_length,
            group_size=group,
            mode="twin",
            temperature=cell.temperature,
        )
        if whole and len(whole) == len(turned):
            found += _of_classes(other, whole)
    return found


def _on_twin(prompt: _OfPrompt, twin: Curve) -> _OfPrompt | None:
    """One prompt's rounds with the passes of a twin in place of the target's."""
    score = _mean_rows(prompt.samples, twin)
    if score is None or 1 not in twin:
        return None
    plain = prompt.plain_rest + twin[1]
    ratios = []
    for sample in prompt.samples:
        rest = (sample.timing.total - sample.timing.score) / sample.rounds
        ratios.append(sample.acceptance_length * plain / (score + rest))
    return _OfPrompt(
        samples=prompt.samples,
        plain=[plain] * len(ratios),
        plain_rest=prompt.plain_rest,
        ratios=ratios,
        predicted=_predicted(prompt.samples, plain, prompt.plain_rest, verify_curve(twin)),
        busy=prompt.busy,
        same_text=None,
    )


def median_error(found: Iterable[Point]) -> float | None:
    """Return the median over points of |predicted / measured - 1|; None without predictions."""
    errors = [abs(p.error) for p in found if p.error is not None]
    return median(errors) if errors else None
