"""A model folder on disk: config.json and safetensors, read carefully; nothing is unpickled."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from specviz.errors import ModelCorrupt, ModelNotFound, UnsupportedModel
from specviz.models.refusals import check_sense

if TYPE_CHECKING:
    from torch import Tensor

PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
INDEX = "model.safetensors.index.json"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A folder with config.json and safetensors weights."""

    folder: Path

    def settings(self) -> dict[str, object]:
        """Return config.json with the end tokens of generation_config.json, if it names any.

        Raises:
            ModelNotFound: There is no such folder, or no config.json in it.
            ModelCorrupt: A file is not the JSON object it should be, or makes no sense.
            UnsupportedModel: The model needs code of its own to run.
        """
        if not self.folder.is_dir():
            raise ModelNotFound(f"there is no folder {self.folder}; give one that holds a model")
        path = self.folder / "config.json"
        if not path.is_file():
            raise ModelNotFound(
                f"{self.folder} has no config.json; give the folder of a model as transformers "
                "saves it, or a .gguf file"
            )
        settings = read_json(path)
        check_sense(settings)
        if "auto_map" in settings and "model_type" not in settings:
            raise UnsupportedModel(
                f"{self.folder.name} runs only with code of its own (auto_map in config.json), and "
                "code that comes with a model is never run; choose a model that transformers knows"
            )
        generation = self.folder / "generation_config.json"
        if generation.is_file() and (ends := read_json(generation).get("eos_token_id")) is not None:
            settings["eos_token_id"] = ends
        return settings

    def shards(self) -> tuple[Path, ...]:
        """Return the safetensors files.

        Raises:
            UnsupportedModel: There are only pickled weights.
            ModelNotFound: There are no weights, or a shard of the index is missing.
        """
        index = self.folder / INDEX
        if index.is_file():
            names = read_json(index).get("weight_map")
            if not isinstance(names, dict) or not all(map(_is_plain_name, names.values())):
                raise ModelCorrupt(f"{index} has no weight_map of file names; fetch it again")
            found = tuple(self.folder / name for name in sorted(set(names.values())))
        else:
            found = tuple(sorted(self.folder.glob("*.safetensors")))
        missing = [path.name for path in found if not path.is_file()]
        if missing:
            raise ModelNotFound(f"{self.folder} lacks {missing[0]}; fetch the model again")
        return found or self._no_weights()

    def tensors(self) -> dict[str, "Tensor"]:
        """Map every tensor by name; memory is taken only when one is read.

        Raises:
            ModelCorrupt: A file is truncated or not safetensors.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        tensors: dict[str, Tensor] = {}
        for shard in self.shards():
            try:
                tensors |= load_file(shard)
            except (SafetensorError, OSError) as error:
                raise ModelCorrupt(
                    f"{shard} cannot be read as safetensors ({error}); it is damaged or cut short: "
                    "fetch the model again"
                ) from error
        return tensors

    def sha(self) -> str:
        """Identify the weights by a hash of every shard's header and size, in milliseconds.

        A safetensors header names each tensor's place, so other shapes give another hash;
        retrained weights of the same shapes and size do not, which the model store's own
        manifest covers.
        """
        digest = hashlib.sha256()
        for shard in self.shards():
            size = shard.stat().st_size
            digest.update(f"{shard.name} {size}\n".encode())
            with shard.open("rb") as file:
                for offset in range(0, size, max(1, size // 64)):
                    file.seek(offset)
                    digest.update(file.read(4096))
        return digest.hexdigest()[:16]

    def _no_weights(self) -> tuple[Path, ...]:
        pickled = [path.name for pattern in PICKLES for path in self.folder.glob(pattern)]
        if pickled:
            raise UnsupportedModel(
                f"{self.folder} has its weights in {pickled[0]}, a pickle, which can run any code "
                "when it is read. Convert it once where you trust it: load it with transformers "
                "and call save_pretrained(folder, safe_serialization=True)"
            )
        raise ModelNotFound(f"{self.folder} has no .safetensors weights; fetch the model again")


def read_json(path: Path) -> dict[str, object]:
    """Return the JSON object in `path`; raise ModelCorrupt if it is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ModelCorrupt(f"{path} is not JSON ({error}); fetch the model again") from error
    except RecursionError as error:
        raise ModelCorrupt(f"{path} is nested too deeply to be a model's file") from error
    if not isinstance(content, dict):
        raise ModelCorrupt(f"{path} is not a JSON object; fetch the model again")
    return content


def _is_plain_name(name: object) -> bool:
    return isinstance(name, str) and name == Path(name).name
