"""How the target answers prompts to train on: one by one with drafts, or many in one batch."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, cast

import torch
from torch import Tensor

from specviz.config import SamplingParams, SessionConfig
from specviz.drafters import make_drafter
from specviz.models.checkpoint import Checkpoint
from specviz.models.hf_load import read_causal_lm
from specviz.models.load import Loaded, find
from specviz.session import DecodeSession

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Answerer(Protocol):
    """Whatever continues prompts with the target's own tokens."""

    def answer(
        self, prompts: Sequence[tuple[int, ...]], params: Sequence[SamplingParams]
    ) -> list[tuple[int, ...]]:
        """Return the output of each prompt, its end token included where it came to one."""
        ...


class OneByOne:
    """Our own loop, with n-gram drafts, which change the speed and not the text."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded

    def answer(
        self, prompts: Sequence[tuple[int, ...]], params: Sequence[SamplingParams]
    ) -> list[tuple[int, ...]]:
        config = SessionConfig(scheme="ngram", detail="off")
        outputs = []
        for prompt, wanted in zip(prompts, params, strict=True):
            drafter = make_drafter(config, self.loaded.target, self.loaded.tokenizer)
            session = DecodeSession(self.loaded.target, drafter, prompt, wanted, config)
            for _round in session:
                pass
            outputs.append(session.output)
        return outputs


class Together:
    """transformers' `generate` on the same weights: a batch costs little more than one prompt."""

    def __init__(self, loaded: Loaded) -> None:
        from transformers.utils import logging

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # ours is the one shown
        target = loaded.target
        checkpoint = Checkpoint(find(loaded.spec))
        model = read_causal_lm(checkpoint, loaded.spec, target.device, target.dtype)
        self.model = cast("PreTrainedModel", model)
        self.ends = list(target.config.eos)

    @torch.inference_mode()
    def answer(
        self, prompts: Sequence[tuple[int, ...]], params: Sequence[SamplingParams]
    ) -> list[tuple[int, ...]]:
        """See `Answerer`. Draws are of the batch: its first seed, its order, its padding."""
        if not prompts:
            return []
        ids, mask = _padded(prompts, self.model.device)
        with torch.random.fork_rng(devices=[] if ids.device.type == "cpu" else [ids.device]):
            torch.manual_seed(params[0].seed)
            out = self.model.generate(  # type: ignore[operator]  # a mixin's method, untyped
                ids,
                attention_mask=mask,
                max_new_tokens=max(wanted.max_tokens for wanted in params),
                do_sample=True,
                temperature=1.0,
                top_k=0,
                top_p=1.0,
                repetition_penalty=1.0,
                eos_token_id=self.ends or None,
                pad_token_id=0,
                logits_processor=[_Temperatures(params, ids.device)],
            )
        rows = out[:, ids.shape[1] :].tolist()
        return [self._cut(row, wanted) for row, wanted in zip(rows, params, strict=True)]

    def _cut(self, row: list[int], wanted: SamplingParams) -> tuple[int, ...]:
        kept = row[: wanted.max_tokens]
        ends = [at for at, token in enumerate(kept) if token in self.ends]
        return tuple(kept[: ends[0] + 1] if ends else kept)


class _Temperatures:
    """Divides the logits of each row by its own temperature; 0 leaves the largest only."""

    def __init__(self, params: Sequence[SamplingParams], device: torch.device) -> None:
        values = torch.tensor([[wanted.temperature] for wanted in params], device=device)
        self.greedy = values == 0
        self.values = values.masked_fill(self.greedy, 1.0)

    def __call__(self, ids: Tensor, scores: Tensor) -> Tensor:
        best = scores == scores.max(dim=-1, keepdim=True).values
        first = best & (best.cumsum(dim=-1) == 1)  # of a tie, as argmax does
        return (scores / self.values).masked_fill(self.greedy & ~first, -torch.inf)


def _padded(prompts: Sequence[tuple[int, ...]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Return ids [prompts, longest], padded on the left, and which of them are there."""
    longest = max(map(len, prompts))
    ids = [[0] * (longest - len(prompt)) + list(prompt) for prompt in prompts]
    mask = [[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device)
