"""Muon for matrices inside a head, AdamW for its tables, norms and biases."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from specviz.train.recipe import Kind

TABLES = ("lm_head", "embed_tokens", "markov_w1", "markov_w2", "mask_embedding")


class Optimizer:
    """One or two optimizers behind one step and one rate."""

    def __init__(
        self, module: nn.Module, kind: Kind, betas: tuple[float, float], decay: float
    ) -> None:
        """Take over the trained parameters of `module`."""
        named = [(n, p) for n, p in module.named_parameters() if p.requires_grad]
        inner = [p for n, p in named if kind == "muon" and _is_inner(n, p)]
        taken = {id(p) for p in inner}
        rest = [p for _, p in named if id(p) not in taken]
        groups: list[dict[str, object]] = [
            {"params": [p for p in rest if p.dim() > 1], "weight_decay": decay},
            {"params": [p for p in rest if p.dim() <= 1], "weight_decay": 0.0},
        ]
        self._parts: list[torch.optim.Optimizer] = [
            torch.optim.AdamW(groups, betas=betas, fused=True)
        ]
        if inner:
            # scaled so that the rates and decays of AdamW hold
            self._parts.append(
                torch.optim.Muon(inner, weight_decay=decay, adjust_lr_fn="match_rms_adamw")
            )
        self._names = {id(p): n for n, p in named}

    def step(self, rate: float) -> None:
        """Move all parameters and forget their gradients."""
        for part in self._parts:
            for group in part.param_groups:
                group["lr"] = rate
            part.step()
            part.zero_grad(set_to_none=True)

    def tensors(self) -> dict[str, Tensor]:
        """Return what is remembered between steps, by names to store it under."""
        return {
            f"{key}.{name}": value
            for name, state in self._states()
            for key, value in state.items()
            if isinstance(value, Tensor)
        }

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Take back what `tensors` returned."""
        for part in self._parts:
            for group in part.param_groups:
                for parameter in group["params"]:
                    self._restore(part, parameter, tensors)

    def _restore(
        self, part: torch.optim.Optimizer, parameter: nn.Parameter, tensors: dict[str, Tensor]
    ) -> None:
        end = "." + self._names[id(parameter)]
        for full, value in tensors.items():
            key = full.removesuffix(end)
            if key != full and "." not in key:
                # the count of AdamW's steps stays where it was made; moments lie with the weights
                place = value if key == "step" else value.to(parameter.device)
                part.state[parameter][key] = place.clone()

    def _states(self) -> Iterator[tuple[str, dict[str, object]]]:
        for part in self._parts:
            for parameter, state in part.state.items():
                yield self._names[id(parameter)], state


def _is_inner(name: str, parameter: nn.Parameter) -> bool:
    return parameter.dim() == 2 and not any(table in name for table in TABLES)
