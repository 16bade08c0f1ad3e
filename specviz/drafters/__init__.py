"""Everything that proposes tokens, by vLLM's method names. Importing this loads no torch."""

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from specviz.config import SessionConfig
from specviz.errors import ConfigError, UnknownScheme, UnsupportedModel
from specviz.words import _

if TYPE_CHECKING:
    from specviz.drafters.base import Drafter
    from specviz.drafters.eligibility import Vocabulary
    from specviz.drafters.suffix import SuffixHistory
    from specviz.heads.base import Head
    from specviz.models.target import Target

SCHEMES: tuple[str, ...] = (
    *("none", "ngram", "suffix", "draft_model"),
    *("eagle3", "mtp", "dflash", "dspark"),
)


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
    needs_head: bool = False  # a network that reads the target's hidden states
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
    text = (
        _("there is no scheme {name!r}; did you mean {close!r}? Choose one of: {schemes}")
        if close
        else _("there is no scheme {name!r}. Choose one of: {schemes}")
    )
    raise UnknownScheme(text.format(name=name, close="".join(close), schemes=", ".join(SCHEMES)))


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
        *_with_heads(),
    )
    return {scheme.name: scheme for scheme in described}[check_scheme(name)]


def _with_heads() -> tuple[Scheme, ...]:
    return (
        Scheme(
            name="eagle3",
            title=_("EAGLE-3"),
            sentence=_(
                "One layer reads three of the target's hidden states and drafts a chain, or a tree."
            ),
            needs_head=True,
            drafts_trees=True,
        ),
        Scheme(
            name="mtp",
            title=_("MTP"),
            sentence=_(
                "The target's own module for the token after the next, reused for each one further."
            ),
            needs_head=True,
        ),
        Scheme(
            name="dflash",
            title=_("DFlash"),
            sentence=_("Fills a whole block of masked slots in one pass over the hidden states."),
            needs_head=True,
            is_block=True,
        ),
        Scheme(
            name="dspark",
            title=_("DSpark"),
            sentence=_(
                "Fills a block at once, then corrects each slot by the token before it and may "
                "stop early."
            ),
            needs_head=True,
            is_block=True,
        ),
    )


def make_drafter(
    config: SessionConfig,
    target: "Target",
    tokenizer: "Vocabulary | None" = None,
    draft: "DraftSource | Head | None" = None,
    history: "SuffixHistory | None" = None,
) -> "Drafter":
    """Return a new drafter for one request.

    Args:
        config: names the scheme and holds its options.
        target: the model to draft for; only its configuration is read.
        tokenizer: what the target's ids mean; needed to check a draft model.
        draft: the draft model, whose weights are shared and whose cache is not touched; or the
            head, for the schemes that need one: the session's target must keep its taps.
        history: outputs of past requests, for suffix decoding; without, it starts cold.

    Raises:
        UnknownScheme: There is no such scheme.
        ConfigError: The scheme needs a draft model or a head and none is given.
        VocabMismatch: The draft model has another vocabulary.
        UnsupportedModel: The head is one of another scheme.
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

        source = _model(draft)
        _check_eligible(tokenizer, source)
        return DraftModelDrafter(source.target.fork(0), target.config.vocab, options, ends)
    if scheme != "none":
        return _make_of_head(config, target, _head(draft, scheme), ends)
    from specviz.drafters.none import PlainDrafter

    return PlainDrafter()


def _make_of_head(
    config: SessionConfig, target: "Target", head: "Head", ends: frozenset[int]
) -> "Drafter":
    from specviz.heads.dflash import DFlashHead
    from specviz.heads.dspark import DSparkHead
    from specviz.heads.eagle3 import Eagle3Head
    from specviz.heads.mtp import MtpHead

    options = config.options
    if isinstance(head, Eagle3Head):
        from specviz.drafters.eagle3 import Eagle3Drafter
        from specviz.heads.tree import TreeShape

        deep, wide = options.tree_depth, options.tree_top_k
        tree = TreeShape(depth=deep, top_k=wide) if deep else None
        return Eagle3Drafter(head, target, options, ends, tree)
    if isinstance(head, MtpHead):
        from specviz.drafters.mtp import MtpDrafter

        return MtpDrafter(head, target, options, ends)
    if isinstance(head, DSparkHead):
        from specviz.drafters.dspark import DSparkDrafter
        from specviz.heads.dspark_schedule import Confidence

        rule = Confidence(threshold=options.confidence_threshold, temperatures=head.temperatures)
        return DSparkDrafter(head, target, options, ends, rule)
    from specviz.drafters.dflash import DFlashDrafter

    assert isinstance(head, DFlashHead)
    return DFlashDrafter(head, target, options, ends)


def _check_eligible(tokenizer: "Vocabulary | None", draft: DraftSource) -> None:
    if tokenizer is not None:
        from specviz.drafters.eligibility import require_eligible

        require_eligible(tokenizer, draft.tokenizer, draft.spec)


def _model(draft: "DraftSource | Head | None") -> DraftSource:
    if draft is None or not hasattr(draft, "spec"):
        raise ConfigError(
            _(
                "the scheme draft_model needs a draft model and none is given; name a folder, a "
                "GGUF file or a hub id (--draft-model on the command line), or choose ngram or "
                "suffix"
            )
        )
    return cast(DraftSource, draft)


def _head(draft: "DraftSource | Head | None", scheme: str) -> "Head":
    from specviz.heads.base import Head

    if not isinstance(draft, Head):
        raise missing_head(scheme)
    if draft.scheme != scheme:
        raise UnsupportedModel(
            _(
                "{name} is a head for {trained}, and the scheme is {chosen}; choose the scheme "
                "{trained} or another head"
            ).format(name=draft.name or _("this head"), trained=draft.scheme, chosen=scheme)
        )
    return draft


def missing_head(scheme: str) -> ConfigError:
    """Return the error that says that a head is needed and how to give one."""
    return ConfigError(
        _(
            "The scheme {scheme} needs a head that was trained for this target, and none is "
            "shipped for it. Name the folder of one (--head on the command line), or train one "
            "with: python -m specviz train --scheme {scheme}"
        ).format(scheme=scheme)
    )
