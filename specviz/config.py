"""What a caller may choose. Everything is frozen and checked when it is made."""

import math
from dataclasses import dataclass, fields
from typing import Literal

from specviz.errors import ConfigError
from specviz.words import _

Detail = Literal["off", "light", "full"]
Verifier = Literal["auto", "greedy", "sampled", "block"]
TieRule = Literal["vllm", "transformers", "llama.cpp"]

MAX_DRAFT_LENGTH = 256
MAX_TOKENS = 1_000_000


def require(holds: bool, name: str, given: object, allowed: str) -> None:
    """Raise a ConfigError that names the setting, what was given and what is allowed."""
    if not holds:
        raise ConfigError(
            _("{name} is {given!r}; allowed: {allowed}").format(
                name=name, given=given, allowed=allowed
            )
        )


def _finite(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -math.inf < value < math.inf


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(value: object) -> bool:
    """Whether this is text that is not empty and that UTF-8 can hold."""
    return (
        isinstance(value, str) and value != "" and value == value.encode(errors="ignore").decode()
    )


def _is_bias(pair: object) -> bool:
    if not isinstance(pair, tuple) or len(pair) != 2:
        return False
    token, bias = pair
    fits = bias == -math.inf or (_finite(bias) and abs(bias) <= 1e4)
    return _whole(token) and token >= 0 and fits


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
        t, top_p, penalty = self.temperature, self.top_p, self.repetition_penalty
        # The lower limits keep what is divided by them far from the largest float32.
        fits = _finite(t) and (t == 0 or 1e-3 <= t <= 100)
        require(fits, "temperature", t, _("0 (greedy), or 0.001 to 100"))
        require(_whole(self.top_k) and self.top_k >= 0, "top_k", self.top_k, _("0 or more"))
        require(_finite(top_p) and 1e-6 <= top_p <= 1, "top_p", top_p, _("0.000001 to 1"))
        require(_finite(self.min_p) and 0 <= self.min_p < 1, "min_p", self.min_p, _("0, below 1"))
        fits = _finite(penalty) and 0.01 <= penalty <= 100
        require(fits, "repetition_penalty", penalty, _("0.01 to 100"))
        for name in ("frequency_penalty", "presence_penalty"):
            value = getattr(self, name)
            require(_finite(value) and -100 <= value <= 100, name, value, _("-100 to 100"))
        tokens, seed = self.max_tokens, self.seed
        fits = _whole(tokens) and 1 <= tokens <= MAX_TOKENS
        require(fits, "max_tokens", tokens, _("1 to {max_tokens}").format(max_tokens=MAX_TOKENS))
        require(_whole(seed) and 0 <= seed < 2**63, "seed", seed, _("0 to 2**63 - 1"))
        require(isinstance(self.ignore_eos, bool), "ignore_eos", self.ignore_eos, "True, False")
        self._check_tuples()

    def _check_tuples(self) -> None:
        for name, is_item, allowed in (
            ("stop", _is_text, _("a tuple of strings, none of them empty, that UTF-8 can hold")),
            ("stop_ids", lambda x: _whole(x) and x >= 0, _("a tuple of token ids, 0 or more")),
            ("logit_bias", _is_bias, _("a tuple of (token id, number): -10000 to 10000, or -inf")),
        ):
            value = getattr(self, name)
            require(isinstance(value, tuple) and all(map(is_item, value)), name, value, allowed)

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
        for name in ("ngram_min", "ngram_max", "suffix_max_depth", "suffix_max_requests"):
            require(_whole(getattr(self, name)), name, getattr(self, name), _("a whole number"))
        for name in ("draft_sampled", "mirror_processors"):
            require(isinstance(getattr(self, name), bool), name, getattr(self, name), "True, False")
        draft = self.draft_model
        fits = draft is None or (isinstance(draft, str) and draft.strip() != "")
        require(fits, "draft_model", draft, _("a folder, a GGUF file, a hub id, or None"))
        self._check_heads()
        low, high = self.ngram_min, self.ngram_max
        require(
            1 <= low <= high <= 64, "ngram_min, ngram_max", (low, high), "1 <= min <= max <= 64"
        )
        ties = ("vllm", "transformers", "llama.cpp")
        require(self.ngram_tie in ties, "ngram_tie", self.ngram_tie, ", ".join(ties))
        depth = self.suffix_max_depth
        require(1 <= depth <= 256, "suffix_max_depth", depth, _("1 to 256"))
        factor = self.suffix_max_factor
        require(
            _finite(factor) and 0 < factor <= 100, "suffix_max_factor", factor, _("above 0, to 100")
        )
        for name in ("suffix_min_prob", "draft_min_p", "confidence_threshold"):
            value = getattr(self, name)
            require(_finite(value) and 0 <= value <= 1, name, value, _("0 to 1"))
        requests = self.suffix_max_requests
        require(0 <= requests <= 1_000_000, "suffix_max_requests", requests, _("0 to 1000000"))

    def _check_heads(self) -> None:
        head, ids = self.head, self.layer_ids
        fits = head is None or (isinstance(head, str) and head.strip() != "")
        require(fits, "head", head, _("a folder, or None"))
        fits = isinstance(ids, tuple) and all(_whole(i) and 0 <= i < 10_000 for i in ids)
        require(fits, "layer_ids", ids, _("a tuple of whole numbers from 0, the embeddings"))
        for name, low, high in (("tree_depth", 0, 32), ("tree_top_k", 1, 64)):
            value = getattr(self, name)
            require(
                _whole(value) and low <= value <= high,
                name,
                value,
                _("{low} to {high}").format(low=low, high=high),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionConfig:
    """Scheme, draft length D and what to record."""

    scheme: str = "ngram"
    draft_length: int = 4
    verifier: Verifier = "auto"  # greedy at temperature 0, else rejection sampling
    detail: Detail = "full"
    options: DrafterOptions = DrafterOptions()

    def __post_init__(self) -> None:
        require(isinstance(self.scheme, str), "scheme", self.scheme, _("the name of a scheme"))
        d = self.draft_length
        fits = _whole(d) and 0 <= d <= MAX_DRAFT_LENGTH
        require(
            fits,
            "draft_length",
            d,
            _("0 to {max_draft_length}").format(max_draft_length=MAX_DRAFT_LENGTH),
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
    require(fit, "layer_ids", text, _("numbers with commas between, as 2,15,27"))
    return tuple(map(int, words))


def read_logit_bias(text: str) -> tuple[tuple[int, float], ...]:
    """Read "5=-inf, 17=2.5": what is added to the logit of each token; an empty text is nothing.

    Raises:
        ConfigError: it is not a list of such pairs.
    """
    pairs = list[tuple[int, float]]()
    for word in text.split(",") if text.strip() else ():
        token, sep, bias = word.partition("=")
        try:
            pairs.append((int(token), float(bias if sep else math.nan)))
        except ValueError:
            raise ConfigError(
                _(
                    "logit_bias is {text!r}; allowed: ID=X with a token id and a number, -inf "
                    "forbids"
                ).format(text=text)
            ) from None
    return tuple(pairs)


def field_names(config: type[SamplingParams] | type[SessionConfig]) -> tuple[str, ...]:
    """Names of the settings, for parsers of links and files."""
    return tuple(field.name for field in fields(config))
