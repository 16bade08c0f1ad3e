"""Runs of one prompt as lanes that grow on one clock: what compare_replay.js draws."""

from collections.abc import Mapping
from itertools import accumulate

from specviz.cost.reasons import title
from specviz.traces.schema import Trace
from specviz.views import theme
from specviz.views.spelling import REST, Text, piece_of, spell
from specviz.words import _

Json = dict[str, object]


def replay(traces: Mapping[str, Trace]) -> Json:
    """Return the payload: for each scheme its rounds, with their ends in seconds and their text.

    A cell is [text, code of its kind, position in the output]; the position is what locks the
    lanes' scrolling together.
    """
    lanes = [_lane(scheme, trace) for scheme, trace in traces.items()]
    return {
        "lanes": lanes,
        "duration": max((float(str(lane["seconds"])) for lane in lanes), default=0.0),
        "words": {
            "play": _("Play"),
            "pause": _("Pause"),
            "time": _("Time"),
            "speed": _("Speed"),
            "lock": _("Scroll together"),
            "seconds": _("{n} s"),
            "tokens": _("{n} tokens"),
        },
    }


def _lane(scheme: str, trace: Trace) -> Json:
    rounds = trace.rounds
    ends = list(accumulate(r.timing.total for r in rounds))
    kinds = [kind for r in rounds for kind in _kinds(len(r.path), r.last_token, r.last_kind)]
    tokens = [token for r in rounds for token in r.committed]
    texts, _opened = spell([piece_of(trace.pieces, token) for token in tokens])
    cells = [
        [_plain(text), theme.STYLES[kind].code, at]
        for at, (text, kind) in enumerate(zip(texts, kinds, strict=True))
    ]
    starts = [0, *accumulate(len(r.committed) for r in rounds)]
    return {
        "scheme": scheme,
        "title": title(scheme),
        "seconds": ends[-1] if ends else 0.0,
        "rounds": [
            {"end": end, "cells": cells[a:b]}
            for end, a, b in zip(ends, starts[:-1], starts[1:], strict=True)
        ],
    }


def _kinds(accepted: int, last: int | None, kind: theme.Kind) -> list[theme.Kind]:
    return [*(["accepted"] * accepted), *([] if last is None else [kind])]  # type: ignore[list-item]


def _plain(text: Text) -> str:
    if isinstance(text, str):
        return text
    return "" if text == REST or isinstance(text, int) else text[0]
