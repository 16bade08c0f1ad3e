"""Line charts as SVG files, written by hand: a machine with a GPU may have nothing that plots."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 720, 420, 70, 50, 40, 170
DASHES = ("none", "8 4", "2 3", "10 3 2 3", "5 5", "12 4", "1 5", "4 2")
# Okabe and Ito: told apart without colour vision
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#6B6B6B")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Lines over x, by name; both axes from zero; `rules` are vertical, such as tile edges."""

    title: str
    x_title: str
    y_title: str
    lines: Mapping[str, Sequence[tuple[float, float]]]
    rules: Sequence[float] = ()

    def svg(self) -> str:
        """Return the chart as one SVG document."""
        points = [point for line in self.lines.values() for point in line]
        ticks_x = _ticks(max((x for x, _ in points), default=1.0) or 1.0)
        ticks_y = _ticks(max((y for _, y in points), default=1.0) or 1.0)
        most_x, most_y = ticks_x[-1], ticks_y[-1]

        def at(x: float, y: float) -> tuple[float, float]:
            across = LEFT + (WIDTH - LEFT - RIGHT) * x / most_x
            return across, HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * y / most_y

        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            'font-family="sans-serif" font-size="12">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
            _text(LEFT, 20, self.title, size=14),
            _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, self.x_title, anchor="middle"),
            _text(LEFT, TOP - 6, self.y_title),
        ]
        for tick in ticks_y:
            _, y = at(0, tick)
            parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
            parts.append(_text(LEFT - 6, y + 4, f"{tick:.3g}", anchor="end"))
        for tick in ticks_x:
            x, bottom = at(tick, 0)
            parts.append(_text(x, bottom + 16, f"{tick:.4g}", anchor="middle"))
        for rule in self.rules:
            if rule <= most_x:
                x, bottom = at(rule, 0)
                parts.append(
                    f'<path d="M{x:.1f} {TOP}V{bottom:.1f}" stroke="#888" stroke-dasharray="4 3"/>'
                )
        for index, (name, line) in enumerate(self.lines.items()):
            colour, dash = COLOURS[index % len(COLOURS)], DASHES[index % len(DASHES)]
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*point) for point in line))
            parts.append(
                f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" '
                f'stroke-dasharray="{dash}"/>'
            )
            side, y = WIDTH - RIGHT + 10, TOP + 18 * index
            parts.append(
                f'<path d="M{side} {y - 4}h28" stroke="{colour}" stroke-width="2" '
                f'stroke-dasharray="{dash}"/>'
            )
            parts.append(_text(side + 34, y, name))
        return "\n".join([*parts, "</svg>", ""])


def _ticks(most: float) -> list[float]:
    """Return round numbers from 0 to `most` or just beyond, at most six."""
    scale = 10 ** floor(log10(most))
    steps = (n * scale / 10 for n in (1, 2, 2.5, 5, 10, 20, 25, 50))
    step = next(step for step in steps if most <= 5 * step)
    return [n * step for n in range(ceil(most / step - 1e-9) + 1)]


def _text(x: float, y: float, text: str, size: int = 12, anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
        f'fill="#222">{escape(text)}</text>'
    )
