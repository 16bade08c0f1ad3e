"""What drafting D tokens costs, from the shape of a drafter and the load (modelled)."""

from collections.abc import Callable
from dataclasses import dataclass

from specviz.cost.model_shape import ModelShape
from specviz.cost.roofline import OPERATIONS, Deployment
from specviz.words import _

LAYER = 13  # parameters of one dense decoder layer / hidden size squared, as in Llama and Qwen
BLOCK_LAYERS = 5  # DFlash, arXiv:2602.06036; DSpark has the same
MARKOV_RANK = 256  # of the DSpark head
EAGLE_VOCAB = 32_000  # reduced vocabulary of EAGLE-3 heads
LOOKUP_SECONDS = 30e-6  # on the host
# An external draft model, where none is named: this share of the parameters one token uses.
EXTERNAL_SHARE, EXTERNAL_LAYERS = 1 / 20, 1 / 2


@dataclass(frozen=True, slots=True)
class Drafter:
    """A drafter as the cost model sees it."""

    layers: float
    params: float  # read by one pass, output head included
    kv_share: float  # of its layers' cache, 1 = as wide as the target's


@dataclass(frozen=True, slots=True)
class Drafting:
    """Seconds of drafting as a function of D for one scheme on one deployment."""

    scheme: str
    place: Deployment
    external: ModelShape | None = None

    def seconds(self, length: int) -> float:
        """Return the seconds of drafting `length` tokens for every sequence of the batch."""
        if length < 1:
            return 0.0
        one: Callable[[int], float] = lambda rows: self._pass(self._drafter(), rows)  # noqa: E731
        if self.scheme in ("ngram", "suffix"):
            return LOOKUP_SECONDS
        if self.scheme == "draft_model" and self.external is not None:
            draft = Deployment(
                shape=self.external,
                gpu=self.place.gpu,
                batch=self.place.batch,
                context=self.place.context,
                tp=self.place.tp,
                kv_bytes=self.place.kv_bytes,
            )
            return length * draft.forward(1).seconds
        if self.scheme == "dflash":
            return one(1 + length)
        if self.scheme == "dspark":
            return one(1 + length) + length * self._markov()
        return length * one(1)

    def ratio(self, length: int) -> float:
        """Drafting in units of one plain pass."""
        return self.seconds(length) / self.place.forward(1).seconds

    def _drafter(self) -> Drafter:
        shape = self.place.shape
        layer, head = LAYER * shape.hidden**2, shape.hidden * shape.vocab
        if self.scheme in ("dflash", "dspark"):
            return Drafter(BLOCK_LAYERS, BLOCK_LAYERS * layer + head, 1)
        if self.scheme == "eagle3":
            small = shape.hidden * min(shape.vocab, EAGLE_VOCAB)
            return Drafter(1, layer + small, 1)
        if self.scheme == "mtp":
            own = (shape.active_params - head) / max(1, shape.layers)
            return Drafter(1, own + 2 * shape.hidden**2 + head, 1)
        layers = shape.layers * EXTERNAL_LAYERS
        return Drafter(layers, shape.active_params * EXTERNAL_SHARE, EXTERNAL_LAYERS)

    def _pass(self, drafter: Drafter, rows: int) -> float:
        """One pass of the drafter over `rows` rows per sequence: read it, compute, attend."""
        place = self.place
        element = place.weight_bytes or place.shape.weight_bytes
        size, tokens = drafter.params / place.tp, place.batch * rows
        rate = place.gpu.rate("bfloat16" if element >= 2 else "fp8")
        work = max(size * element / place.gpu.bandwidth, 2 * size * tokens / rate)
        cache = self._cache() * min(drafter.layers, 8) * drafter.kv_share
        return work + cache / place.gpu.bandwidth + place.layer_seconds * drafter.layers

    def _cache(self) -> float:
        """Bytes of cache of the whole batch in one layer that sees everything."""
        place, main = self.place, self.place.shape.main
        if main is None:
            return 0.0
        width = main.split(place.tp).kv_width
        return place.batch * place.context * width * place.kv_bytes

    def _markov(self) -> float:
        """Seconds of one step of the Markov head: rank x vocabulary, and its operations."""
        place = self.place
        moved = MARKOV_RANK * place.shape.vocab * 2.0 / place.tp
        return moved / place.gpu.bandwidth + place.gpu.op_seconds * OPERATIONS / 2


def assumption(scheme: str, external: ModelShape | None = None) -> str:
    """Say in words what the drafter was taken to be."""
    if scheme == "draft_model" and external is not None:
        return _("{name}, D passes").format(name=external.name)
    return {
        "draft_model": _("a dense model of 1/20 of the parameters a token uses, D passes"),
        "eagle3": _("one layer and an output head of 32,000 tokens, D passes"),
        "mtp": _("one layer like the target's and its output head, D passes"),
        "dflash": _("5 layers and the target's output head, one pass"),
        "dspark": _("5 layers and the target's output head, one pass, then a Markov head D times"),
        "ngram": _("a search on the host"),
        "suffix": _("a search on the host"),
    }[scheme]
