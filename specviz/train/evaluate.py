"""Acceptance length on held-out text, exact for greedy decoding without decoding anything."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from specviz.train.batches import collate
from specviz.train.corpus import Example
from specviz.train.course import Course
from specviz.train.features import Source


@dataclass(slots=True)
class Acceptance:
    """Counts of rounds; E[L] includes the target's own token of each."""

    rounds: int = 0
    tokens: int = 0
    by_position: list[int] = field(default_factory=list)  # rounds that accepted draft j

    @property
    def length(self) -> float:
        """E[L]: committed tokens per round."""
        return self.tokens / self.rounds if self.rounds else 0.0

    def add(self, other: "Acceptance") -> None:
        """Count the rounds of `other` too."""
        self.rounds += other.rounds
        self.tokens += other.tokens
        missing = len(other.by_position) - len(self.by_position)
        self.by_position += [0] * missing
        for position, count in enumerate(other.by_position):
            self.by_position[position] += count


def walk(hits: Tensor, prompt_length: int, length: int) -> Acceptance:
    """Decode a greedy text with drafts known to be right or wrong.

    hits [length, depth], bool, as of `Course.hits`. From the last committed token i the round
    accepts the leading right drafts, a of them, and the next begins at i + a + 1.
    """
    depth = hits.shape[-1]
    accepted = hits.int().cumprod(dim=-1).sum(dim=-1).tolist()
    found, at = Acceptance(by_position=[0] * depth), prompt_length - 1
    while at < length - 1:
        kept = min(accepted[at], length - 1 - at)
        committed = min(kept + 1, length - 1 - at)
        found.rounds += 1
        found.tokens += committed
        for position in range(kept):
            found.by_position[position] += 1
        at += committed
    return found


def held_out(examples: Sequence[Example], most: int) -> list[int]:
    """Return up to `most` examples to measure on: held out, greedy, spread over the corpus."""
    found = [i for i, e in enumerate(examples) if e.held_out and e.greedy and len(e.response) > 1]
    if len(found) <= most:
        return found
    return [found[i * len(found) // most] for i in range(most)]


def measure(
    course: Course, source: Source, batches: Iterable[Sequence[int]], device: torch.device
) -> dict[str, Acceptance]:
    """Walk through the examples of `batches`; return counts by class of prompt, and of "all"."""
    course.module.eval()
    found: defaultdict[str, Acceptance] = defaultdict(Acceptance)
    for indices in batches:
        hits = course.hits(collate(source, indices, device)).cpu()
        for row, index in enumerate(indices):
            example = source.examples[index]
            seen = walk(hits[row], example.prompt_length, len(example))
            found[example.kind].add(seen)
            found["all"].add(seen)
    course.module.train()
    return dict(found)
