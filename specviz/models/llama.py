"""Our own dense decoder for the Llama family: few large products, KV cache made once, no copies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F

from specviz.cache.kv import CacheShape, KVCache
from specviz.cancel import check_cancelled
from specviz.errors import ConfigError, DraftError, PromptError
from specviz.events import Attention as Ran
from specviz.events import Draft
from specviz.models.attention import Attention, attend, pack_mask
from specviz.models.limits import check_ids, check_path, check_room
from specviz.models.llama_config import LlamaConfig
from specviz.models.llama_weights import LayerWeights, LlamaWeights, fuse
from specviz.models.rope import RopeTable
from specviz.models.target import TargetConfig
from specviz.models.transfer import send
from specviz.verify.masks import ancestor_mask, draft_positions, key_mask, within_window
from specviz.words import _

if TYPE_CHECKING:
    from specviz.models.device_pass import DevicePass

PIECE = 512  # tokens per prefill pass: bounds the mask and the activations


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What all layers of one pass share."""

    tokens: Tensor  # [rows]
    cos: Tensor  # [rows, heads + 2 * kv_heads, head_dim]; 1 on values, which do not turn
    sin: Tensor  # the same, 0 on values
    masks: Mapping[int | None, Tensor]  # by window: what `attend` adds to the scores


class LlamaTarget:
    """A Llama-family model and the KV cache of one sequence; implements `Target`."""

    attention: Attention = staticmethod(attend)  # a measurement puts another in its place

    def __init__(
        self, config: LlamaConfig, weights: LlamaWeights, rope: RopeTable, taps: Sequence[int] = ()
    ) -> None:
        """Share `weights` and `rope`, start with an empty cache.

        `taps` are indices as in `hidden_states` of transformers: i is the input of layer i,
        the number of layers is the output after the final norm.
        """
        layers = config.target.layers
        if any(not 0 <= tap <= layers for tap in taps):
            raise ConfigError(
                _("taps are {taps}; each must be 0 to {layers}").format(
                    taps=tuple(taps), layers=layers
                )
            )
        self.llama, self.weights, self.taps = config, weights, tuple(taps)
        self._rope = rope
        self._cache = self._empty_cache()
        self._scored: Draft | None = None
        self.on_device = self._device_pass()

    @classmethod
    def from_tensors(
        cls,
        config: LlamaConfig,
        tensors: Mapping[str, Tensor],
        *,
        device: torch.device | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> "LlamaTarget":
        """Check and fuse `tensors` (Hugging Face names)."""
        device = device or torch.device("cpu")
        weights = fuse(config, tensors, device, dtype)
        return cls(config, weights, RopeTable(config.rope, config.target.head_dim, device))

    @property
    def config(self) -> TargetConfig:
        return self.llama.target

    @property
    def length(self) -> int:
        return self._cache.length

    @property
    def device(self) -> torch.device:
        return self.weights.embed.device

    @property
    def dtype(self) -> torch.dtype:
        return self.weights.embed.dtype

    @property
    def features(self) -> Tensor | None:
        return self._cache.features if self.taps else None

    def with_taps(self, taps: Sequence[int]) -> "LlamaTarget":
        """Return a target on the same weights, with an empty cache, that keeps `features`."""
        return LlamaTarget(self.llama, self.weights, self._rope, taps)

    def with_weights(self, weights: LlamaWeights, name: str) -> "LlamaTarget":
        """Return a target of the same shape on other weights, with an empty cache."""
        llama = replace(self.llama, target=replace(self.config, name=name, sha=""))
        return LlamaTarget(llama, weights, self._rope, self.taps)

    def prefill(self, tokens: Sequence[int]) -> None:
        check_ids(tokens, self.config, PromptError)
        check_room(len(tokens), self.length, self.config, PromptError)
        last_layer = self.config.layers in self.taps
        for start in range(0, len(tokens), PIECE):
            check_cancelled()
            piece = tokens[start : start + PIECE]
            self._forward(piece[0], Draft.chain(piece[1:]), last_layer=last_layer)
            self._cache.append(len(piece))
        self._scored = None

    def score(self, root: int, draft: Draft) -> Tensor:
        check_ids((root, *draft.tokens), self.config, DraftError)
        check_room(1 + len(draft), self.length, self.config, DraftError)
        self._scored = draft
        if self.on_device is not None:
            # a copy: the next pass over as many rows writes where this one did
            return self.on_device.score(root, draft, self._cache).clone()
        return self.head(self._forward(root, draft))

    def attention_of(self, draft: Draft) -> Ran:
        """Return what ran the attention of such a draft, and its tile if it has one."""
        return Ran("sdpa") if self.on_device is None else self.on_device.ran(draft)

    def commit(self, path: Sequence[int]) -> None:
        draft = check_path(self._scored, path)
        start = self.length
        self._cache.append(1 + len(draft))
        self._cache.keep(start, [0, *(node + 1 for node in path)])
        self._scored = None

    def truncate(self, length: int) -> None:
        self._cache.truncate(length)
        self._scored = None

    def fork(self, length: int) -> "LlamaTarget":
        other = self.with_taps(self.taps)
        other._cache = self._cache.fork(length)
        return other

    def embed(self, tokens: Sequence[int]) -> Tensor:
        check_ids(tokens, self.config, DraftError)
        return self.weights.embed[send(tokens, self.device)]

    @torch.inference_mode()
    def head(self, hidden: Tensor) -> Tensor:
        return self.weights.head(hidden).float()

    def _device_pass(self) -> "DevicePass | None":
        """Return the pass of a GPU; None on other devices and for layers with a window."""
        if self.device.type != "cuda" or set(self.llama.windows) != {None}:
            return None
        from specviz.models.device_pass import DevicePass

        return DevicePass(self.llama, self.weights, self._rope, self.taps)

    def _empty_cache(self) -> KVCache:
        c = self.config
        shape = CacheShape(
            layers=c.layers,
            kv_heads=c.kv_heads,
            head_dim=c.head_dim,
            context=c.context,
            taps=len(self.taps),
            hidden=c.hidden,
        )
        return KVCache(shape, self.device, self.dtype)

    def _step(self, tokens: Sequence[int], draft: Draft) -> Step:
        c, past = self.config, self.length
        total = self._cache.reserve(len(tokens))
        self._rope.reserve(past + len(tokens))
        positions = torch.tensor(draft_positions(draft, past), device=self.device)
        turned = c.heads + c.kv_heads
        size = (len(tokens), turned + c.kv_heads, c.head_dim)
        cos = torch.ones(size, device=self.device)
        sin = torch.zeros(size, device=self.device)
        cos[:, :turned] = self._rope.cos[positions][:, None]
        sin[:, :turned] = self._rope.sin[positions][:, None]
        scale = c.head_dim**-0.5  # of the attention scores, applied to the queries here
        cos[:, : c.heads] *= scale
        sin[:, : c.heads] *= scale
        return Step(
            tokens=torch.tensor(tokens, device=self.device),
            cos=cos.to(self.dtype),
            sin=sin.to(self.dtype),
            masks=self._masks(draft, positions, total),
        )

    def _masks(self, draft: Draft, positions: Tensor, total: int) -> dict[int | None, Tensor]:
        past, group = self.length, self.config.group_size
        every = key_mask(ancestor_mask(draft).to(self.device), past, total)
        return {
            window: pack_mask(
                every if window is None else within_window(every, positions, past, window),
                group,
                self.dtype,
            )
            for window in set(self.llama.windows)
        }

    @torch.inference_mode()
    def _forward(self, root: int, draft: Draft, *, last_layer: bool = True) -> Tensor:
        """Run root and draft, write their keys, values and taps; return [rows, hidden] normed.

        Without `last_layer` nothing is computed beyond the last keys and values.
        """
        step = self._step((root, *draft.tokens), draft)
        w = self.weights
        hidden = F.embedding(step.tokens, w.embed)
        for index, layer in enumerate(w.layers):
            self._tap(index, hidden)
            q, k, v = self._project(index, layer, layer.input_norm(hidden), step)
            if index == len(w.layers) - 1 and not last_layer:
                return hidden
            attended = self.attention(q, k, v, step.masks[self.llama.windows[index]])
            hidden = layer.o(attended).add_(hidden)
            gate, up = layer.gate_up(layer.post_norm(hidden)).chunk(2, dim=-1)
            hidden = layer.down(F.silu(gate).mul_(up)).add_(hidden)
        hidden = w.norm(hidden)
        self._tap(len(w.layers), hidden)
        return hidden

    def _project(
        self, index: int, layer: LayerWeights, normed: Tensor, step: Step
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Turned and scaled queries [rows, heads, head_dim]; all keys and values of the layer."""
        c = self.config
        x = layer.qkv(normed).view(step.cos.shape)
        if layer.qk_norm is not None:
            turned = x[:, : c.heads + c.kv_heads]
            turned.copy_(layer.qk_norm(turned))
        x = torch.addcmul(x * step.cos, x.roll(c.head_dim // 2, -1), step.sin)
        kv = x[:, c.heads :].view(-1, 2, c.kv_heads, c.head_dim)
        k, v = self._cache.write(index, kv)
        return x[:, : c.heads], k, v

    def _tap(self, index: int, hidden: Tensor) -> None:
        for tap, wanted in enumerate(self.taps):
            if wanted == index:
                self._cache.write_tap(tap, hidden)
