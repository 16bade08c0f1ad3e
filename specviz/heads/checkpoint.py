"""A checkpoint folder, and how its tensors get into a head: every refusal names its tensor."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from specviz.errors import ModelCorrupt, ModelNotFound, UnsupportedModel
from specviz.models.llama_config import Settings

INDEX, WEIGHTS = "model.safetensors.index.json", "model.safetensors"

Module = TypeVar("Module", bound=nn.Module)


class Checkpoint:
    """config.json of a folder and its tensors, read when they are asked for."""

    def __init__(self, folder: Path) -> None:
        """Open the folder.

        Raises:
            ModelNotFound: there is no folder, or nothing in it.
            ModelCorrupt: config.json or the weights are damaged.
            UnsupportedModel: the weights are pickled.
        """
        self.folder = folder
        if not (folder / "config.json").is_file():
            raise ModelNotFound(
                f"{folder} has no config.json; give the folder of a head, as published"
            )
        self.config: Settings = _read_json(folder / "config.json")
        self._files = self._tensor_files()

    @property
    def names(self) -> frozenset[str]:
        """Names of all tensors."""
        return frozenset(self._files)

    def get(self, name: str) -> Tensor:
        """Read one tensor."""
        path = self._files[name]
        try:
            with safe_open(path, "pt") as file:
                tensor: Tensor = file.get_tensor(name)
        except (SafetensorError, OSError) as error:
            raise ModelCorrupt(f"{path} cannot be read: {error}. Fetch the head again.") from error
        return tensor

    def _tensor_files(self) -> dict[str, Path]:
        index = self.folder / INDEX
        if index.is_file():
            files = _read_json(index).get("weight_map")
            if not isinstance(files, dict):
                raise ModelCorrupt(f"{index} has no weight_map; fetch the head again")
            named = {str(name): self.folder / str(file) for name, file in files.items()}
            outside = [p for p in named.values() if p.parent != self.folder or not p.is_file()]
            if outside:
                raise ModelCorrupt(
                    f"{index} names {outside[0].name}, which is not in {self.folder}"
                )
            return named
        paths = sorted(self.folder.glob("*.safetensors"))
        if not paths:
            raise self._no_weights()
        found: dict[str, Path] = {}
        for path in paths:
            try:
                with safe_open(path, "pt") as file:
                    found.update(dict.fromkeys(file.keys(), path))
            except (SafetensorError, OSError) as error:
                raise ModelCorrupt(
                    f"{path} cannot be read: {error}. Fetch the head again."
                ) from error
        return found

    def _no_weights(self) -> Exception:
        if list(self.folder.glob("*.bin")) or list(self.folder.glob("*.pt")):
            return UnsupportedModel(
                f"{self.folder} has pickled weights only, which can run code when they are read; "
                "convert them to safetensors first"
            )
        return ModelNotFound(f"{self.folder} has no *.safetensors; give the folder of a head")


def build(make: Callable[[], Module], tensors: Mapping[str, Tensor], where: str) -> Module:
    """Make a module whose parameters are `tensors`, by the names in its `state_dict`.

    Nothing is initialised only to be overwritten, and dtypes stay as they are in the file.
    `where` says in messages what was being read.

    Raises:
        ModelCorrupt: a tensor is missing, misshaped or not explained by the config.
        UnsupportedModel: a tensor is quantised.
    """
    with torch.device("meta"):
        module = make()
    wanted = module.state_dict()
    for name, empty in wanted.items():
        if name not in tensors:
            raise ModelCorrupt(
                f"{where}: the weights have no tensor {name} {list(empty.shape)}, which "
                "config.json asks for"
            )
        given = tensors[name]
        if given.shape != empty.shape:
            raise ModelCorrupt(
                f"{where}: tensor {name} has shape {list(given.shape)} and config.json asks for "
                f"{list(empty.shape)}"
            )
        if not given.is_floating_point() or given.element_size() < 2:
            raise UnsupportedModel(
                f"{where}: tensor {name} is {given.dtype}; weights of heads must be float32, "
                "float16 or bfloat16"
            )
    for name, given in tensors.items():
        if name not in wanted:
            raise ModelCorrupt(
                f"{where}: the weights have a tensor {name} {list(given.shape)} that config.json "
                "does not explain"
            )
    module.load_state_dict(dict(tensors), assign=True)
    return module


def write_folder(folder: Path, config: Mapping[str, object], tensors: Mapping[str, Tensor]) -> None:
    """Write config.json and model.safetensors."""
    folder.mkdir(parents=True, exist_ok=True)
    whole = {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}
    save_file(whole, folder / WEIGHTS, metadata={"format": "pt"})
    text = json.dumps(dict(config), indent=2, sort_keys=True)
    (folder / "config.json").write_text(text + "\n", "utf-8")


def _read_json(path: Path) -> dict[str, object]:
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ModelCorrupt(f"{path} is not readable JSON: {error}") from error
    if not isinstance(content, dict):
        raise ModelCorrupt(f"{path} holds {type(content).__name__}; an object is needed")
    return content
