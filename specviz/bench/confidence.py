"""What a DSpark head's confidence promises against what comes true, and the repair of it."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from specviz.bench.drafts import listened_to
from specviz.config import DrafterOptions, SamplingParams, SessionConfig
from specviz.drafters.dspark import DSparkDrafter
from specviz.errors import ConfigError
from specviz.heads.base import Head
from specviz.heads.dspark import DSparkHead
from specviz.heads.dspark_calibration import calibrate, calibration_error
from specviz.heads.dspark_schedule import CALIBRATION
from specviz.models.load import Loaded
from specviz.models.store import Progress, silent
from specviz.session import DecodeSession
from specviz.words import _

SUREST = 1 - 1e-7  # keeps logits finite


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Temperatures, one for each slot, and how far chances to survive were and are off.

    Errors are expected calibration errors, one for each slot, on the blocks that were fitted.
    """

    temperatures: tuple[float, ...]
    blocks: int
    survived: tuple[float, ...]  # share of blocks of which the slot was accepted
    error_before: tuple[float, ...]
    error_after: tuple[float, ...]

    def write(self, folder: Path) -> Path:
        """Write it beside the head, where drafting reads it."""
        file = folder / CALIBRATION
        file.write_text(json.dumps(asdict(self), indent=2) + "\n", "utf-8")
        return file


def check_confident(head: Head | Loaded | None) -> DSparkHead:
    """Return `head`.

    Raises:
        ConfigError: it has no confidence head.
    """
    if isinstance(head, DSparkHead) and head.confidence_head is not None:
        return head
    raise ConfigError(_("this head has no confidence head; only DSpark heads that do are fitted"))


def observe(
    loaded: Loaded,
    head: DSparkHead,
    prompts: Sequence[Sequence[int]],
    tokens: int,
    progress: Progress = silent,
) -> tuple[Tensor, Tensor]:
    """Decode greedily with nothing cut; return logits [blocks, slots] and accepted [blocks].

    Blocks cut short, by the end of a text or by an end token in the draft, are left out.

    Raises:
        ConfigError: no block was whole.
    """
    target, most = loaded.target, head.config.most
    options, ends = DrafterOptions(), frozenset(target.config.eos)
    config = SessionConfig(scheme="dspark", draft_length=most, detail="off")
    chances: list[tuple[float, ...]] = []
    accepted: list[int] = []
    for done, prompt in enumerate(prompts):
        progress(_("decoding held-out texts"), done / len(prompts))
        drafter = DSparkDrafter(head, target, options, ends)
        params = SamplingParams(max_tokens=tokens)
        for event in DecodeSession(listened_to(target, head), drafter, prompt, params, config):
            if len(event.draft) == len(event.evidence.confidence) == most:
                chances.append(event.evidence.confidence)
                accepted.append(len(event.path) + len(event.past_end))
    if not chances:
        raise ConfigError(_("no whole block was drafted; give more or longer texts"))
    sure = torch.tensor(chances, dtype=torch.float64)
    return sure.clamp(1 - SUREST, SUREST).logit(), torch.tensor(accepted)


def fit(logits: Tensor, accepted: Tensor) -> Calibration:
    """Fit a temperature to each slot of logits [blocks, slots], drafts accepted [blocks]."""
    found = calibrate(logits, accepted)
    slots = range(logits.shape[1])
    survived = [(accepted > slot).double() for slot in slots]

    def errors(temperatures: Sequence[float]) -> tuple[float, ...]:
        chances = (logits / torch.tensor(temperatures)).sigmoid().cumprod(dim=1)
        return tuple(calibration_error(chances[:, slot], survived[slot]) for slot in slots)

    return Calibration(
        temperatures=found,
        blocks=len(accepted),
        survived=tuple(float(one.mean()) for one in survived),
        error_before=errors([1.0 for _slot in slots]),
        error_after=errors(found),
    )
