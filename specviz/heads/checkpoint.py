"""A checkpoint folder, and how its tensors get into a head: every refusal names its tensor."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from specviz.errors import ModelCorrupt, UnsupportedModel
from specviz.heads.packing import PACKED, is_packed, unpack
from specviz.models import checkpoint as model_files
from specviz.models.llama_config import Settings
from specviz.models.target import Target
from specviz.words import _

WEIGHTS = "model.safetensors"

Module = TypeVar("Module", bound=nn.Module)


class Checkpoint:
    """config.json of a folder and its tensors, read when they are asked for."""

    def __init__(self, folder: Path, target: Target | None = None) -> None:
        """Open the folder; `target` lends the rows that a packed file leaves to it.

        Raises:
            ModelNotFound: there is no folder, or nothing in it.
            ModelCorrupt: config.json or the weights are damaged.
            UnsupportedModel: the weights are pickled.
        """
        files = model_files.Checkpoint(folder)
        self.folder = folder
        self.config: Settings = files.settings()
        self._tensors = files.tensors()
        if is_packed(self.config):
            self._tensors = unpack(self._tensors, self.config, target)
            self.config = {key: v for key, v in self.config.items() if key != PACKED}
        self.name, self.sha = folder.resolve().name, files.sha()

    @property
    def names(self) -> frozenset[str]:
        """Names of all tensors."""
        return frozenset(self._tensors)

    def get(self, name: str) -> Tensor:
        """Return one tensor."""
        return self._tensors[name]


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
                _(
                    "{where}: the weights have no tensor {name} {shape}, which config.json asks for"
                ).format(where=where, name=name, shape=list(empty.shape))
            )
        given = tensors[name]
        if given.shape != empty.shape:
            raise ModelCorrupt(
                _(
                    "{where}: tensor {name} has shape {shape} and config.json asks for {asked}"
                ).format(where=where, name=name, shape=list(given.shape), asked=list(empty.shape))
            )
        if not given.is_floating_point() or given.element_size() < 2:
            raise UnsupportedModel(
                _(
                    "{where}: tensor {name} is {dtype}; weights of heads must be float32, float16 "
                    "or bfloat16"
                ).format(where=where, name=name, dtype=given.dtype)
            )
    for name, given in tensors.items():
        if name not in wanted:
            raise ModelCorrupt(
                _(
                    "{where}: the weights have a tensor {name} {shape} that config.json does not "
                    "explain"
                ).format(where=where, name=name, shape=list(given.shape))
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
