"""What a caller may choose. Everything is frozen and checked when it is made."""

import math
from dataclasses import dataclass, fields
from typing import Literal

from specviz.errors import ConfigError

Detail = Literal["off", "light", "full"]
Verifier = Literal["auto", "greedy", "sampled", "block"]
TieRule = Literal["vllm", "transformers", "llama.cpp"]

MAX_DRAFT_LENGTH = 256
MAX_TOKENS = 1_000_000


def require(holds: bool, name: str, given: object, allowed: str) -> None:
    """Raise a ConfigError that names the setting, what was given and what is allowed."""
    if not holds:
        raise ConfigError(f"{name} is {given!r}; allowed: {allowed}")


def _finite(value: float) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """How the target samples; the drafter may or may not follow.

    Order of application to every row: repetition, frequency and presence penalties, logit bias,
    temperature, top-k, top-p, min-p. Repetition counts prompt and output, the other two output
    only (as vLLM and the OpenAI API do).
    """

    temperature: float = 0.0  # 0 is greedy: p is one-hot
    top_k: int = 0  # 0: off
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    logit_bias: tuple[tuple[int, float], ...] = ()  # -inf forbids a token
    max_tokens: int = 128
    seed: int = 0
    stop: tuple[str, ...] = ()
    stop_ids: tuple[int, ...] = ()  # beside the model's own end tokens
    ignore_eos: bool = False

    def __post_init__(self) -> None:
        t = self.temperature
        require(_finite(t) and 0 <= t <= 100, "temperature", t, "0 (greedy) to 100")
        require(isinstance(self.top_k, int) and self.top_k >= 0, "top_k", self.top_k, "0 or more")
        require(_finite(self.top_p) and 0 < self.top_p <= 1, "top_p", self.top_p, "above 0, to 1")
        require(_finite(self.min_p) and 0 <= self.min_p < 1, "min_p", self.min_p, "0, below 1")
        penalty = self.repetition_penalty
        require(
            _finite(penalty) and 0 < penalty <= 100,
            "repetition_penalty",
            penalty,
            "above 0, to 100",
        )
        for name in ("frequency_penalty", "presence_penalty"):
            value = getattr(self, name)
            require(_finite(value) and -100 <= value <= 100, name, value, "-100 to 100")
        tokens = self.max_tokens
        require(
            isinstance(tokens, int) and 1 <= tokens <= MAX_TOKENS,
            "max_tokens",
            tokens,
            f"1 to {MAX_TOKENS}",
        )
        seed = self.seed
        require(isinstance(seed, int) and 0 <= seed < 2**63, "seed", seed, "0 to 2**63 - 1")
        require(all(self.stop), "stop", self.stop, "strings that are not empty")
        for token, bias in self.logit_bias:
            ok = isinstance(token, int) and token >= 0 and not math.isnan(bias) and bias < math.inf
            require(ok, "logit_bias", (token, bias), "a token id and a number below +inf")

    @property
    def greedy(self) -> bool:
        return self.temperature == 0

    @property
    def penalised(self) -> bool:
        """Whether any processor before the temperature changes logits."""
        return (
            self.repetition_penalty != 1
            or self.frequency_penalty != 0
            or self.presence_penalty != 0
            or bool(self.logit_bias)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DrafterOptions:
    """Settings of the drafters; each reads its own."""

    ngram_min: int = 1
    ngram_max: int = 3
    ngram_tie: TieRule = "vllm"
    suffix_max_depth: int = 24
    suffix_max_factor: float = 1.0
    suffix_min_prob: float = 0.1
    suffix_max_requests: int = 10_000
    draft_model: str | None = None  # folder, GGUF file or hub id
    draft_sampled: bool = True  # draw drafts at the request's temperature and keep q
    draft_min_p: float = 0.0  # stop drafting below this draft probability
    mirror_processors: bool = True  # penalties and bias on the draft model too
    head: str | None = None  # folder of a head; None: the one shipped for this target
    layer_ids: tuple[int, ...] = ()  # hidden states a head reads, instead of its own list
    tree_depth: int = 0  # levels of EAGLE's tree; 0: a chain
    tree_top_k: int = 8  # children per node, and nodes that grow per level
    confidence_threshold: float = 0.0  # stop before a DSpark slot less sure; 0: off

    @property
    def tree_nodes(self) -> int:
        """Most nodes a tree grows before it is cut to the draft length; 0 of a chain."""
        each, levels = self.tree_top_k, self.tree_depth
        return each + (levels - 1) * each * each if levels else 0

    def __post_init__(self) -> None:
        low, high = self.ngram_min, self.ngram_max
        require(
            1 <= low <= high <= 64, "ngram_min, ngram_max", (low, high), "1 <= min <= max <= 64"
        )
        ties = ("vllm", "transformers", "llama.cpp")
        require(self.ngram_tie in ties, "ngram_tie", self.ngram_tie, ", ".join(ties))
        depth = self.suffix_max_depth
        require(1 <= depth <= 256, "suffix_max_depth", depth, "1 to 256")
        factor = self.suffix_max_factor
        require(
            _finite(factor) and 0 < factor <= 100, "suffix_max_factor", factor, "above 0, to 100"
        )
        for name in ("suffix_min_prob", "draft_min_p", "confidence_threshold"):
            value = getattr(self, name)
            require(_finite(value) and 0 <= value <= 1, name, value, "0 to 1")
        requests = self.suffix_max_requests
        require(0 <= requests <= 1_000_000, "suffix_max_requests", requests, "0 to 1000000")
        require(self.head is None or bool(self.head), "head", self.head, "a folder, or None")
        ids = self.layer_ids
        require(all(i >= 0 for i in ids), "layer_ids", ids, "numbers from 0, 0 the embeddings")
        require(0 <= self.tree_depth <= 32, "tree_depth", self.tree_depth, "0 (chain) to 32")
        require(1 <= self.tree_top_k <= 64, "tree_top_k", self.tree_top_k, "1 to 64")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionConfig:
    """Scheme, draft length D and what to record."""

    scheme: str = "ngram"
    draft_length: int = 4
    verifier: Verifier = "auto"  # greedy at temperature 0, else rejection sampling
    detail: Detail = "full"
    options: DrafterOptions = DrafterOptions()

    def __post_init__(self) -> None:
        d = self.draft_length
        require(
            isinstance(d, int) and 0 <= d <= MAX_DRAFT_LENGTH,
            "draft_length",
            d,
            f"0 to {MAX_DRAFT_LENGTH}",
        )
        verifiers = ("auto", "greedy", "sampled", "block")
        require(self.verifier in verifiers, "verifier", self.verifier, ", ".join(verifiers))
        require(self.detail in ("off", "light", "full"), "detail", self.detail, "off, light, full")


def read_layer_ids(text: str) -> tuple[int, ...]:
    """Read "2,15,27"; an empty text is no ids.

    Raises:
        ConfigError: it is not a list of numbers.
    """
    words = [word.strip() for word in text.split(",")] if text.strip() else []
    fit = all(word.isascii() and word.isdigit() and len(word) < 6 for word in words)
    require(fit, "layer_ids", text, "numbers with commas between, as 2,15,27")
    return tuple(map(int, words))


def field_names(config: type[SamplingParams] | type[SessionConfig]) -> tuple[str, ...]:
    """Names of the settings, for parsers of links and files."""
    return tuple(field.name for field in fields(config))
