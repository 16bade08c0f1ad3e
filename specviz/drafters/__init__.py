"""Everything that proposes tokens, by vLLM's method names. Importing this loads no torch."""

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from specviz.config import SessionConfig
from specviz.errors import ConfigError, UnknownScheme
from specviz.words import _

if TYPE_CHECKING:
    from specviz.drafters.base import Drafter
    from specviz.drafters.eligibility import Vocabulary
    from specviz.drafters.suffix import SuffixHistory
    from specviz.models.target import Target

SCHEMES: tuple[str, ...] = ("none", "ngram", "suffix", "draft_model")


class DraftSource(Protocol):
    """A loaded draft model: what `models.load` returns will do."""

    @property
    def target(self) -> "Target": ...

    @property
    def tokenizer(self) -> "Vocabulary": ...

    @property
    def spec(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """What a page says of a scheme before anything runs."""

    name: str
    title: str
    sentence: str
    needs_model: bool = False
    is_block: bool = False  # plans a block in one pass, so another D must be measured again
    drafts_trees: bool = False


def check_scheme(name: str) -> str:
    """Return `name`.

    Raises:
        UnknownScheme: No drafter has that name; the closest ones are suggested.
    """
    if name in SCHEMES:
        return name
    close = difflib.get_close_matches(name, SCHEMES, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    raise UnknownScheme(f"there is no scheme {name!r}{hint} Choose one of: {', '.join(SCHEMES)}")


def describe(name: str) -> Scheme:
    """Return the title and one sentence on a scheme, in the language in use."""
    described = (
        Scheme(
            name="none",
            title=_("Plain decoding"),
            sentence=_("Drafts nothing: one target pass per token, the baseline of comparisons."),
        ),
        Scheme(
            name="ngram",
            title=_("N-gram lookup"),
            sentence=_(
                "Finds the newest tokens earlier in the text and copies what followed them there."
            ),
        ),
        Scheme(
            name="suffix",
            title=_("Suffix decoding"),
            sentence=_(
                "Follows what most often came next, in this text and in outputs of past requests."
            ),
        ),
        Scheme(
            name="draft_model",
            title=_("Draft model"),
            sentence=_(
                "Lets a smaller model with the same vocabulary write ahead, token by token."
            ),
            needs_model=True,
        ),
    )
    return {scheme.name: scheme for scheme in described}[check_scheme(name)]


def make_drafter(
    config: SessionConfig,
    target: "Target",
    tokenizer: "Vocabulary | None" = None,
    draft: "DraftSource | None" = None,
    history: "SuffixHistory | None" = None,
) -> "Drafter":
    """Return a new drafter for one request.

    Args:
        config: names the scheme and holds its options.
        target: the model to draft for; only its configuration is read.
        tokenizer: what the target's ids mean; needed to check a draft model.
        draft: the draft model; its weights are shared, its cache is not touched.
        history: outputs of past requests, for suffix decoding; without, it starts cold.

    Raises:
        UnknownScheme: There is no such scheme.
        ConfigError: The scheme needs a draft model and none is given.
        VocabMismatch: The draft model has another vocabulary.
    """
    scheme, options = check_scheme(config.scheme), config.options
    ends = frozenset(target.config.eos)
    if scheme == "ngram":
        from specviz.drafters.ngram import NgramDrafter

        return NgramDrafter(options, ends)
    if scheme == "suffix":
        from specviz.drafters.suffix import SuffixDrafter

        return SuffixDrafter(options, history)
    if scheme == "draft_model":
        from specviz.drafters.draft_model import DraftModelDrafter

        source = _required(draft)
        _check_eligible(tokenizer, source)
        return DraftModelDrafter(source.target.fork(0), target.config.vocab, options, ends)
    from specviz.drafters.none import PlainDrafter

    return PlainDrafter()


def _check_eligible(tokenizer: "Vocabulary | None", draft: DraftSource) -> None:
    if tokenizer is not None:
        from specviz.drafters.eligibility import require_eligible

        require_eligible(tokenizer, draft.tokenizer, draft.spec)


def _required(draft: DraftSource | None) -> DraftSource:
    if draft is None:
        raise ConfigError(
            "the scheme draft_model needs a draft model and none is given; name a folder, a GGUF "
            "file or a hub id (--draft-model on the command line), or choose ngram or suffix"
        )
    return draft
