"""Typed reading of a config.json that somebody pasted."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from specviz.errors import ConfigError
from specviz.words import _

MOST = 100_000_000  # no count in a config is larger; a larger one is a mistake or an attack
LONGEST = 1_000_000  # characters
DEEPEST_TEXT = 60  # characters of a wrong value that are repeated in a message

# What transformers fills in where published files leave it out.
_FAMILY_DEFAULTS: Mapping[str, Mapping[str, object]] = {
    "gemma3_text": {
        "vocab_size": 262208,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "sliding_window": 4096,
        "full_attention_interval": 6,
        "tie_word_embeddings": True,
    },
    "gemma4_text": {"tie_word_embeddings": True},
    "qwen3": {"head_dim": 128},
}


@dataclass(frozen=True, slots=True)
class Settings:
    """One config.json; a model with vision keeps its language part in `text_config`."""

    values: Mapping[str, object]
    family: str
    outer: Mapping[str, object]

    @classmethod
    def of(cls, config: Mapping[str, object]) -> "Settings":
        """Find the language model in a parsed config.json."""
        inner = config.get("text_config", config.get("llm_config"))
        values = inner if isinstance(inner, Mapping) else config
        family = str(values.get("model_type") or config.get("model_type") or "")
        return cls({**_FAMILY_DEFAULTS.get(family, {}), **values}, family, config)

    def has(self, *keys: str) -> bool:
        """Whether one of the keys has a value."""
        return any(self.values.get(key) is not None for key in keys)

    def whole(self, *keys: str, default: int | None = None) -> int:
        """Return the first of `keys` that is there, a whole number from 0 up.

        Raises:
            ConfigError: none is there and there is no default, or it is no such number.
        """
        for key in keys:
            value = self.values.get(key)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST:
                text = _("{key} is {value}; allowed: a whole number from 0 to {most}")
                shown = repr(value)[:DEEPEST_TEXT]
                raise ConfigError(text.format(key=key, value=shown, most=MOST))
            return value
        if default is None:
            text = _(
                "this config.json has no {keys}; paste the whole file of a causal language model, "
                "as the hub shows it"
            )
            raise ConfigError(text.format(keys=_(" or ").join(keys)))
        return default

    def positive(self, *keys: str, default: int | None = None) -> int:
        """As `whole`, but 0 is refused too."""
        value = self.whole(*keys, default=default)
        if value < 1:
            text = _("{key} is {value}; allowed: 1 or more")
            raise ConfigError(text.format(key=keys[0], value=value))
        return value

    def text(self, *keys: str) -> str:
        """Return the first of `keys` that is text, "" if none is."""
        found = (self.values.get(key, self.outer.get(key)) for key in keys)
        return next((value for value in found if isinstance(value, str)), "")

    def flag(self, key: str) -> bool:
        """Whether a switch is on; also looked for outside `text_config`."""
        return (self.values.get(key) is True) or (
            key not in self.values and self.outer.get(key) is True
        )

    def names(self, key: str) -> tuple[str, ...]:
        """Return a list of names, () if there is none."""
        value = self.values.get(key)
        return tuple(map(str, value)) if isinstance(value, list) else ()


def parse(text: str) -> Mapping[str, object]:
    """Read pasted JSON.

    Raises:
        ConfigError: it is not a JSON object, and why.
    """
    if len(text) > LONGEST:
        size = _("the text has {n} characters; a config.json has at most {most}")
        raise ConfigError(size.format(n=len(text), most=LONGEST))
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        said = _("this is not JSON ({error}); paste the whole config.json, braces included")
        raise ConfigError(said.format(error=str(error)[:DEEPEST_TEXT])) from None
    if not isinstance(config, dict):
        said = _("this JSON is a {kind}; a config.json is an object in braces")
        raise ConfigError(said.format(kind=type(config).__name__))
    return config
