"""What a model costs to run, as counts: layers, heads, parameters, bytes per cached token."""

from dataclasses import dataclass
from typing import Literal

from specviz.cost.kernels import Attention
from specviz.errors import ConfigError
from specviz.words import _

Span = Literal["full", "window"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionLayers:
    """Layers that attend alike. `kv_width`: elements one token adds to the cache of one layer."""

    kind: Attention
    span: Span
    count: int
    heads: int
    kv_heads: int  # 1 for MLA: all heads share the latent
    head_dim: int  # of the scores: elements of one key row
    value_dim: int
    kv_width: int
    window: int | None = None  # positions back a sliding-window layer sees

    @property
    def group_size(self) -> int:
        """G: query heads per KV head."""
        return self.heads // self.kv_heads

    def seen(self, context: int) -> int:
        """Cached tokens one query reads."""
        return min(context, self.window) if self.window else context

    def split(self, tp: int) -> "AttentionLayers":
        """The heads of one of `tp` GPUs: G stays until TP exceeds the KV heads, then falls."""
        heads, kv = -(-self.heads // tp), -(-self.kv_heads // tp)
        # what is replicated keeps its full width on every GPU
        width = self.kv_width if self.kind == "mla" else self.kv_width * kv // self.kv_heads
        return AttentionLayers(
            kind=self.kind,
            span=self.span,
            count=self.count,
            heads=heads,
            kv_heads=min(kv, heads),
            head_dim=self.head_dim,
            value_dim=self.value_dim,
            kv_width=width,
            window=self.window,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """Routed experts; a shared one counts among the dense parameters: every token uses it."""

    count: int
    per_token: int
    layers: int
    params: int  # of one expert in one layer

    def active(self, tokens: int) -> float:
        """Experts of one layer that `tokens` tokens load, E(1 - (1 - k/E)^T): uniform routing.

        Real routing is uneven and loads fewer (MoESD, arXiv:2505.19645).
        """
        unused: float = (1 - self.per_token / self.count) ** tokens
        return self.count * (1 - unused)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """Everything the cost model needs to know of a target."""

    name: str
    family: str  # model_type
    layers: int
    hidden: int
    vocab: int
    attention: tuple[AttentionLayers, ...]  # widest span first; empty for a purely recurrent model
    recurrent_layers: int = 0
    state: int = 0  # elements one sequence keeps per recurrent layer
    dense: int  # parameters every pass reads, output head included, token embedding not
    embedding: int  # parameters of the token embedding, 0 if the output head is the same
    experts: Experts | None = None
    own_draft_layers: int = 0  # MTP layers inside the checkpoint
    weight_bytes: float = 2.0  # per dense parameter, as published
    expert_bytes: float = 2.0
    tied: bool = False
    sparse: bool = False  # attention picks few of the cached tokens
    context: int | None = None  # most positions

    @property
    def params(self) -> int:
        """All parameters, MTP layers not counted."""
        experts = self.experts
        routed = experts.count * experts.params * experts.layers if experts else 0
        return self.dense + self.embedding + routed

    @property
    def active_params(self) -> int:
        """Parameters one token uses."""
        experts = self.experts
        used = experts.per_token * experts.params * experts.layers if experts else 0
        return self.dense + used

    @property
    def main(self) -> AttentionLayers | None:
        """The attention layers the tile rule is about: those that see the whole context."""
        return self.attention[0] if self.attention else None

    @property
    def attention_layers(self) -> int:
        return sum(part.count for part in self.attention)

    def group_size(self, tp: int = 1) -> int:
        """G of the full-attention layers on one of `tp` GPUs.

        Raises:
            ConfigError: the model has no attention layer, or `tp` is not 1 or more.
        """
        if tp < 1:
            raise ConfigError(_("tensor parallelism is {tp}; allowed: 1 or more").format(tp=tp))
        if self.main is None:
            text = _("{name} has no attention layer, so it has no G; choose another model")
            raise ConfigError(text.format(name=self.name))
        return self.main.split(tp).group_size

    def kv_bytes_per_token(self, element: float, context: int | None = None) -> float:
        """Cache bytes per token of context, all layers.

        With a `context` it is the mean at that length: windows keep only their own.
        """
        total = 0.0
        for part in self.attention:
            share = 1.0 if not context else part.seen(context) / context
            total += part.count * part.kv_width * element * share
        return total
