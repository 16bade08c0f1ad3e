"""The G of a target turned: exactly, by repeating its KV heads, or for its time alone."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from specviz.errors import UnsupportedModel
from specviz.models.layers import HeadNorm, Linear
from specviz.models.llama import LlamaTarget
from specviz.models.llama_weights import LayerWeights, LlamaWeights
from specviz.models.target import Target
from specviz.words import _

Index = list[int]


class Repeated(LlamaTarget):
    """A target with each KV head repeated. It reads prompts through the target itself.

    A pass over a long prompt rounds differently when its products have other sizes, and in bf16
    that is enough to turn a near tie. So keys and values of the prompt are the target's own,
    repeated; passes over few rows come out in the same bits by themselves.
    """

    def __init__(self, source: LlamaTarget, kept: Index, weights: LlamaWeights) -> None:
        """Share the embedding and output of `source`; `kept` are its KV heads, in order."""
        self._source, self._kept = source, kept
        llama = replace(source.llama, target=replace(source.config, kv_heads=len(kept)))
        super().__init__(llama, weights, source._rope, source.taps)

    def with_taps(self, taps: Sequence[int]) -> "Repeated":
        return Repeated(self._source.with_taps(taps), self._kept, self.weights)

    def prefill(self, tokens: Sequence[int]) -> None:
        if self.length or not tokens:
            super().prefill(tokens)
            return
        own = self._source.fork(0)
        own.prefill(tokens)
        self._cache.reserve(len(tokens))
        both = torch.stack((own._cache.k, own._cache.v), dim=2)[:, self._kept]
        for layer, kv in enumerate(both):
            self._cache.write(layer, kv.permute(2, 1, 0, 3))
        for tap in range(len(self.taps)):
            self._cache.write_tap(tap, own._cache.features[:, tap])
        self._cache.append(len(tokens))


def divisors(target: Target) -> tuple[int, ...]:
    """Return the G that the exact mode can have beside the target's own, largest first."""
    own = target.config.group_size
    if not isinstance(target, LlamaTarget):
        return ()
    return tuple(g for g in range(own - 1, 0, -1) if own % g == 0)


def twins(target: Target) -> tuple[int, ...]:
    """Return every other G that fits the target's query heads."""
    config = target.config
    if not isinstance(target, LlamaTarget):
        return ()
    return tuple(
        g for g in range(1, config.heads + 1) if config.heads % g == 0 and g != config.group_size
    )


def exact(target: Target, group: int) -> LlamaTarget:
    """Return the same function with G = `group`: each KV head repeated own G / group times.

    Raises:
        UnsupportedModel: `group` does not divide the target's G, or transformers runs it.
    """
    model = _own_decoder(target)
    own = model.config.group_size
    if own % group:
        raise UnsupportedModel(
            _("{name} has G = {own}; the same function has only its divisors, not {group}").format(
                name=model.config.name, own=own, group=group
            )
        )
    times = own // group
    kept = [head for head in range(model.config.kv_heads) for _time in range(times)]
    return Repeated(model, kept, _with_kv(model, kept).weights)


def twin(target: Target, group: int, seed: int = 0) -> LlamaTarget:
    """Return random projections of the same shapes but G = `group`: for its time, not its text.

    Raises:
        UnsupportedModel: The query heads do not divide by `group`, or transformers runs it.
    """
    model = _own_decoder(target)
    if model.config.heads % group:
        raise UnsupportedModel(
            _("{heads} query heads do not divide into groups of {group}").format(
                heads=model.config.heads, group=group
            )
        )
    kept = [head % model.config.kv_heads for head in range(model.config.heads // group)]
    return _with_kv(model, kept, torch.Generator().manual_seed(seed))


def _own_decoder(target: Target) -> LlamaTarget:
    if not isinstance(target, LlamaTarget):
        raise UnsupportedModel(
            _("{name} is run by transformers, whose KV heads cannot be turned here").format(
                name=target.config.name
            )
        )
    return target


def _with_kv(model: LlamaTarget, kept: Index, noise: torch.Generator | None = None) -> LlamaTarget:
    """Return a target whose KV heads are those of `kept`, in that order."""
    llama = replace(model.llama, target=replace(model.config, kv_heads=len(kept)))
    layers = tuple(_layer(model, layer, kept, noise) for layer in model.weights.layers)
    weights = replace(model.weights, layers=layers)
    return LlamaTarget(llama, weights, model._rope, model.taps)


def _layer(
    model: LlamaTarget, layer: LayerWeights, kept: Index, noise: torch.Generator | None
) -> LayerWeights:
    heads, kv, norm = model.config.heads, model.config.kv_heads, layer.qk_norm
    rows = [*range(heads), *(heads + k for k in kept), *(heads + kv + k for k in kept)]
    weight = _heads(layer.qkv.weight, rows, model.config.head_dim)
    if noise is not None:
        fresh = torch.randn(weight.shape, generator=noise) * weight.shape[1] ** -0.5
        weight = fresh.to(weight.device, weight.dtype)
    bias = layer.qkv.bias
    if norm is not None:
        norm = HeadNorm(norm.weight[rows[: heads + len(kept)]], model.llama.eps)
    return replace(
        layer,
        qkv=Linear(weight, None if bias is None else _heads(bias, rows, model.config.head_dim)),
        qk_norm=norm,
    )


def _heads(rows: Tensor, kept: Index, head_dim: int) -> Tensor:
    """Pick heads of a [heads * head_dim, ...] tensor."""
    return rows.reshape(-1, head_dim, *rows.shape[1:])[kept].reshape(-1, *rows.shape[1:])
