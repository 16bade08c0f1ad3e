"""Which layout a head's folder has, and the reading and writing of all of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from specviz.errors import ConfigError, UnsupportedModel
from specviz.heads.base import Head
from specviz.heads.checkpoint import Checkpoint
from specviz.heads.dspark import DSparkHead
from specviz.heads.dspark_schedule import read_calibration
from specviz.heads.eagle3 import Eagle3Head
from specviz.heads.formats import (
    deepspec,
    eagle,
    mtp,
    speculators_block,
    speculators_eagle,
    speculators_mtp,
    zlab,
)
from specviz.models.llama_config import Settings
from specviz.models.target import Target, TargetConfig
from specviz.words import _

Matches = Callable[[Settings, frozenset[str]], bool]  # of config.json and the tensor names
Read = Callable[[Checkpoint, TargetConfig, tuple[int, ...] | None], Head]  # the last: taps
Write = Callable[[Head, Path], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One published layout. `write` is None for layouts that are only read."""

    name: str
    matches: Matches
    read: Read
    write: Write | None = None


# The first that matches is taken: what says its own name comes first, what is told by its tensors
# later, and modules inside a target's own checkpoint last.
FORMATS: tuple[Format, ...] = (
    Format(
        name="speculators-eagle3",
        matches=speculators_eagle.matches,
        read=speculators_eagle.read,
        write=speculators_eagle.write,
    ),
    Format(
        name="speculators-block",
        matches=speculators_block.matches,
        read=speculators_block.read,
        write=speculators_block.write,
    ),
    Format(
        name="speculators-mtp",
        matches=speculators_mtp.matches,
        read=speculators_mtp.read,
        write=speculators_mtp.write,
    ),
    Format(name="deepspec", matches=deepspec.matches, read=deepspec.read, write=deepspec.write),
    Format(name="z-lab", matches=zlab.matches, read=zlab.read, write=zlab.write),
    Format(name="eagle", matches=eagle.matches, read=eagle.read, write=eagle.write),
    Format(name="mtp", matches=mtp.matches, read=mtp.read),
)


def load(path: Path, target: Target | TargetConfig, layer_ids: Sequence[int] | None = None) -> Head:
    """Read the head in the folder `path`, made for `target`.

    Args:
        path: folder with config.json and safetensors, in any layout of `FORMATS`.
        target: the model it drafts for, or its shape: enough unless the file is packed.
        layer_ids: overrides which hidden states it reads; indices of transformers'
            `hidden_states`.

    Raises:
        ModelNotFound: there is no such folder or nothing to read in it.
        ModelCorrupt: a key or tensor is missing, wrong or not explained.
        UnsupportedModel: the layout is unknown, or a variant that is not run here.
        VocabMismatch: it was made for another vocabulary.
    """
    lender, target = (None, target) if isinstance(target, TargetConfig) else (target, target.config)
    checkpoint = Checkpoint(Path(path), lender)
    config, names = checkpoint.config, checkpoint.names
    for layout in FORMATS:
        if layout.matches(config, names):
            head = layout.read(checkpoint, target, tuple(layer_ids) if layer_ids else None)
            head.layout, head.name, head.sha = layout.name, checkpoint.name, checkpoint.sha
            if isinstance(head, DSparkHead):
                head.temperatures = read_calibration(Path(path))
            _check_taps(head, target)
            _check_width(head, target)
            return head
    raise UnsupportedModel(
        _(
            "{path} holds no head that is known here: config.json has architectures "
            "{architectures!r} and speculators_model_type {kind!r}; layouts read: {formats}"
        ).format(
            path=path,
            architectures=config.get("architectures"),
            kind=config.get("speculators_model_type"),
            formats=", ".join(layout.name for layout in FORMATS),
        )
    )


def save(head: Head, path: Path, format: str) -> None:
    """Write `head` as config.json and model.safetensors in the layout `format`.

    Raises:
        ConfigError: that layout is not written here, or does not hold such a head.
    """
    writers = {layout.name: layout.write for layout in FORMATS if layout.write}
    if format not in writers:
        raise ConfigError(
            _("format is {format!r}; heads are written as {writers}").format(
                format=format, writers=", ".join(writers)
            )
        )
    writers[format](head, Path(path))


def _check_taps(head: Head, target: TargetConfig) -> None:
    wrong = [tap for tap in head.taps if not 0 <= tap <= target.layers]
    if wrong or not head.taps:
        raise ConfigError(
            _(
                "the head reads the hidden states {taps}; {name} has 0 to {layers}. Was it made "
                "for another model? Else give layer ids."
            ).format(taps=head.taps, name=target.name, layers=target.layers)
        )


def _check_width(head: Head, target: TargetConfig) -> None:
    """Refuse an EAGLE-3 head of a target of another width; other layouts say it when read."""
    if isinstance(head, Eagle3Head) and head.config.target_hidden != target.hidden:
        raise UnsupportedModel(
            _(
                "the head reads hidden states of width {width}; those of {name} have {hidden}. It "
                "was made for another model."
            ).format(width=head.config.target_hidden, name=target.name, hidden=target.hidden)
        )
