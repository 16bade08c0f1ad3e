"""Loss and held-out E[L] over a run, as an SVG that any browser shows."""

from collections.abc import Sequence

from specviz.train.checkpointing import Mark

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 640, 300, 60, 30, 40
LOSS, LENGTH = "#d55e00", "#0072b2"


def plot(marks: Sequence[Mark], title: str) -> str:
    """Draw both curves; the loss is dashed, so that colour is not needed to tell them apart."""
    steps = [mark.step for mark in marks]
    lengths = [mark.acceptance_length or 0.0 for mark in marks]
    losses = [mark.loss for mark in marks]
    right = WIDTH - LEFT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{WIDTH / 2}" y="18" text-anchor="middle">{title}</text>',
        f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{right}V{TOP}" fill="none" stroke="#999"/>',
        _curve(steps, losses, LOSS, dash="5 4"),
        _curve(steps, lengths, LENGTH),
        *_scale(losses, LOSS, "loss", LEFT - 6, "end"),
        *_scale(lengths, LENGTH, "E[L]", right + 6, "start"),
    ]
    if steps:
        foot = HEIGHT - BOTTOM + 18
        parts.append(f'<text x="{LEFT}" y="{foot}" text-anchor="middle">{steps[0]}</text>')
        parts.append(f'<text x="{right}" y="{foot}" text-anchor="middle">{steps[-1]}</text>')
        parts.append(f'<text x="{WIDTH / 2}" y="{foot}" text-anchor="middle">step</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _curve(steps: Sequence[int], values: Sequence[float], colour: str, dash: str = "") -> str:
    spots = zip(
        _spread(steps, LEFT, WIDTH - LEFT), _spread(values, HEIGHT - BOTTOM, TOP), strict=True
    )
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
    return (
        f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2" '
        f'stroke-dasharray="{dash or "none"}"/>'
    )


def _scale(values: Sequence[float], colour: str, name: str, x: float, anchor: str) -> list[str]:
    if not values:
        return []
    spots = ((min(values), HEIGHT - BOTTOM), (max(values), TOP + 10))
    texts = [
        f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{colour}">{value:.2f}</text>'
        for value, y in spots
    ]
    middle = (TOP + HEIGHT - BOTTOM) / 2
    return [
        *texts,
        f'<text x="{x}" y="{middle}" text-anchor="{anchor}" fill="{colour}">{name}</text>',
    ]


def _spread(values: Sequence[float], low: float, high: float) -> list[float]:
    """Map values linearly, the smallest to `low` and the largest to `high`."""
    if not values:
        return []
    least, span = min(values), max(values) - min(values)
    return [low + (high - low) * ((v - least) / span if span else 0.5) for v in values]
