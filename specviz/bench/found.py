"""Every drafter that lies on this machine, and for those of no use to a target, why.

Looked at: what is shipped, the folder `heads` of the user's cache, and the hub's cache. Of the
hub's cache only heads count, as every model there could be somebody's draft model.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from specviz import checkpoints
from specviz.drafters.eligibility import check_vocabulary
from specviz.errors import SpecvizError
from specviz.heads.load import FORMATS, load
from specviz.heads.small_llama import SHARED, load_small_llama
from specviz.models.checkpoint import Checkpoint
from specviz.models.llama_config import Settings
from specviz.models.load import Loaded
from specviz.models.store import cache_dir
from specviz.models.target import TargetConfig
from specviz.models.text import Tokenizer
from specviz.words import _

Where = Literal["shipped", "yours", "hub"]
DRAFT_MODEL = "draft_model"


@dataclass(frozen=True, slots=True)
class Found:
    """A drafter on disk; `problem` says why it cannot draft for the target, "" if it can.

    `scheme` is "" where the files do not say what they are for.
    """

    scheme: str
    name: str
    path: Path
    where: Where
    problem: str = ""


def user_folder() -> Path:
    """Return the folder in which a user's own heads and draft models are looked for."""
    return cache_dir() / "heads"


def hub_folder() -> Path:
    """Return the hub's cache."""
    from huggingface_hub.constants import HF_HUB_CACHE

    return Path(HF_HUB_CACHE)


def find_drafters(loaded: Loaded, hub: Path | None = None) -> tuple[Found, ...]:
    """Return every drafter found, those that can draft for `loaded` first."""
    found = [_look(loaded, folder, where) for folder, where in _folders(hub or hub_folder())]
    return tuple(sorted(filter(None, found), key=lambda each: bool(each.problem)))


def folders(hub: Path | None = None) -> tuple[tuple[Path, float], ...]:
    """Return the folders that are looked at and when each changed: all that an answer rests on."""
    return tuple(
        (folder, (folder / "config.json").stat().st_mtime)
        for folder, _where in _folders(hub or hub_folder())
    )


def _folders(hub: Path) -> Iterator[tuple[Path, Where]]:
    places: tuple[tuple[Where, Iterable[Path]], ...] = (
        ("shipped", checkpoints.SHIPPED.glob("*/*/config.json")),
        ("yours", user_folder().glob("*/config.json")),
        ("yours", user_folder().glob("*/*/config.json")),
        ("hub", hub.glob("models--*/snapshots/*/config.json")),
    )
    for where, files in places:
        for file in sorted(files):
            yield file.parent, where


def _look(loaded: Loaded, folder: Path, where: Where) -> Found | None:
    """Say what lies in a folder; None for a whole model in the hub's cache."""
    name = _name(folder, where)
    try:
        settings = Checkpoint(folder).settings()
        scheme = scheme_of(folder, settings)
        if scheme == DRAFT_MODEL and where == "hub":
            return None
        known = where == "shipped" and checkpoints.is_for(folder, loaded.target.config.sha)
        problem = "" if known else _problem(loaded, folder, scheme, settings)
        return Found(scheme, name, folder, where, problem)
    except SpecvizError as error:
        return Found("", name, folder, where, str(error))


def _name(folder: Path, where: Where) -> str:
    if where != "hub":
        return folder.name
    return folder.parents[1].name.removeprefix("models--").replace("--", "/", 1)


def scheme_of(folder: Path, settings: Settings) -> str:
    """Return the scheme that the files in a folder are for; a model of its own is a draft model.

    Raises:
        ModelError: The weights are missing or damaged.
    """
    if SHARED in settings:
        return DRAFT_MODEL
    names = frozenset(Checkpoint(folder).tensors())
    layout = next((known.name for known in FORMATS if known.matches(settings, names)), "")
    if layout in ("speculators-eagle3", "eagle"):
        return "eagle3"
    if layout in ("speculators-mtp", "mtp"):
        return "mtp"
    if not layout:
        return DRAFT_MODEL
    said = f"{settings.get('speculators_model_type')} {settings.get('architectures')}".lower()
    return "dspark" if "dspark" in said or any("markov" in n for n in names) else "dflash"


def _problem(loaded: Loaded, folder: Path, scheme: str, settings: Settings) -> str:
    """Say why a drafter cannot be used: what a run with it would say."""
    try:
        if SHARED in settings:
            load_small_llama(folder, loaded.target)
        elif scheme != DRAFT_MODEL:
            load(folder, loaded.target)
        else:
            checked = check_vocabulary(loaded.tokenizer, Tokenizer.from_folder(folder))
            return "" if checked.ok else checked.reason
    except SpecvizError as error:
        return _mismatch(settings, loaded.target.config) or str(error)
    return ""


def _mismatch(settings: Settings, target: TargetConfig) -> str:
    """Say plainly that a head is of another model, where that is why it cannot be read."""
    inner = settings.get("transformer_layer_config")
    known = {**(inner if isinstance(inner, dict) else {}), **settings}
    vocab = known.get("vocab_size")
    width = known.get("target_hidden_size", known.get("hidden_size"))
    if isinstance(vocab, int) and vocab != target.vocab:
        text = _("It is made for a vocabulary of {here} ids; {name} has {there}.")
        return text.format(here=vocab, name=target.name, there=target.vocab)
    if isinstance(width, int) and width != target.hidden:
        text = _("It is made for hidden states of width {here}; those of {name} have {there}.")
        return text.format(here=width, name=target.name, there=target.hidden)
    return ""
