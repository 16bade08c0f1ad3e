"""Small files for heads and draft models: int8 weights, and no row that the target has too."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from specviz.errors import ConfigError, ModelCorrupt
from specviz.heads.dflash_vocab import absolute_ids
from specviz.models.checkpoint import Checkpoint
from specviz.models.llama_config import Settings
from specviz.models.target import Target
from specviz.words import _

PACKED = "specviz_packed"  # key of config.json: which tensors are left to the target
HEAD = "lm_head.weight"
SCALE = ".scale"  # beside the int8 tensor: float32, one for each output row
LARGEST = 127


def target_rows(target: Target, ids: Tensor | None = None) -> Tensor:
    """Return rows `ids` (all, if None) of a target's output head [rows, hidden], in its dtype.

    They are read out of any target: its head is linear in what it reads.
    """
    unit = torch.eye(target.config.hidden, dtype=target.dtype, device=target.device)
    table = target.head(unit).to(target.dtype).T
    return (table if ids is None else table[ids.to(target.device)]).contiguous()


def pack(folder: Path, out: Path, target: Target) -> None:
    """Write the head or draft model in `folder` to `out` with a byte for each weight.

    Matrices become int8 with a scale for each output row; an output head equal to the target's
    rows is left out, and so is t2d, which follows from d2t. Everything else in the folder is
    copied.

    Raises:
        ModelError: there is nothing to read in `folder`.
        ConfigError: it is packed already.
    """
    checkpoint = Checkpoint(folder)
    settings = checkpoint.settings()
    if PACKED in settings:
        raise ConfigError(_("{folder} is packed already").format(folder=folder))
    tensors = checkpoint.tensors()
    borrowed = [HEAD] if _is_targets(tensors, target) else []
    small: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if name in borrowed or (name == "t2d" and "d2t" in tensors):
            continue
        if tensor.dim() == 2 and tensor.is_floating_point():
            small[name], small[name + SCALE] = quantise(tensor)
        elif tensor.is_floating_point():
            small[name] = tensor.to(torch.bfloat16)
        else:
            small[name] = tensor.to(torch.int32) if name == "d2t" else tensor
    out.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.is_file() and path.suffix != ".safetensors":
            shutil.copy(path, out / path.name)
    whole = {name: tensor.contiguous() for name, tensor in small.items()}
    save_file(whole, out / "model.safetensors", metadata={"format": "pt"})
    text = json.dumps(settings | {PACKED: borrowed}, indent=2, sort_keys=True)
    (out / "config.json").write_text(text + "\n", "utf-8")


def quantise(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return int8 [rows, columns] and float32 scales [rows] whose product is about `weight`."""
    weight = weight.detach().float()
    scale = weight.abs().amax(dim=1).clamp_min(1e-12) / LARGEST
    return (weight / scale[:, None]).round().to(torch.int8), scale


def is_packed(settings: Settings) -> bool:
    """Whether a config.json says that the weights beside it are packed."""
    return PACKED in settings


def unpack(
    tensors: Mapping[str, Tensor], settings: Settings, target: Target | None
) -> dict[str, Tensor]:
    """Return the tensors as they were before `pack`, matrices in float32.

    Raises:
        ModelCorrupt: a matrix and its scales do not fit.
        ConfigError: the rows of the target are needed and there is no target.
    """
    found: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        scale = tensors.get(name + SCALE)
        if scale is not None:
            if tensor.dtype != torch.int8 or scale.shape != tensor.shape[:1]:
                raise ModelCorrupt(
                    _("tensor {name} is {dtype} {shape}; its scales are {scales}").format(
                        name=name,
                        dtype=tensor.dtype,
                        shape=list(tensor.shape),
                        scales=list(scale.shape),
                    )
                )
            found[name] = tensor.float() * scale[:, None]
        elif name == "d2t":
            found[name] = tensor.long()
        elif name.removesuffix(SCALE) not in tensors or name == name.removesuffix(SCALE):
            found[name] = tensor
    borrowed = settings.get(PACKED)
    if borrowed == [HEAD]:
        if target is None:
            raise ConfigError(
                _("the file leaves {names} to the target; give the target itself").format(
                    names=HEAD
                )
            )
        found[HEAD] = _borrow(tensors, target)
    elif borrowed != []:
        raise ModelCorrupt(
            _("config.json says {key} = {value!r}; [] or [{name!r}] is meant").format(
                key=PACKED, value=borrowed, name=HEAD
            )
        )
    return found


def _borrow(tensors: Mapping[str, Tensor], target: Target) -> Tensor:
    d2t = tensors.get("d2t")
    ids = None if d2t is None else absolute_ids(d2t, target.config.vocab)
    return target_rows(target, ids).cpu()


def _is_targets(tensors: Mapping[str, Tensor], target: Target) -> bool:
    own = tensors.get(HEAD)
    if own is None:
        return False
    theirs = _borrow(tensors, target)
    return own.shape == theirs.shape and torch.equal(own.to(theirs.dtype), theirs)
