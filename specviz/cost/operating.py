"""Operating points: throughput per GPU against speed per user, over the batch (modelled).

The two ratios people quote come from the same two curves: at a fixed concurrency (same batch) and
at a fixed interactivity (same tokens/s per user). At a high interactivity plain decoding only
manages tiny batches, so the second ratio explodes where the first stays modest.
"""

import math
from dataclasses import dataclass
from functools import cached_property

from specviz.cost.drafting import Drafting
from specviz.cost.model_shape import ModelShape
from specviz.cost.roofline import Deployment
from specviz.cost.speedup import Profile

MOST_BATCH = 4096
MEMORY = 0.9  # share of the GPU's memory that an engine fills


@dataclass(frozen=True, slots=True)
class Operating:
    """One batch of one scheme."""

    batch: int
    per_user: float  # tokens/s of one sequence
    per_gpu: float  # tokens/s of all sequences / GPUs

    @property
    def seconds_per_token(self) -> float:
        return 1 / self.per_user


@dataclass(frozen=True)
class Plan:
    """A scheme with a fixed D on a deployment; `draft_length` 0 is plain decoding."""

    place: Deployment
    scheme: str = "none"
    draft_length: int = 0
    profile: Profile | None = None
    draft_model: ModelShape | None = None

    @cached_property
    def expected_length(self) -> float:
        return self.profile.expected_length(self.draft_length) if self.profile else 1.0

    def round_seconds(self, batch: int) -> float:
        """Seconds of one round of the whole batch: drafting and the pass over 1 + D rows."""
        place = self.place.at(batch=batch)
        drafting = Drafting(self.scheme, place, self.draft_model)
        drafted = drafting.seconds(self.draft_length) if self.draft_length else 0.0
        return drafted + place.forward(1 + self.draft_length).seconds

    def at(self, batch: int) -> Operating:
        """Return the point at one batch."""
        per_user = self.expected_length / self.round_seconds(batch)
        return Operating(batch, per_user, per_user * batch / self.place.tp)

    def most_batch(self) -> int:
        """Largest batch whose weights and cache fit the GPUs; 0 if the weights alone do not."""
        room = self.place.gpu.memory * MEMORY - self.place.weight_memory
        each = self.place.cache_per_sequence
        fits = int(room // each) if each else MOST_BATCH
        return max(0, min(MOST_BATCH, fits))


def batches(most: int) -> tuple[int, ...]:
    """Return batch sizes for a curve, 1, 2, 3, 4, 6, 8, 12, ... up to and with `most`."""
    steps = sorted({round(2 ** (k / 2)) for k in range(2 * 13)})
    return tuple(b for b in (*steps, most) if 1 <= b <= most) if most else ()


def points(plan: Plan) -> tuple[Operating, ...]:
    """Return the curve of a plan, from batch 1 to what memory holds."""
    return tuple(plan.at(batch) for batch in dict.fromkeys(batches(plan.most_batch())))


@dataclass(frozen=True, slots=True)
class Ratios:
    """A scheme against plain decoding, read in both ways.

    `interactivity`: throughput per GPU at the same tokens/s per user; None where plain decoding
    cannot reach that speed at any batch. `concurrency`: at the same batch.
    """

    per_user: float
    batch: int
    plain_at_speed: Operating | None
    scheme_at_speed: Operating | None
    plain_at_batch: Operating
    scheme_at_batch: Operating

    @property
    def interactivity(self) -> float | None:
        plain, scheme = self.plain_at_speed, self.scheme_at_speed
        return scheme.per_gpu / plain.per_gpu if plain and scheme else None

    @property
    def concurrency(self) -> float:
        return self.scheme_at_batch.per_gpu / self.plain_at_batch.per_gpu


def at_speed(plan: Plan, per_user: float) -> Operating | None:
    """Return the largest batch at which every user still gets `per_user` tokens/s.

    None: not even a batch of 1 does. Speed per user never rises with the batch, so halving finds
    it.
    """
    most = plan.most_batch()
    if most < 1 or plan.at(1).per_user < per_user:
        return None
    low, high = 1, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if plan.at(middle).per_user >= per_user else (low, middle)
    return plan.at(low)


def ratios(plain: Plan, scheme: Plan, per_user: float, batch: int) -> Ratios:
    """Read both ratios: at `per_user` tokens/s, and at `batch` sequences."""
    return Ratios(
        per_user=per_user,
        batch=batch,
        plain_at_speed=at_speed(plain, per_user),
        scheme_at_speed=at_speed(scheme, per_user),
        plain_at_batch=plain.at(batch),
        scheme_at_batch=scheme.at(batch),
    )


@dataclass(frozen=True, slots=True)
class Fleet:
    """GPUs and cost for a traffic at a speed every user must get. None: it cannot be met."""

    point: Operating | None
    gpus: int | None
    per_hour: float | None  # in the currency of the price given
    per_million: float | None  # tokens


def fleet(plan: Plan, tokens_per_second: float, per_user: float, price: float) -> Fleet:
    """Return what it takes to serve `tokens_per_second` at `per_user` tokens/s for each user.

    `price` is per GPU and hour. GPUs come in groups of the tensor parallelism.
    """
    point = at_speed(plan, per_user)
    if point is None:
        return Fleet(None, None, None, None)
    group = point.per_gpu * plan.place.tp
    gpus = max(1, math.ceil(tokens_per_second / group)) * plan.place.tp
    per_hour = gpus * price
    return Fleet(point, gpus, per_hour, per_hour / (tokens_per_second * 3600) * 1e6)
