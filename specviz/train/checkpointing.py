"""The state of a training run in one file: a killed run goes on as if it had not been."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from specviz.errors import ConfigError, ModelCorrupt

STATE = "state.safetensors"
MOMENTS = ("exp_avg", "exp_avg_sq")


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


def save_state(
    folder: Path, state: RunState, module: nn.Module, optimizer: torch.optim.Optimizer
) -> None:
    """Write weights, moments and counters; the old file stays until the new one is whole."""
    tensors: dict[str, Tensor] = {}
    for name, parameter in module.named_parameters():
        tensors[f"weight.{name}"] = parameter.detach()
        moments = optimizer.state.get(parameter, {})
        for moment in MOMENTS:
            if moment in moments:
                tensors[f"{moment}.{name}"] = moments[moment]
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / (STATE + ".partial")
    whole = {name: tensor.contiguous().cpu() for name, tensor in tensors.items()}
    save_file(whole, partial, metadata={"state": json.dumps(asdict(state))})
    partial.replace(folder / STATE)


def load_state(
    folder: Path, module: nn.Module, optimizer: torch.optim.Optimizer
) -> RunState | None:
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
        raise ModelCorrupt(f"{path} is damaged ({error}); delete it to start anew") from error
    state = RunState(**(values | {"marks": [Mark(**mark) for mark in values["marks"]]}))
    for name, parameter in module.named_parameters():
        given = tensors.get(f"weight.{name}")
        if given is None or given.shape != parameter.shape:
            raise ConfigError(
                f"{path} has no {name} {list(parameter.shape)}: it is of another head. Give "
                "another output folder or delete it."
            )
        with torch.no_grad():
            parameter.copy_(given)
        _restore_moments(optimizer, parameter, name, tensors, state.step)
    return state


def _restore_moments(
    optimizer: torch.optim.Optimizer,
    parameter: nn.Parameter,
    name: str,
    tensors: Mapping[str, Tensor],
    step: int,
) -> None:
    if f"{MOMENTS[0]}.{name}" not in tensors:
        return
    moments = {m: tensors[f"{m}.{name}"].to(parameter.device) for m in MOMENTS}
    optimizer.state[parameter] = {"step": torch.tensor(float(step)), **moments}
