"""Any other causal language model of transformers behind the same protocol: right before fast."""

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from specviz.cancel import check_cancelled
from specviz.errors import DraftError, PromptError, UnsupportedModel
from specviz.events import ROOT, Draft
from specviz.models.limits import check_ids, check_path, check_room
from specviz.models.refusals import recurrent
from specviz.models.target import TargetConfig
from specviz.verify.masks import ancestor_mask, draft_positions, key_mask
from specviz.words import _

if TYPE_CHECKING:
    from transformers import PreTrainedConfig
    from transformers.cache_utils import Cache, DynamicLayer

PIECE = 512


class Output(Protocol):
    """What a model returns."""

    @property
    def logits(self) -> Tensor: ...


class CausalLM(Protocol):
    """What is used of a model of transformers."""

    @property
    def config(self) -> "PreTrainedConfig": ...

    def __call__(self, ids: Tensor, **options: object) -> Output: ...

    def forward(self, ids: Tensor, **options: object) -> Output: ...

    def get_input_embeddings(self) -> torch.nn.Embedding: ...

    def get_output_embeddings(self) -> torch.nn.Linear: ...


class HFTarget:
    """A model of transformers and the KV cache of one sequence; implements `Target`.

    The cache keeps every token in every layer, also in layers with a sliding window, whose masks
    then hide the old ones: dropping tokens is exact at any length. A tree is scored in one pass
    where the model follows a mask of ours (`supports_trees`), else path by path.
    """

    def __init__(
        self, model: CausalLM, config: TargetConfig, *, supports_trees: bool = False
    ) -> None:
        """Share `model`, start with an empty cache."""
        from transformers import DynamicCache

        self._model, self._config, self.supports_trees = model, config, supports_trees
        self._cache: Cache = DynamicCache()
        self._length = 0
        self._root = 0
        self._scored: Draft | None = None
        accepted = inspect.signature(model.forward).parameters
        self._cache_name = "cache" if "cache" in accepted else "past_key_values"
        self._last_only = {"logits_to_keep": 1} if "logits_to_keep" in accepted else {}

    @property
    def config(self) -> TargetConfig:
        return self._config

    @property
    def length(self) -> int:
        return self._length

    @property
    def device(self) -> torch.device:
        return self._table().device

    @property
    def dtype(self) -> torch.dtype:
        return self._table().dtype

    @property
    def features(self) -> None:
        """None: models of transformers are not tapped."""
        return

    @torch.inference_mode()
    def prefill(self, tokens: Sequence[int]) -> None:
        check_ids(tokens, self.config, PromptError)
        check_room(len(tokens), self.length, self.config, PromptError)
        self.truncate(self.length)
        for start in range(0, len(tokens), PIECE):
            check_cancelled()
            piece = tokens[start : start + PIECE]
            self._run(piece, **self._last_only)
            self._length += len(piece)

    @torch.inference_mode()
    def score(self, root: int, draft: Draft) -> Tensor:
        tokens = (root, *draft.tokens)
        check_ids(tokens, self.config, DraftError)
        check_room(len(tokens), self.length, self.config, DraftError)
        self.truncate(self.length)
        self._root, self._scored = root, draft
        if draft.is_chain:
            return self._run(tokens)
        return self._tree(tokens, draft) if self.supports_trees else self._paths(root, draft)

    @torch.inference_mode()
    def commit(self, path: Sequence[int]) -> None:
        draft = check_path(self._scored, path)
        start = self.length
        self._scored = None
        if not draft.is_chain and not self.supports_trees:
            self.truncate(start)
            self._run((self._root, *(draft.tokens[node] for node in path)), **self._last_only)
        elif not draft.is_chain:
            new = torch.tensor([0, *(node + 1 for node in path)], device=self.device) + start
            rows = torch.cat((torch.arange(start, device=self.device), new))
            self._each(lambda kept: kept.index_select(-2, rows))
        self._length = start + 1 + len(path)
        self._cut()

    def truncate(self, length: int) -> None:
        if not 0 <= length <= self.length:
            raise IndexError(f"cannot truncate {self.length} cached tokens to {length}")
        self._length, self._scored = length, None
        self._cut()

    def fork(self, length: int) -> "HFTarget":
        from transformers import DynamicCache

        if not 0 <= length <= self.length:
            raise IndexError(f"cannot fork {self.length} cached tokens at {length}")
        other = HFTarget(self._model, self.config, supports_trees=self.supports_trees)
        other._length = length
        if length:
            layers = [(layer.keys, layer.values) for layer in self._layers()]
            other._cache = DynamicCache(layers)
            other._each(lambda kept: kept[..., :length, :].clone())
        return other

    @torch.inference_mode()
    def embed(self, tokens: Sequence[int]) -> Tensor:
        check_ids(tokens, self.config, DraftError)
        return self._table()[torch.tensor(tokens, device=self.device)]

    @torch.inference_mode()
    def head(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self._model.get_output_embeddings()(hidden.to(self.dtype)).float()
        cap = getattr(self._model.config.get_text_config(), "final_logit_softcapping", None)
        return logits if cap is None else cap * torch.tanh(logits / cap)

    def _layers(self) -> "list[DynamicLayer]":
        from transformers.cache_utils import DynamicLayer

        layers: list[DynamicLayer] = []
        for layer in self._cache.layers:
            if type(layer) is not DynamicLayer:  # it keeps something else than keys and values
                raise UnsupportedModel(
                    _("{name} cannot be run: {reason}").format(
                        name=self.config.name, reason=recurrent(type(layer).__name__)
                    )
                )
            layers.append(layer)
        return layers

    def _each(self, change: Callable[[Tensor], Tensor]) -> None:
        for layer in self._layers():
            if layer.keys is not None and layer.values is not None:
                layer.keys, layer.values = change(layer.keys), change(layer.values)

    def _cut(self) -> None:
        self._each(lambda kept: kept[..., : self.length, :])

    def _run(self, tokens: Sequence[int], **options: object) -> Tensor:
        """Append to the cache without counting: logits [rows, vocab], all rows or the last."""
        ids = torch.tensor([tokens], device=self.device)
        out = self._model(ids, use_cache=True, **{self._cache_name: self._cache}, **options)
        return out.logits[0].float()

    def _tree(self, tokens: Sequence[int], draft: Draft) -> Tensor:
        seen = key_mask(ancestor_mask(draft), self.length, self.length + len(tokens))
        mask = torch.zeros(seen.shape, dtype=self.dtype)
        mask.masked_fill_(~seen, torch.finfo(self.dtype).min)
        positions = torch.tensor([draft_positions(draft, self.length)], device=self.device)
        mask = mask[None, None].to(self.device)
        return self._run(tokens, attention_mask=mask, position_ids=positions)

    def _paths(self, root: int, draft: Draft) -> Tensor:
        """Score every path from the root to a leaf on its own."""
        rows: dict[int, Tensor] = {}
        for leaf in set(range(len(draft))) - set(draft.parents):
            path = draft.path_to(leaf)
            logits = self._run((root, *(draft.tokens[node] for node in path)))
            rows |= zip((ROOT, *path), logits, strict=True)
            self._cut()
        return torch.stack([rows[node] for node in range(ROOT, len(draft))])

    def _table(self) -> Tensor:
        return self._model.get_input_embeddings().weight
