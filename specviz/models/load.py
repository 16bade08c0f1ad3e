"""From a name to a running target: the embedded model, a folder, a GGUF file or a hub id."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from specviz.errors import ModelNotFound
from specviz.models.checkpoint import Checkpoint
from specviz.models.store import Progress, silent
from specviz.words import _

if TYPE_CHECKING:
    import torch

    from specviz.models.target import Target
    from specviz.models.text import Tokenizer

DEFAULT = "default"
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
# Nothing else is fetched: no pickles, no code.
HUB_FILES = ("*.json", "*.safetensors", "*.jinja", "tokenizer.model")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A target, what its ids mean, and the name it was asked for by."""

    target: "Target"
    tokenizer: "Tokenizer"
    spec: str


def load(
    spec: str | None = None,
    *,
    device: str = "auto",
    dtype: str = "auto",
    progress: Progress | None = None,
) -> Loaded:
    """Load a target.

    Args:
        spec: None or "default" for the embedded model, a folder in safetensors, a .gguf file, or
            an id on the hub ("owner/name").
        device: "auto", "cpu", "cuda" or "mps".
        dtype: "auto" (measured once per machine) or a name like "bfloat16".
        progress: told what is happening and how far it is.

    Raises:
        ModelError: ModelNotFound, ModelCorrupt or UnsupportedModel, with what to do.
        ConfigError: The device or dtype is not to be had.
    """
    from specviz.models.device import choose_device, choose_dtype
    from specviz.models.text import Tokenizer

    progress = progress or silent
    spec = DEFAULT if spec is None else spec.strip()
    folder = find(spec, progress)
    checkpoint = Checkpoint(folder)
    checkpoint.settings()  # what is wrong with it is said before a dtype is measured
    place = choose_device(device)
    kind = choose_dtype(place, dtype)
    progress(_("loading {name}").format(name=folder.name), 0.0)
    target = _target(checkpoint, _title(spec, folder), place, kind)
    tokenizer = Tokenizer.from_folder(folder)
    progress(_("loading {name}").format(name=folder.name), 1.0)
    return Loaded(target, tokenizer, spec)


def _target(
    checkpoint: Checkpoint, name: str, device: "torch.device", dtype: "torch.dtype"
) -> "Target":
    from specviz.models.llama_config import is_native, read_llama_config

    settings = checkpoint.settings()
    if not is_native(settings):
        from specviz.models.hf_load import load_hf

        return load_hf(checkpoint, settings, name=name, device=device, dtype=dtype)
    from specviz.models.llama import LlamaTarget

    config = read_llama_config(settings, name=name, sha=checkpoint.sha())
    return LlamaTarget.from_tensors(config, checkpoint.tensors(), device=device, dtype=dtype)


def find(spec: str, progress: Progress = silent) -> Path:
    """Return the local folder of a model, fetching or converting it if need be."""
    if spec == DEFAULT:
        from specviz.models.default import ensure_default

        return ensure_default(progress)
    if not spec:
        raise ModelNotFound(
            _("no model is named; give a folder, a .gguf file, owner/name or 'default'")
        )
    path = Path(spec).expanduser()
    if path.suffix.lower() == ".gguf":
        from specviz.models.gguf import convert_gguf

        if not path.is_file():
            raise ModelNotFound(
                _("there is no file {path}; give the path of a GGUF file").format(path=path)
            )
        return convert_gguf(path, progress)
    if path.is_dir():
        return path
    if path.exists():
        raise ModelNotFound(
            _(
                "{path} is a file, and only .gguf files are read alone; give the folder it lies in"
            ).format(path=path)
        )
    if not HUB_ID.fullmatch(spec):
        raise ModelNotFound(
            _(
                "{spec!r} is no folder here and no hub id; give a folder, a .gguf file, owner/name "
                "of the hub, or 'default' for the embedded model"
            ).format(spec=spec)
        )
    return _from_hub(spec, progress)


def _from_hub(spec: str, progress: Progress) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    progress(_("fetching {spec} from the hub").format(spec=spec), 0.0)
    try:
        return Path(snapshot_download(spec, allow_patterns=list(HUB_FILES)))
    except LocalEntryNotFoundError as error:
        raise ModelNotFound(
            _(
                "{spec} is not in the local hub cache and the hub cannot be reached; connect once, "
                "or copy the model's folder here and give its path"
            ).format(spec=spec)
        ) from error
    except (HfHubHTTPError, OSError, ValueError) as error:
        raise ModelNotFound(
            _(
                "{spec} cannot be fetched from the hub ({error}); check the name, log in if the "
                "model is gated, or give the path of a local folder"
            ).format(spec=spec, error=str(error).splitlines()[0])
        ) from error


def _title(spec: str, folder: Path) -> str:
    return "SmolLM2-135M-Instruct" if spec == DEFAULT else spec if "/" not in spec else folder.name
