"""The plots of a GPU check, from what its file holds."""

from collections.abc import Iterator, Mapping
from typing import cast

from specviz.bench.gpu_plot import Chart

Json = Mapping[str, object]


def charts(found: Json) -> Iterator[tuple[str, Chart]]:
    """Yield a file name and a chart: attention by packed rows, and passes by rows."""
    stages = cast("Mapping[str, Json]", found["stages"])
    environment = cast(Json, found["environment"])
    label = f"{environment['device']}, {str(found['date'])[:10]}"
    attention = cast("Json | None", stages.get("attention", {}).get("result"))
    if attention:
        yield from _attention(cast("list[Json]", attention["points"]), label)
    decode = cast("Json | None", stages.get("decode", {}).get("result"))
    if decode:
        for size in cast("list[Json]", decode["sizes"]):
            yield _passes(size, label)


def _attention(points: list[Json], label: str) -> Iterator[tuple[str, Chart]]:
    series = dict.fromkeys((p["context"], p["batch"], p["group"]) for p in points)
    for context, batch, group in series:
        mine = [
            p for p in points if (p["context"], p["batch"], p["group"]) == (context, batch, group)
        ]
        backends = dict.fromkeys(str(p["backend"]) for p in mine)
        yield (
            f"attention-s{context}-b{batch}-g{group}.svg",
            Chart(
                title=f"Attention, G = {group}, {context} cached, batch {batch} ({label})",
                x_title="packed rows G x (1 + D)",
                y_title="microseconds",
                lines={
                    name: [
                        (_number(p["rows"]) * _number(group), 1e6 * _number(p["seconds"]))
                        for p in mine
                        if p["backend"] == name
                    ]
                    for name in backends
                },
                rules=(16, 32, 64, 128, 256),
            ),
        )


def _passes(size: Json, label: str) -> tuple[str, Chart]:
    shape = cast(Json, size["size"])
    twins = cast("list[Json]", size["twins"])
    name = str(shape["name"])
    return (
        f"passes-{name.split()[0].lower()}.svg",
        Chart(
            title=f"One pass of the {name} after {shape['context']} tokens ({label})",
            x_title="rows 1 + D",
            y_title="milliseconds",
            lines={
                f"G = {twin['group']}": [
                    (_number(r["rows"]), 1e3 * _number(r["seconds"]))
                    for r in cast("list[Json]", twin["rows"])
                ]
                for twin in twins
            },
        ),
    )


def _number(value: object) -> float:
    return float(str(value))
