"""The figures a GPU run is judged by, as ratios of what was measured in the same run."""

from collections.abc import Mapping
from typing import cast

Json = Mapping[str, object]
LONG, FULL = 32768, 64  # cached tokens and batch at which attention is held against the bandwidth
BELOW = 64  # packed rows: below the ridge of every part in the table of GPUs


def goals(results: Mapping[str, Json], bandwidth: float) -> dict[str, object]:
    """Return each ratio with what is aimed at; None where nothing was measured.

    `bandwidth` is what a copy reached, in bytes/s.
    """
    attention = cast("Json", results.get("attention") or {})
    points = cast("list[Json]", attention.get("points") or [])
    best = cast(Json, attention.get("against_the_best") or {})
    sizes = cast("list[Json]", (results.get("decode") or {}).get("sizes") or [])
    first = sizes[0] if sizes else {}
    twins = cast("list[Json]", first.get("twins") or [{}])
    return {
        "plain_decoding_of_the_bandwidth_floor": _goal(twins[0].get("share_of_bandwidth"), 0.80),
        "verify_attention_of_bandwidth": _goal(_attention(points, bandwidth), 0.85),
        "attention_against_the_best_backend": _goal(best.get("worst"), 1.05),
        "tracing": _goal(cast(Json, first.get("tracing") or {}).get("share"), 0.03),
    }


def _goal(ratio: object, goal: float) -> dict[str, object]:
    return {"ratio": ratio, "goal": goal}


def _attention(points: list[Json], bandwidth: float) -> float | None:
    """The worst share of our kernel where bandwidth is the limit: long, full and few rows."""
    shares = [
        float(str(p["bytes_per_second"])) / bandwidth
        for p in points
        if p["backend"] == "triton"
        and (p["context"], p["batch"]) == (LONG, FULL)
        and int(str(p["rows"])) * int(str(p["group"])) <= BELOW
    ]
    return min(shares, default=None)
