"""Acceptance, speed, alarms and peers' definitions: pure functions of rounds."""

from specviz.metrics.alarms import Alarm, alarms, judge
from specviz.metrics.controls import prompt_overlap, shifted_acceptance
from specviz.metrics.definitions import Definition, definitions
from specviz.metrics.speed import Clock, Speedups, predicted_speedup, speedup, speedups
from specviz.metrics.summary import Segment, Summary, by_budget, segments, summarise

__all__ = [
    "Alarm",
    "Clock",
    "Definition",
    "Segment",
    "Speedups",
    "Summary",
    "alarms",
    "by_budget",
    "definitions",
    "judge",
    "predicted_speedup",
    "prompt_overlap",
    "segments",
    "shifted_acceptance",
    "speedup",
    "speedups",
    "summarise",
]
