"""Everything that decides a training run, checked when it is made."""

from dataclasses import asdict, dataclass, replace
from typing import Literal

from specviz.config import require
from specviz.errors import ConfigError
from specviz.words import _

Kind = Literal["adamw", "muon"]
KINDS: tuple[Kind, ...] = ("adamw", "muon")
SCHEMES = ("draft_model", "eagle3", "mtp", "dflash", "dspark")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Settings of a run; `default_recipe` has those of each scheme."""

    scheme: str
    steps: int = 4000
    batch_tokens: int = 2048  # padded tokens of a batch
    rate: float = 1e-3  # peak learning rate
    warmup: int = 100
    optimizer: Kind = "adamw"  # or "muon", for the matrices between the tables
    weight_decay: float = 0.01
    clip: float = 1.0  # largest gradient norm
    betas: tuple[float, float] = (0.9, 0.95)
    seed: int = 0
    draft_vocab: int = 8192
    autocast: bool = True  # bfloat16 for what is safe in it
    measure_every: int = 200  # steps between held-out E[L]
    measure_on: int = 48  # held-out texts
    save_every: int = 50  # steps between states to resume from
    depth: int = 4  # drafts per round when E[L] is measured
    # recurrent heads
    unrolled: int = 3  # steps of the training-time test
    step_decay: float = 0.8
    hard: float = 0.0  # share of the true token in soft labels
    kv_heads: int | None = None
    intermediate: int | None = None
    # block heads and draft model
    layers: int = 2
    block: int = 6  # rows of a block; further slots are all but never reached
    anchors: int = 64  # blocks per text
    first_row: int = 1  # of a block that drafts: 0 is the anchor's own, 1 the first mask
    slot_weights: str = "decay"  # or "pace"
    gamma: float = 2.0  # of the decay
    rank: int = 32  # of the Markov head

    def __post_init__(self) -> None:
        if self.scheme not in SCHEMES:
            raise ConfigError(
                _("scheme is {scheme!r}; trained are {schemes}").format(
                    scheme=self.scheme, schemes=", ".join(SCHEMES)
                )
            )
        for name in ("steps", "batch_tokens", "draft_vocab", "measure_every", "measure_on"):
            _at_least_one(name, getattr(self, name))
        for name in ("save_every", "depth", "unrolled", "layers", "anchors"):
            _at_least_one(name, getattr(self, name))
        require(self.rate > 0, "rate", self.rate, _("above 0"))
        require(self.clip > 0, "clip", self.clip, _("above 0"))
        require(0 <= self.hard <= 1, "hard", self.hard, _("0 to 1"))
        require(self.block >= 2, "block", self.block, _("2 or more"))
        require(self.first_row in (0, 1), "first_row", self.first_row, _("0 or 1"))
        require(self.optimizer in KINDS, "optimizer", self.optimizer, ", ".join(KINDS))
        weights = ("decay", "pace")
        require(self.slot_weights in weights, "slot_weights", self.slot_weights, "decay, pace")

    def as_dict(self) -> dict[str, object]:
        """Return the settings as JSON holds them."""
        return {**asdict(self), "betas": list(self.betas)}


def default_recipe(scheme: str) -> Recipe:
    """Return the settings a scheme is trained with unless told otherwise.

    Raises:
        ConfigError: the scheme is not one that is trained.
    """
    recipe = Recipe(scheme=scheme)
    if scheme == "mtp":
        return replace(recipe, step_decay=0.6, hard=0.5)
    if scheme in ("dflash", "dspark"):
        first = 1 if scheme == "dflash" else 0
        return replace(recipe, batch_tokens=1024, hard=0.5, first_row=first, intermediate=1024)
    if scheme == "draft_model":
        return replace(recipe, layers=3)
    return recipe


def _at_least_one(name: str, value: int) -> None:
    require(isinstance(value, int) and value >= 1, name, value, _("1 or more"))
