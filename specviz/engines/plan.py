"""What is to be served, in our own words: the scheme, D, and where the weights are."""

from dataclasses import dataclass

from specviz.config import MAX_DRAFT_LENGTH
from specviz.errors import ConfigError, UnsupportedByEngine
from specviz.words import _

SERVED = ("none", "ngram", "suffix", "draft_model", "eagle3", "mtp", "dflash", "dspark")
NEED_DRAFT = frozenset(("draft_model", "eagle3", "dflash", "dspark"))
TARGET, DRAFT = "TARGET", "DRAFT"  # stand in the text where no name was given


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A scheme to serve. `draft_length` is D: drafted tokens per round, the bonus not among them.

    `draft`: hub id or path of the draft model or head. A tree has `tree_top_k` above 1.
    """

    scheme: str
    draft_length: int
    target: str = TARGET
    draft: str = DRAFT
    ngram_min: int = 2
    ngram_max: int = 4
    tree_top_k: int = 1
    tree_nodes: int = 0

    def __post_init__(self) -> None:
        if self.scheme not in SERVED:
            text = _("the scheme is {name!r}; engines serve {names}")
            raise ConfigError(text.format(name=self.scheme[:80], names=", ".join(SERVED)))
        if not 0 <= self.draft_length <= MAX_DRAFT_LENGTH:
            text = _("D is {d}; allowed: 0 to {most}")
            raise ConfigError(text.format(d=self.draft_length, most=MAX_DRAFT_LENGTH))
        if (self.scheme == "none") != (self.draft_length == 0):
            text = _("D is {d} with scheme {name}; plain decoding has D = 0, all others at least 1")
            raise ConfigError(text.format(d=self.draft_length, name=self.scheme))
        for name, value in (("target", self.target), ("draft", self.draft)):
            if not value or any(char in value for char in "\n\r\0"):
                text = _("{name} is {value!r}; allowed: a hub id or a path, on one line")
                raise ConfigError(text.format(name=name, value=value[:80]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """Text to paste. `language` is what highlights it; `notes` say what to mind."""

    engine: str
    version: str  # of the engine, as its source was read
    language: str
    text: str
    notes: tuple[str, ...] = ()


def refuse(engine: str, what: str, nearest: str) -> UnsupportedByEngine:
    """Return the error that says what an engine lacks and the nearest thing it does."""
    text = _("{engine} does not serve {what}; the nearest it does: {nearest}")
    return UnsupportedByEngine(text.format(engine=engine, what=what, nearest=nearest))


def at_most(engine: str, plan: Plan, most: int) -> None:
    """Refuse a longer draft than the engine takes.

    Raises:
        UnsupportedByEngine: D is larger.
    """
    if plan.draft_length > most:
        raise refuse(
            engine,
            _("D = {d}").format(d=plan.draft_length),
            _("D = {most}, its longest draft").format(most=most),
        )
