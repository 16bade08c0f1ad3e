"""Time of one pass of a target over B sequences of 1 + D rows, part by part (modelled).

Each part takes as long as its slowest resource: bytes over bandwidth, FLOP over the matmul rate,
exponentials over their rate. What every layer costs however little it moves comes on top, as
`launch`. Kept out: sampling, the engine's own time, tile effects in linear layers. Sources:
roofline as in NVIDIA's co-design series, parts 1 and 2; experts as in arXiv:2505.19645.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from specviz.cost.hardware import Gpu, Math
from specviz.cost.kernels import Kernel, default_kernel
from specviz.cost.model_shape import AttentionLayers, ModelShape
from specviz.errors import ConfigError
from specviz.words import _

Limit = Literal["memory", "matmul", "exp"]
Part = Literal["weights", "experts", "attention", "recurrent"]
PARTS: tuple[Part, ...] = ("weights", "experts", "attention", "recurrent")

FREE = 0.02  # a part that takes no more than 2% longer is counted as free
MOST_ROWS = 512  # free rows are looked for up to here
OPERATIONS = 4  # per layer: projections, attention, output, feed-forward
REDUCTION = 10e-6  # seconds of a small all-reduce (aiconfigurator p2p_latency), two per layer
RECURRENT_ELEMENT = 4.0  # bytes: engines keep recurrent states in FP32
_MATH: dict[float, Math] = {4.0: "float32", 2.0: "bfloat16", 1.0: "fp8"}


@dataclass(frozen=True, slots=True)
class Cost:
    """One part of a pass: seconds by resource. The slowest decides."""

    memory: float = 0.0
    matmul: float = 0.0
    exp: float = 0.0

    @property
    def seconds(self) -> float:
        return max(self.memory, self.matmul, self.exp)

    @property
    def limit(self) -> Limit:
        """The resource that decides."""
        times: dict[Limit, float] = {
            "memory": self.memory,
            "matmul": self.matmul,
            "exp": self.exp,
        }
        return max(times, key=lambda kind: times[kind])


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass of the target, by part."""

    weights: Cost
    experts: Cost
    attention: Cost
    recurrent: Cost
    launch: float = 0.0

    @property
    def seconds(self) -> float:
        return self.launch + sum(self.part(name).seconds for name in PARTS)

    def part(self, name: Part) -> Cost:
        cost: Cost = getattr(self, name)
        return cost

    def share(self, name: Part) -> float:
        """The part's share of the time, 0 to 1."""
        return self.part(name).seconds / self.seconds


@dataclass(frozen=True, slots=True)
class Edges:
    """Rows per KV head up to which attention time should stay flat, each edge by itself.

    `tile`: more rows need a second block. `matmul`: the tensor cores take longer than the KV
    stream. `exp`: the softmax does. None: there is no such edge, or its rate is not known.
    """

    tile: int | None
    matmul: float
    exp: float | None


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A target on `tp` GPUs with B sequences of `context` cached tokens.

    Bytes are per element; None for weights takes what the checkpoint stores. The GPU's rates are
    used as they are: give `gpu.achieved` for what one really gets.
    """

    shape: ModelShape
    gpu: Gpu
    kernel: Kernel | None = None
    batch: int = 1
    context: int = 4096
    tp: int = 1
    weight_bytes: float | None = None
    kv_bytes: float = 2.0

    def __post_init__(self) -> None:
        for name, value in (("batch", self.batch), ("context", self.context), ("tp", self.tp)):
            if not 1 <= value <= 100_000_000:
                text = _("{name} is {value}; allowed: 1 or more")
                raise ConfigError(text.format(name=name, value=value))

    @cached_property
    def used_kernel(self) -> Kernel:
        """The kernel given, else the usual one of this part for this attention."""
        main = self.shape.main
        return self.kernel or default_kernel(self.gpu.family, main.kind if main else "gqa")

    @cached_property
    def _attention(self) -> tuple[AttentionLayers, ...]:
        return tuple(part.split(self.tp) for part in self.shape.attention)

    @cached_property
    def group(self) -> int:
        """G on one GPU."""
        return self.shape.group_size(self.tp)

    @property
    def _main(self) -> AttentionLayers:
        if not self._attention:
            self.shape.group_size()  # says that there is no attention layer
        return self._attention[0]

    def at(self, *, batch: int | None = None, context: int | None = None) -> "Deployment":
        """Return the same deployment at another batch or context."""
        return replace(self, batch=batch or self.batch, context=context or self.context)

    @property
    def memory(self) -> float:
        """Bytes on one GPU: its share of the weights, and the cache of all sequences."""
        return self.weight_memory + self.batch * self.cache_per_sequence

    @property
    def weight_memory(self) -> float:
        """Bytes of weights on one GPU."""
        s, experts = self.shape, self.shape.experts
        dense = (s.dense + s.embedding) * (self.weight_bytes or s.weight_bytes)
        routed = experts.count * experts.params * experts.layers if experts else 0
        return (dense + routed * (self.weight_bytes or s.expert_bytes)) / self.tp

    @property
    def cache_per_sequence(self) -> float:
        """Bytes of cache of one sequence on one GPU."""
        return sum(
            part.count * part.kv_width * part.seen(self.context) * self.kv_bytes
            for part in self._attention
        )

    def forward(self, tokens: int) -> Pass:
        """Return the pass over 1 + D = `tokens` rows per sequence."""
        return Pass(
            self._weights(tokens),
            self._experts(tokens),
            self._attend(tokens),
            self._recur(tokens),
            self.layer_seconds * self.shape.layers,
        )

    @property
    def layer_seconds(self) -> float:
        """What a layer takes at least: its operations and, over several GPUs, two reductions."""
        reduce = 2 * REDUCTION if self.tp > 1 else 0.0
        return OPERATIONS * self.gpu.op_seconds + reduce

    def verify_ratio(self, draft_length: int) -> float:
        """v(D): time of a pass over 1 + D rows / over one row."""
        return self.forward(1 + draft_length).seconds / self.forward(1).seconds

    def _weights(self, tokens: int) -> Cost:
        element = self.weight_bytes or self.shape.weight_bytes
        params, rows = self.shape.dense / self.tp, self.batch * tokens
        return Cost(params * element / self.gpu.bandwidth, 2 * params * rows / self._rate(element))

    def _experts(self, tokens: int) -> Cost:
        experts = self.shape.experts
        if experts is None:
            return Cost()
        rows, element = self.batch * tokens, self.weight_bytes or self.shape.expert_bytes
        size = experts.params * experts.layers / self.tp
        return Cost(
            experts.active(rows) * size * element / self.gpu.bandwidth,
            2 * rows * experts.per_token * size / self._rate(element),
        )

    def _attend(self, tokens: int) -> Cost:
        memory = matmul = exp = 0.0
        for part in self._attention:
            layout = self.used_kernel.layout(part.group_size, tokens, part.head_dim)
            # Every block computes its empty rows too.
            cells = self.batch * part.count * part.kv_heads * layout.computed * self._seen(part)
            stream = self.batch * part.count * part.kv_width * self._seen(part) * self.kv_bytes
            memory += stream / self.gpu.bandwidth
            width = part.head_dim + part.value_dim
            matmul += 2 * cells * width / self._rate(max(1.0, self.kv_bytes))
            exp += cells / self.gpu.exps if self.gpu.exps else 0.0
        return Cost(memory, matmul, exp)

    def _recur(self, tokens: int) -> Cost:
        """Read the state, write one per row: a rejected draft must be undone."""
        s = self.shape
        moved = self.batch * s.recurrent_layers * s.state / self.tp * RECURRENT_ELEMENT
        return Cost(moved * (1 + tokens) / self.gpu.bandwidth)

    def _seen(self, part: AttentionLayers) -> int:
        return part.seen(self.context)

    def _rate(self, element: float) -> float:
        return self.gpu.rate(_MATH.get(element, "fp4" if element < 1 else "bfloat16"))

    def edges(self) -> Edges:
        """Return the three edges of the layers that see the whole context.

        FLOP per byte of a KV token is 2 M / e for M rows, so the matmul edge is
        peak / bandwidth * e / 2; MLA multiplies a latent it reads once, twice.
        """
        main = self._main
        per_row = 2 * (main.head_dim + main.value_dim) * main.kv_heads
        stream = main.kv_width * self.kv_bytes / self.gpu.bandwidth
        matmul = stream * self._rate(max(1.0, self.kv_bytes)) / per_row
        exp = stream * self.gpu.exps / main.kv_heads if self.gpu.exps else None
        return Edges(self.used_kernel.edge(main.head_dim), matmul, exp)

    def free_rows(self, part: Part) -> int | None:
        """Most rows per sequence (1 + D) that take the part at most 2% longer than one row.

        None: the model has no such part. `MOST_ROWS` means so many or more.
        """
        seconds: Callable[[int], float] = lambda q: self.forward(q).part(part).seconds  # noqa: E731
        if seconds(1) == 0:
            return None
        allowed = (1 + FREE) * seconds(1)
        low, high = 1, MOST_ROWS + 1  # seconds(low) is allowed; time never falls with rows
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if seconds(middle) <= allowed else (low, middle)
        return low
