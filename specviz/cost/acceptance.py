"""Acceptance profiles: published ones, measured rounds, and files.

Published papers give a mean length and a first rate; the shape between is modelled and the label
says so. They are about the models they were measured on: measure your own before you believe them.
"""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Literal, get_args

from specviz import recordings
from specviz.cost.model_shape import ModelShape
from specviz.cost.speedup import Profile, published_profile
from specviz.errors import ConfigError
from specviz.events import Round
from specviz.metrics.summary import summarise
from specviz.traces.profile import conditional
from specviz.traces.schema import Trace
from specviz.traces.store import load
from specviz.words import _

PromptClass = Literal["chat", "code", "math", "edit", "copy"]
CLASSES: tuple[PromptClass, ...] = get_args(PromptClass)
BLOCK = 7  # drafted tokens of the published DFlash and DSpark figures

# DSpark, arXiv:2607.05147, table 1: mean committed tokens per round at D = 7, temperature 1.
_LENGTHS: Mapping[str, Mapping[str, tuple[float, float, float]]] = {
    "Qwen3-4B": {
        "eagle3": (2.39, 4.16, 5.14),
        "dflash": (3.07, 4.74, 5.40),
        "dspark": (3.64, 5.38, 6.11),
    },
    "Qwen3-8B": {
        "eagle3": (2.66, 4.33, 5.30),
        "dflash": (3.11, 4.64, 5.33),
        "dspark": (3.72, 5.52, 6.17),
    },
    "Qwen3-14B": {
        "eagle3": (2.47, 4.24, 5.21),
        "dflash": (2.94, 4.59, 5.41),
        "dspark": (3.70, 5.43, 6.21),
    },
}
_SETS = {"chat": ("MT-Bench", 0), "code": ("HumanEval", 1), "math": ("GSM8K", 2)}
# Same paper: acceptance of the first position.
_FIRST: Mapping[tuple[str, str], float] = {
    ("eagle3", "chat"): 0.53,
    ("eagle3", "math"): 0.81,
    ("dflash", "chat"): 0.72,
    ("dflash", "code"): 0.87,
    ("dflash", "math"): 0.88,
    ("dspark", "chat"): 0.72,
    ("dspark", "math"): 0.88,
}
# SPEED-Bench, arXiv:2604.09557: B200, batch 32, D = 3, greedy: mean, and coding.
_MTP = {"DeepSeek-R1": (2.55, 2.76), "Qwen3-Next": (2.81, 3.34)}
_MTP_LENGTH = 3
# NVIDIA part 3, figure 6 as described: a length of about 6 at D of about 10.
_EXTERNAL = (6.0, 10)
# Our own recordings; code written from nothing repeats its prompt no more than a chat does.
_RECORDED = {"edit": "ngram-edit", "copy": "ngram-copy"}
# Papers have no prompts that repeat their text: editing is nearest to code, copying to chat.
_NEAREST: Mapping[PromptClass, str] = {"edit": "code", "copy": "chat"}


def published(shape: ModelShape, prompts: PromptClass) -> dict[str, Profile]:
    """Return the nearest published profile of each scheme for a model and kind of prompt.

    `suffix` has no published figure of this kind. That of an external draft model, see
    `external`, is of one pair of models and no yardstick for others, so it is not among these.
    """
    nearest = _NEAREST.get(prompts, prompts)
    found = {name: _head(name, shape, nearest) for name in ("eagle3", "dflash", "dspark")}
    if shape.own_draft_layers:
        found["mtp"] = _mtp(shape, nearest)
    ngram = recorded(_RECORDED.get(prompts, "ngram-chat"))
    if ngram is not None:
        found["ngram"] = ngram
    return found


def external() -> Profile:
    """Return the published profile of an external draft model: a large one, for a large target."""
    length, at = _EXTERNAL
    source = _(
        "Qwen3.5-122B-A10B with Qwen3.5-35B-A3B: about {length} tokens at D = {d} (NVIDIA, figure "
        "as described; rate per position modelled as equal)"
    ).format(length=length, d=at)
    return published_profile(length, at, source)


def _head(scheme: str, shape: ModelShape, prompts: str) -> Profile:
    size = shape.params / 1e9
    target = "Qwen3-4B" if size < 6 else "Qwen3-8B" if size < 11 else "Qwen3-14B"
    name, column = _SETS[prompts]
    mean = _LENGTHS[target][scheme][column]
    source = _(
        "{target}, {set}: {mean} tokens per round at D = {d} (arXiv:2607.05147, table 1; the "
        "shape over positions is modelled)"
    ).format(target=target, set=name, mean=mean, d=BLOCK)
    first = _FIRST.get((scheme, prompts))
    return published_profile(mean, BLOCK, source, first)


def _mtp(shape: ModelShape, prompts: str) -> Profile:
    main = shape.main
    target = "DeepSeek-R1" if main is not None and main.kind == "mla" else "Qwen3-Next"
    mean = _MTP[target][1 if prompts == "code" else 0]
    source = _(
        "{target}: {mean} tokens per round at D = {d} (SPEED-Bench, arXiv:2604.09557; rate per "
        "position modelled as equal)"
    ).format(target=target, mean=mean, d=_MTP_LENGTH)
    return published_profile(mean, _MTP_LENGTH, source)


def recorded(name: str) -> Profile | None:
    """Return the profile of a recording that comes with the program, None if it is missing."""
    if name not in recordings.names():
        return None
    trace = _shipped(name)
    where = _("recording {name}: {model}, {n} rounds").format(
        name=name, model=trace.target.name, n=len(trace.rounds)
    )
    return of_rounds(trace.rounds, where)


@lru_cache
def _shipped(name: str) -> Trace:
    return load(recordings.path(name))


def of_rounds(rounds: Sequence[Round], source: str) -> Profile | None:
    """Return the measured profile of rounds, positions that were never reached left out.

    Rounds without a proposal count as refused: that is what they cost. None without any draft.
    """
    known = takewhile(lambda rate: rate is not None, summarise(rounds).conditional)
    rates = tuple(rate for rate in known if rate is not None)
    return Profile(rates=rates, source=source, how="measured") if rates else None


def from_file(text: str | bytes, name: str) -> tuple[str, Profile]:
    """Read a profile: a specviz trace, or JSON with per-position rates. Returns scheme and profile.

    JSON is a `speculation_profile.json`, schema 1.0, or any object with `conditional` (given that
    all before were accepted) or `marginal` (all up to here accepted) rates, also inside
    `acceptance`; `scheme` or `method` names the drafter.

    Raises:
        ConfigError: it is neither; TraceError: it is a damaged trace.
    """
    known = _object(text)
    if known is None or "rounds" in known:
        trace = load(text if isinstance(text, bytes) else text.encode())
        profile = of_rounds(trace.rounds, _("rounds of {name}").format(name=name))
        if profile is None:
            raise ConfigError(_("{name} holds no round with a draft").format(name=name))
        return trace.config.scheme, profile
    scheme = str(known.get("scheme") or known.get("method") or "")
    if known.get("measured") is False:
        text_ = _("{name} says itself that nothing was measured for it; give one that was measured")
        raise ConfigError(text_.format(name=name))
    inner = known.get("acceptance")
    if isinstance(inner, Mapping):
        known = {**known, **inner}
    rates = _first_of(known, "conditional_accept_rates", "conditional")
    if not rates:
        rates = _reached(_first_of(known, "marginal_accept_rates", "marginal"))
    if not rates:
        text_ = _(
            "{name} has no acceptance rates; allowed: a specviz trace, or a JSON object with "
            '"conditional" or "marginal", a list of numbers from 0 to 1'
        )
        raise ConfigError(text_.format(name=name))
    return scheme, Profile(rates=rates, source=name, how="measured")


def _object(text: str | bytes) -> Mapping[str, object] | None:
    try:
        known = json.loads(text)
    except (ValueError, RecursionError):
        return None  # perhaps a compressed trace
    return known if isinstance(known, dict) else {}


def _rates(value: object, key: str) -> tuple[float, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(
        isinstance(rate, int | float) and not isinstance(rate, bool) for rate in value
    ):
        text = _("{key} is {value}; allowed: a list of numbers from 0 to 1")
        raise ConfigError(text.format(key=key, value=str(value)[:60]))
    return tuple(float(rate) for rate in value)


def _first_of(known: Mapping[str, object], *keys: str) -> tuple[float, ...]:
    return next((rates for key in keys if (rates := _rates(known.get(key), key))), ())


def _reached(marginal: tuple[float, ...]) -> tuple[float, ...]:
    """Conditional rates, up to the first position that was never accepted."""
    before = takewhile(lambda share: share > 0, (1.0, *marginal))
    return tuple(rate for rate, _share in zip(conditional(marginal), before, strict=False))
