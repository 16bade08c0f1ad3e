"""Other programs that decode the same model, measured in the same process."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Protocol, cast

import torch
from torch import Tensor

from specviz.errors import ConfigError
from specviz.words import _

if TYPE_CHECKING:
    from transformers import GenerationConfig

PEERS = ("transformers",)


@dataclass(frozen=True, slots=True)
class Decoded:
    """One decode: its output and what it took, in seconds.

    `total` includes reading the prompt. `per_token` does not: it is the mean over the tokens
    after the first, which comes out of the same pass as the prompt in most programs.
    """

    tokens: tuple[int, ...]
    total: float
    per_token: float

    @property
    def rate(self) -> float:
        """Tokens per second of decoding, prompt excluded."""
        return 1 / self.per_token

    @property
    def rate_with_prefill(self) -> float:
        """Tokens per second from the start, prompt included."""
        return len(self.tokens) / self.total


class Peer(Protocol):
    """A program that decodes greedily, to a fixed number of tokens."""

    @property
    def name(self) -> str: ...

    def decode(self, prompt: Sequence[int], tokens: int) -> Decoded: ...


class Generating(Protocol):
    """What is used of a model of transformers."""

    @property
    def device(self) -> torch.device: ...

    @property
    def generation_config(self) -> "GenerationConfig": ...

    def generate(
        self, inputs: Tensor, *, attention_mask: Tensor, max_new_tokens: int, streamer: "_Clock"
    ) -> Tensor: ...


class _Clock:
    """A streamer of `generate`: notes when each token arrived. The prompt arrives first."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def put(self, value: Tensor) -> None:
        self.times.append(perf_counter())

    def end(self) -> None:
        pass


class TransformersPeer:
    """`transformers.generate`, greedy, never stopping early, with its default dynamic cache."""

    name = "transformers"

    def __init__(self, model: Generating) -> None:
        self.model = model
        settings = model.generation_config
        # No end token and no processors: every step is one forward pass and an argmax.
        settings.eos_token_id = None
        settings.pad_token_id = 0
        settings.do_sample = False
        settings.temperature = settings.top_p = settings.top_k = None
        settings.repetition_penalty = 1.0

    @classmethod
    def load(
        cls, folder: Path | str, device: torch.device, dtype: torch.dtype
    ) -> "TransformersPeer":
        """Load the same weights, in the same dtype, on the same device."""
        from transformers import AutoModelForCausalLM
        from transformers.utils import logging

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # ours is the one shown
        model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype, trust_remote_code=False, use_safetensors=True
        )
        torch.nn.Module.to(model, device)  # from_pretrained has called eval
        return cls(cast(Generating, model))

    def decode(self, prompt: Sequence[int], tokens: int) -> Decoded:
        ids = torch.tensor([list(prompt)], device=self.model.device)
        clock = _Clock()
        began = perf_counter()
        with torch.inference_mode():
            out = self.model.generate(
                ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens, streamer=clock
            )
        total = perf_counter() - began
        output = tuple(out[0, len(prompt) :].tolist())
        first, last = clock.times[1], clock.times[-1]
        return Decoded(output, total, (last - first) / max(1, len(output) - 1))


def check_peers(names: Sequence[str]) -> None:
    """Refuse a peer nobody can measure.

    Raises:
        ConfigError: A name is unknown; the message lists the names.
    """
    for name in names:
        if name not in PEERS:
            raise ConfigError(
                _("cannot measure against {name!r}; allowed: {peers}").format(
                    name=name, peers=", ".join(PEERS)
                )
            )
