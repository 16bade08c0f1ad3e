"""A recurrent head at work on one text: packed weights, a KV cache, true rows and drafted rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from specviz.cache.kv import CacheShape, KVCache
from specviz.cancel import check_cancelled
from specviz.errors import ConfigError
from specviz.heads.base import check_fed
from specviz.heads.choice import Guess
from specviz.heads.device_choice import DeviceRule
from specviz.heads.device_rows import DeviceRows, Parts
from specviz.heads.packed import PackedLayer, Pass, Rotation, make_mask, pack_module
from specviz.heads.recurrent import Map, RecurrentHead
from specviz.models.layers import FEW_ROWS
from specviz.models.llama import LlamaTarget
from specviz.models.target import Target
from specviz.words import _

PIECE = 512  # rows per pass while a prompt is read
DRAFTED = 4096  # most drafted rows beyond the target's context


@dataclass(frozen=True, slots=True)
class Reading:
    """What a pass says: logits [rows, draft vocab] in float32, and hidden [rows, hidden]."""

    logits: Tensor
    hidden: Tensor


class Runner:
    """Reads a text with true features, then drafts on its own hidden states.

    Row i of the cache pairs the features of position i with token i + 1. True rows are a memo of
    the text; drafted rows lie after them and are dropped before the next text is read, so true
    rows take their place: leaving them would cost 8 to 15% of acceptance length.
    """

    def __init__(self, head: RecurrentHead, target: Target) -> None:
        """Pack `head` for the device and dtype of `target`, whose embeddings and head it shares."""
        self.draft_ids = None if head.draft_ids is None else head.draft_ids.to(target.device)
        self.text: tuple[int, ...] = ()  # what the true rows are about
        self.passes = 0  # since the last catch-up began
        self.caught_up = 0  # rows read by it
        self._target, self._taps, device, dtype = target, head.taps, target.device, target.dtype
        self._layers = [PackedLayer(layer, device, dtype) for layer in head.decoder_layers()]

        def pack(module: nn.Module) -> Map:
            return pack_module(module, device, dtype)

        self._stage, self._blank_first = head.stage(pack), head.blank_first
        self._head = None if head.lm_head is None else pack(head.lm_head)
        self._table = None
        if head.embed_tokens is not None:
            self._table = head.embed_tokens.weight.detach().to(device, dtype)
        self._shape, self._rotation = head.shape, Rotation(head.shape, device, dtype)
        shape = CacheShape(
            layers=len(self._layers),
            kv_heads=head.shape.kv_heads,
            head_dim=head.shape.head_dim,
            context=target.config.context + DRAFTED,
        )
        self._cache = KVCache(shape, device, dtype)
        self._starts: list[int] = []  # for each true row, where the pass began that read it
        self.on_device = self.device_rows() if device.type == "cuda" else None

    @property
    def true_rows(self) -> int:
        return len(self._starts)

    def catch_up(self, tokens: tuple[int, ...], features: Tensor | None, shared: int) -> Reading:
        """Read `tokens` as far as they are new; return what the last true row says.

        features are [len(tokens) - 1, taps, hidden]; `shared` is how many leading tokens `tokens`
        and `text` have in common. The last row may have been read before a rewind. Then its pass
        is repeated as it was, with as many rows: other shapes round differently, and a rewound run
        must draft the same again.

        Raises:
            ConfigError: the features are not those that the head reads.
            DraftError: some of them were never written.
            Cancelled: asked for between pieces; the next call goes on where this one ended.
        """
        rows = len(tokens) - 1
        features = self._checked(features, rows)
        if not shared:
            check_fed(features)
        start = min(max(shared - 1, 0), rows, self.true_rows)
        if start == rows:
            start = self._starts[rows - 1]
        self._forget(start)
        self.passes, self.caught_up = 0, rows - start
        reading = None
        for begin in range(start, rows, PIECE):
            check_cancelled()
            end = min(begin + PIECE, rows)
            reading = self._read(features[begin:end], tokens[begin + 1 : end + 1], begin)
            self._starts += [begin] * (end - begin)
            self.text = tokens[: end + 1]
        assert reading is not None  # there is a row to read
        return reading

    def _read(self, features: Tensor, tokens: tuple[int, ...], begin: int) -> Reading:
        """Read true rows from `begin` on; the logits are of the last one."""
        rows = len(tokens)
        if self.on_device is not None and rows <= FEW_ROWS:
            reading = Reading(*self.on_device.read(features, tokens, begin))
            self.passes += 1
            self._cache.append(rows)
            return reading
        seen = None
        if rows > 1:
            seen = torch.ones(rows, begin + rows, dtype=torch.bool).tril(begin)
        hidden = self._start(features)
        return self._pass(hidden, tokens, range(begin, begin + rows), seen, last=True)

    def drafted(self, reading: Reading, rule: DeviceRule, uniforms: Sequence[float]) -> list[Guess]:
        """Draft a chain on the device: a token for each of `uniforms`, nothing stays behind."""
        assert self.on_device is not None
        self.passes += len(uniforms) - 1
        said = reading.logits, reading.hidden
        return self.on_device.chain(said, rule, uniforms, self.true_rows)

    def device_rows(self) -> DeviceRows | None:
        """Return what a GPU drafts with; None where a row does not see all before it.

        Then, and where the target keeps its embeddings to itself, rows run one by one.
        """
        table = self._table
        if table is None and isinstance(self._target, LlamaTarget):
            table = self._target.weights.embed
        if table is None or self._shape.window is not None:
            return None
        return DeviceRows(
            Parts(
                stage=self._stage,
                layers=self._layers,
                rotation=self._rotation,
                cache=self._cache,
                table=table,
                head=self._logits,
                blank_first=self._blank_first,
            )
        )

    def _logits(self, normed: Tensor) -> Tensor:
        return self._target.head(normed) if self._head is None else self._head(normed).float()

    def step(
        self, hidden: Tensor, tokens: Sequence[int], depth: int, among: Tensor | None = None
    ) -> Reading:
        """Run drafted rows at `depth` (1 is the first) on recycled hidden states.

        hidden [rows, hidden]; `among` is bool [rows, drafted rows, these included], who sees whom
        of what was drafted, None if everything is seen. True rows are always seen.
        """
        positions = (self.true_rows - 1 + depth,) * len(tokens)
        seen = None
        if among is not None:
            seen = torch.cat((among.new_ones(len(tokens), self.true_rows), among), dim=1)
        return self._pass(hidden, tokens, positions, seen)

    def drop_drafted(self) -> None:
        """Forget the drafted rows."""
        self._cache.truncate(self.true_rows)

    @torch.inference_mode()
    def _start(self, features: Tensor) -> Tensor:
        return self._stage.start(features)

    @torch.inference_mode()
    def _pass(
        self,
        hidden: Tensor,
        tokens: Sequence[int],
        positions: Sequence[int],
        seen: Tensor | None,
        last: bool = False,
    ) -> Reading:
        self.passes += 1
        self._cache.reserve(len(tokens))
        step = Pass(*self._rotation.at(positions), self._mask(seen, positions))
        embedded = self._embed(tokens)
        if self._blank_first and positions[0] == 0:
            embedded = torch.cat((torch.zeros_like(embedded[:1]), embedded[1:]))
        read, hidden = self._stage.enter(embedded, hidden)
        for index, layer in enumerate(self._layers):
            if index:
                read = layer.input_norm(hidden)
            hidden = layer.run(read, hidden, step, (self._cache, index))
        self._cache.append(len(tokens))
        normed, recycled = self._stage.leave(hidden[-1:] if last else hidden)
        return Reading(self._logits(normed), recycled)

    def _embed(self, tokens: Sequence[int]) -> Tensor:
        if self._table is None:
            return self._target.embed(tokens)
        return self._table[torch.tensor(tokens, device=self._table.device)]

    def _mask(self, seen: Tensor | None, positions: Sequence[int]) -> Tensor | None:
        window, keys = self._shape.window, self._cache.length + len(positions)
        if window is not None and window < keys:  # drafts are never that far back
            near = torch.tensor(positions)[:, None] - torch.arange(keys) < window
            seen = near if seen is None else seen & near
        if seen is None:
            return None
        return make_mask(seen.to(self._target.device), self._shape, self._target.dtype)

    def _checked(self, features: Tensor | None, rows: int) -> Tensor:
        if features is None or features.shape[:2] != (rows, len(self._taps)):
            given = _("none") if features is None else str(list(features.shape))
            raise ConfigError(
                _(
                    "the head reads features [{rows}, {count}, hidden] and was given {given}; "
                    "decode with target.with_taps({taps})"
                ).format(rows=rows, count=len(self._taps), given=given, taps=self._taps)
            )
        return features

    def _forget(self, rows: int) -> None:
        self._cache.truncate(rows)
        del self._starts[rows:]
        self.text = self.text[: rows + 1]
