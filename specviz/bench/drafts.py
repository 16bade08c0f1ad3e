"""What drafts beside the target, a draft model or a head: found, loaded, listened to, named."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, runtime_checkable

from torch import Tensor

from specviz import checkpoints
from specviz.config import SessionConfig
from specviz.drafters import describe, missing_head
from specviz.errors import UnsupportedModel
from specviz.heads import load as heads
from specviz.heads.base import Head
from specviz.heads.dflash import DFlashHead
from specviz.heads.recurrent import RecurrentHead
from specviz.heads.small_llama import SomeRows, is_small_llama, load_small_llama
from specviz.models.llama import LlamaTarget
from specviz.models.load import Loaded, load
from specviz.models.store import Progress
from specviz.models.target import Target, TargetConfig
from specviz.traces.schema import ModelCard
from specviz.words import _


@runtime_checkable
class Tappable(Protocol):
    """A target that can be told which hidden states to keep."""

    def with_taps(self, taps: Sequence[int]) -> Target: ...


def load_draft(
    loaded: Loaded, config: SessionConfig, progress: Progress | None = None
) -> Loaded | Head | None:
    """Load what a configuration drafts with; None where nothing is needed or given.

    A draft model goes to the target's device and into its dtype; a drafter does that with a head.

    Raises:
        ModelError: The draft model or head cannot be used.
        ConfigError: The scheme needs a head, and none is given or shipped.
    """
    if describe(config.scheme).needs_head:
        return load_head(loaded, config)
    if config.scheme != "draft_model":
        return None
    target, spec = loaded.target, config.options.draft_model
    shipped = None if spec else find(target.config, config.scheme)
    if spec is None and shipped is None:
        return None
    folder = Path(spec).expanduser() if spec else shipped
    if folder is not None and is_small_llama(folder):
        return replace(loaded, target=load_small_llama(folder, target), spec=str(folder))
    dtype = str(target.dtype).removeprefix("torch.")
    return load(spec or str(shipped), device=target.device.type, dtype=dtype, progress=progress)


def load_head(loaded: Loaded, config: SessionConfig) -> Head:
    """Load the head that the settings name, or the one shipped for this target.

    Raises:
        ModelError: It is missing, damaged, of another target, or the target hides its states.
        ConfigError: None is given or shipped, or it reads layers the target does not have.
    """
    options, shape = config.options, loaded.target.config
    _tappable(loaded.target)
    given = Path(options.head).expanduser() if options.head else find(shape, config.scheme)
    if given is None:
        raise missing_head(config.scheme)
    return heads.load(given, loaded.target, options.layer_ids)


def lacking(target: Target, config: SessionConfig) -> str:
    """Say what a scheme lacks to draft for `target`, "" if nothing; no file is read for it."""
    scheme, options = describe(config.scheme), config.options
    shipped = find(target.config, config.scheme) is not None
    if scheme.needs_model and not options.draft_model and not shipped:
        return _("No draft model is given, and none is shipped for this target.")
    if scheme.needs_head and not isinstance(target, Tappable):
        return str(_hides_states(target))
    if scheme.needs_head and not options.head and not shipped:
        return str(missing_head(config.scheme))
    return ""


def find(target: TargetConfig, scheme: str) -> Path | None:
    """Return the folder of what is shipped for a target, the same weights first."""
    return checkpoints.find(target.sha, scheme) or checkpoints.find(target.name, scheme)


def listened_to(target: Target, draft: Loaded | Head | None) -> Target:
    """Return a target with an empty cache that keeps the hidden states which `draft` reads.

    Raises:
        UnsupportedModel: It cannot keep them.
    """
    if not isinstance(draft, Head):
        return target.fork(0)
    return _tappable(target).with_taps(draft.taps)


def keeps_for(target: Target, draft: Loaded | Head | None) -> bool:
    """Whether a target keeps all that `draft` reads."""
    return not isinstance(draft, Head) or getattr(target, "taps", ()) == draft.taps


def _tappable(target: Target) -> Tappable:
    if not isinstance(target, Tappable):
        raise _hides_states(target)
    return target


def _hides_states(target: Target) -> UnsupportedModel:
    return UnsupportedModel(
        _(
            "{name} is run by transformers, which does not hand out the hidden states that "
            "heads read; choose a Llama or Qwen target, or the scheme ngram, suffix or "
            "draft_model"
        ).format(name=target.config.name)
    )


def card(config: TargetConfig) -> ModelCard:
    """Return the model card of a trace."""
    return ModelCard(
        name=config.name,
        sha=config.sha,
        layers=config.layers,
        hidden=config.hidden,
        heads=config.heads,
        kv_heads=config.kv_heads,
        head_dim=config.head_dim,
        vocab=config.vocab,
        context=config.context,
    )


def draft_ids(draft: Loaded | Head | None) -> Tensor | None:
    """Return the target's ids that can be drafted, rising; None if all can."""
    if isinstance(draft, RecurrentHead | DFlashHead):
        return draft.draft_ids
    if isinstance(draft, Loaded) and isinstance(draft.target, LlamaTarget):
        head = draft.target.weights.head
        return head.ids if isinstance(head, SomeRows) else None
    return None


def undraftable(draft: Loaded | Head | None, tokens: Iterable[int]) -> tuple[int, ...]:
    """Return those of `tokens` that are outside of the draft vocabulary, rising."""
    ids = draft_ids(draft)
    return () if ids is None else tuple(sorted(set(tokens).difference(ids.tolist())))


def draft_card(draft: Loaded | Head | None, target: TargetConfig) -> ModelCard | None:
    """Return the card of what drafts; its vocabulary is what it can draft."""
    if not isinstance(draft, Head):
        ids, whole = draft_ids(draft), card(draft.target.config) if draft else None
        return whole if whole is None or ids is None else replace(whole, vocab=len(ids))
    if isinstance(draft, RecurrentHead):
        shape, layers = draft.shape, len(list(draft.decoder_layers()))
        vocab = target.vocab if draft.draft_ids is None else len(draft.draft_ids)
    else:
        assert isinstance(draft, DFlashHead)
        shape, layers, vocab = draft.config.layer, draft.config.layers, draft.config.draft_vocab
    return ModelCard(
        name=draft.name or draft.scheme,
        sha=draft.sha,
        layers=layers,
        hidden=shape.hidden,
        heads=shape.heads,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        vocab=vocab,
        context=target.context,
    )
