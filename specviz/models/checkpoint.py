"""A model folder on disk: config.json and safetensors, read carefully; nothing is unpickled."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from specviz.errors import ModelCorrupt, ModelNotFound, UnsupportedModel
from specviz.models.refusals import check_sense
from specviz.words import _

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
            raise ModelNotFound(
                _("there is no folder {folder}; give one that holds a model").format(
                    folder=self.folder
                )
            )
        path = self.folder / "config.json"
        if not path.is_file():
            raise ModelNotFound(
                _(
                    "{folder} has no config.json; give the folder of a model as transformers saves "
                    "it, or a .gguf file"
                ).format(folder=self.folder)
            )
        settings = read_json(path)
        check_sense(settings)
        if "auto_map" in settings and "model_type" not in settings:
            raise UnsupportedModel(
                _(
                    "{name} runs only with code of its own (auto_map in config.json), and code "
                    "that comes with a model is never run; choose a model that transformers knows"
                ).format(name=self.folder.name)
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
                raise ModelCorrupt(
                    _("{index} has no weight_map of file names; fetch it again").format(index=index)
                )
            found = tuple(self.folder / name for name in sorted(set(names.values())))
        else:
            found = tuple(sorted(self.folder.glob("*.safetensors")))
        missing = [path.name for path in found if not path.is_file()]
        if missing:
            raise ModelNotFound(
                _("{folder} lacks {missing}; fetch the model again").format(
                    folder=self.folder, missing=missing[0]
                )
            )
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
                    _(
                        "{shard} cannot be read as safetensors ({error}); it is damaged or cut "
                        "short: fetch the model again"
                    ).format(shard=shard, error=error)
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
                _(
                    "{folder} has its weights in {pickled}, a pickle, which can run any code when "
                    "it is read. Convert it once where you trust it: load it with transformers and "
                    "call save_pretrained(folder, safe_serialization=True)"
                ).format(folder=self.folder, pickled=pickled[0])
            )
        raise ModelNotFound(
            _("{folder} has no .safetensors weights; fetch the model again").format(
                folder=self.folder
            )
        )


def read_json(path: Path) -> dict[str, object]:
    """Return the JSON object in `path`; raise ModelCorrupt if it is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ModelCorrupt(
            _("{path} is not JSON ({error}); fetch the model again").format(path=path, error=error)
        ) from error
    except RecursionError as error:
        raise ModelCorrupt(
            _("{path} is nested too deeply to be a model's file").format(path=path)
        ) from error
    if not isinstance(content, dict):
        raise ModelCorrupt(
            _("{path} is not a JSON object; fetch the model again").format(path=path)
        )
    return content


def _is_plain_name(name: object) -> bool:
    return isinstance(name, str) and name == Path(name).name
