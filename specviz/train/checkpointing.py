"""The state of a training run in one file: a killed run goes on as if it had not been."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import nn

from specviz.errors import ConfigError, ModelCorrupt
from specviz.train.optimizer import Optimizer
from specviz.words import _

STATE = "state.safetensors"


@dataclass(frozen=True, slots=True)
class Mark:
    """What was seen at one step: the mean loss since the mark before, E[L] if it was measured."""

    step: int
    tokens: int  # supervised, since the start
    loss: float
    acceptance_length: float | None = None


@dataclass(slots=True)
class RunState:
    """Where a run stands. Everything random is a function of the seed and of `step`."""

    step: int = 0  # the next one
    epoch: int = 0
    cursor: int = 0  # batches of this epoch that are done
    tokens: int = 0  # supervised so far
    seconds: float = 0.0
    best: float = 0.0  # largest held-out E[L]
    best_step: int = -1
    best_counts: dict[str, dict[str, object]] = field(default_factory=dict)  # by class of prompt
    loss_sum: float = 0.0  # since the last mark
    loss_count: int = 0
    marks: list[Mark] = field(default_factory=list)
    recipe: dict[str, object] = field(default_factory=dict)


def save_state(folder: Path, state: RunState, module: nn.Module, optimizer: Optimizer) -> None:
    """Write weights, moments and counters; the old file stays until the new one is whole."""
    tensors = {f"weight.{name}": weight.detach() for name, weight in module.named_parameters()}
    tensors |= {f"optimizer.{name}": tensor for name, tensor in optimizer.tensors().items()}
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / (STATE + ".partial")
    whole = {name: tensor.contiguous().cpu() for name, tensor in tensors.items()}
    save_file(whole, partial, metadata={"state": json.dumps(asdict(state))})
    partial.replace(folder / STATE)


def load_state(folder: Path, module: nn.Module, optimizer: Optimizer) -> RunState | None:
    """Restore what `save_state` wrote; None if there is nothing.

    Raises:
        ModelCorrupt: the file is damaged.
        ConfigError: it is of another head.
    """
    path = folder / STATE
    if not path.is_file():
        return None
    try:
        with safe_open(path, "pt") as file:
            values = json.loads(file.metadata()["state"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise ModelCorrupt(
            _("{path} is damaged ({error}); delete it to start anew").format(path=path, error=error)
        ) from error
    state = RunState(**(values | {"marks": [Mark(**mark) for mark in values["marks"]]}))
    for name, parameter in module.named_parameters():
        given = tensors.get(f"weight.{name}")
        if given is None or given.shape != parameter.shape:
            raise ConfigError(
                _(
                    "{path} has no {name} {shape}: it is of another head. Give another output "
                    "folder or delete it."
                ).format(path=path, name=name, shape=list(parameter.shape))
            )
        with torch.no_grad():
            parameter.copy_(given)
    kept = {name: tensor for name, tensor in tensors.items() if name.startswith("optimizer.")}
    optimizer.restore({name.removeprefix("optimizer."): kept[name] for name in kept})
    return state
