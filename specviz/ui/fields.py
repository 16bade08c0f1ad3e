"""Every setting of the page: its key (also its name in links), its default and what it allows.

Widgets, links and their checks all read this table, so they cannot disagree.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from specviz.bench.prompts import BUILT_IN
from specviz.config import MAX_DRAFT_LENGTH, MAX_TOKENS, DrafterOptions, SamplingParams
from specviz.drafters import SCHEMES
from specviz.errors import ConfigError
from specviz.words import _

Value = str | int | float | bool

OWN = "own"  # the prompt the user typed
SHORT = 600  # characters of a typed text that still go into a link
MAX_SEED = 2**53 - 1  # what a browser's numbers hold exactly

_params, _options = SamplingParams(), DrafterOptions()


@dataclass(frozen=True, slots=True)
class Field:
    """One setting; `low` and `high` hold for numbers, `choices` for words."""

    key: str
    default: Value
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        """Say in words what a link may give here."""
        if self.choices:
            return ", ".join(self.choices)
        if isinstance(self.default, bool):
            return "true, false"
        if isinstance(self.default, str):
            return _("text of up to {n} characters").format(n=SHORT)
        if self.high == math.inf:
            return _("{low} or more").format(low=_plain(self.low))
        return _("{low} to {high}").format(low=_plain(self.low), high=_plain(self.high))

    def parse(self, raw: str) -> Value:
        """Read the value out of a link.

        Raises:
            ConfigError: It is not one of the values allowed here.
        """
        value = self._read(raw)
        if value is None or not self._fits(value):
            text = _("{name} = {value!r} is not possible here; allowed: {allowed}")
            raise ConfigError(text.format(name=self.key, value=clipped(raw), allowed=self.allowed))
        return value

    def _fits(self, value: Value) -> bool:
        if isinstance(value, str):
            return not self.choices or value in self.choices
        return self.low <= value <= self.high

    def _read(self, raw: str) -> Value | None:
        if isinstance(self.default, bool):
            return {"true": True, "false": False}.get(raw)
        if isinstance(self.default, str):
            return raw if len(raw) <= SHORT else None
        try:
            return float(raw) if isinstance(self.default, float) else int(raw)
        except ValueError:
            return None

    def write(self, value: Value) -> str:
        """Return the value as `parse` reads it."""
        return str(value).lower() if isinstance(value, bool) else f"{value}"


def _plain(number: float) -> str:
    """Return a number without an exponent."""
    return str(int(number)) if number == int(number) else f"{number:g}"


def clipped(raw: str) -> str:
    """Return the beginning of what a link says, marked where it was cut."""
    return raw if len(raw) <= 60 else raw[:59] + "…"


FIELDS: Mapping[str, Field] = {
    field.key: field
    for field in (
        Field("prompt", "copy-letter", choices=(*(p.id for p in BUILT_IN), OWN)),
        Field("text", ""),
        Field("chat", True),
        Field("scheme", "ngram", choices=SCHEMES),
        Field("D", 5, 0, MAX_DRAFT_LENGTH),
        Field("T", _params.temperature, 0, 2),
        Field("seed", _params.seed, 0, MAX_SEED),
        Field("max", 160, 1, MAX_TOKENS),
        Field("draft", ""),
        Field("target", ""),
        Field("top_k", _params.top_k, 0, 1_000_000),
        Field("top_p", _params.top_p, 0.01, 1),
        Field("min_p", _params.min_p, 0, 0.99),
        Field("repetition", _params.repetition_penalty, 0.1, 10),
        Field("frequency", _params.frequency_penalty, -10, 10),
        Field("presence", _params.presence_penalty, -10, 10),
        Field("logit_bias", ""),
        Field("stop_text", ""),
        Field("ignore_eos", _params.ignore_eos),
        Field("verifier", "auto", choices=("auto", "greedy", "sampled", "block")),
        Field("detail", "full", choices=("full", "light", "off")),
        Field("ngram_min", _options.ngram_min, 1, 64),
        Field("ngram_max", _options.ngram_max, 1, 64),
        Field("ngram_tie", _options.ngram_tie, choices=("vllm", "transformers", "llama.cpp")),
        Field("suffix_depth", _options.suffix_max_depth, 1, 256),
        Field("suffix_factor", _options.suffix_max_factor, 0.1, 100),
        Field("suffix_prob", _options.suffix_min_prob, 0, 1),
        Field("draft_sampled", _options.draft_sampled),
        Field("draft_min_p", _options.draft_min_p, 0, 1),
        Field("head", ""),
        Field("layer_ids", ""),
        Field("tree_depth", _options.tree_depth, 0, 32),
        Field("tree_top_k", _options.tree_top_k, 1, 64),
        Field("confidence", _options.confidence_threshold, 0, 1),
        Field("mirror", _options.mirror_processors),
        Field("check", True),
        Field("check_limit", 512, 1, MAX_TOKENS),
    )
}
