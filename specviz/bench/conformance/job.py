"""What both engines are asked to do, and what either counted."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from specviz.errors import ModelCorrupt
from specviz.words import _


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Greedy decoding of some prompts with one scheme; folders are read by both engines."""

    scheme: str
    target: Path
    drafter: Path | None  # head or draft model; None where the text alone drafts
    draft_length: int
    tokens: int
    prompts: tuple[tuple[int, ...], ...]
    ngram: tuple[int, int] = (1, 3)
    dtype: str = "bfloat16"  # of both engines; float32 rounds so little that drafts are the same

    def speculative(self) -> dict[str, object] | None:
        """Return vLLM's `speculative_config`, None for plain decoding."""
        if self.scheme == "none":
            return None
        config: dict[str, object] = {
            "method": self.scheme,
            "num_speculative_tokens": self.draft_length,
        }
        if self.scheme == "ngram":
            low, high = self.ngram
            return config | {"prompt_lookup_min": low, "prompt_lookup_max": high}
        return config | {"model": str(self.drafter)}

    def write(self, path: Path, context: int) -> None:
        """Write what the script that runs in vLLM reads; `context` is the most positions."""
        job = {
            "target": str(self.target),
            "context": context,
            "dtype": self.dtype,
            "tokens": self.tokens,
            "prompts": self.prompts,
            "speculative": self.speculative(),
        }
        path.write_text(json.dumps(job), "utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """One prompt as vLLM counts: rounds without a draft are none, the first token has none."""

    output: tuple[int, ...]
    rounds: int = 0
    drafted: int = 0
    accepted: int = 0  # also past an end token, and past the last token asked for
    by_position: tuple[int, ...] = ()


def read_counts(path: Path) -> tuple[Counts, ...]:
    """Read the counters of vLLM.

    Raises:
        ModelCorrupt: the file is not what the script writes.
    """
    try:
        results = json.loads(path.read_text("utf-8"))["results"]
        return tuple(
            Counts(
                output=tuple(result["output"]),
                rounds=result.get("drafts", 0),
                drafted=result.get("draft_tokens", 0),
                accepted=result.get("accepted_tokens", 0),
                by_position=tuple(result.get("accepted_tokens_per_pos", ())),
            )
            for result in results
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelCorrupt(
            _("{path} holds no counters of vLLM: {error}").format(path=path, error=error)
        ) from error


def acceptance_length(counts: Sequence[Counts]) -> float | None:
    """E[L] as vLLM logs it, over rounds with a draft; None where there was no such round."""
    rounds = sum(c.rounds for c in counts)
    return 1 + sum(c.accepted for c in counts) / rounds if rounds else None
