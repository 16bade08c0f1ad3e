"""EAGLE-3: one layer over three of the target's hidden states (arXiv:2503.01840)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from specviz.heads.dflash_vocab import kept_mask, offsets
from specviz.heads.layers import DecoderLayer, LayerShape
from specviz.heads.recurrent import Entry, Exit, Map, Pack, RecurrentHead


@dataclass(frozen=True, slots=True, kw_only=True)
class Eagle3Config:
    """Shape and variants of an EAGLE-3 head."""

    layer: LayerShape
    taps: tuple[int, ...]  # indices of transformers' hidden_states
    target_hidden: int
    vocab: int
    draft_vocab: int
    layers: int = 1  # the first reads twice the hidden size, others are ordinary
    context: int = 2048  # what it was trained on; only written, never a limit
    norm_before_residual: bool = False  # the residual is the normed hidden state
    norm_before_fc: bool = False  # one norm over all taps together
    fc_norm: bool = False  # one norm per tap
    fc_bias: bool = False
    recycle_normed: bool = False  # EAGLE-3.1: the hidden state passed on is the normed one
    final_norm: bool = True  # SpecForge can leave the norm before the output head out
    own_embedding: bool = False
    own_head: bool = True


class Eagle3Layer(DecoderLayer):
    """The first layer: it reads the embedding and the hidden state side by side."""

    def __init__(self, shape: LayerShape) -> None:
        super().__init__(shape, width=2 * shape.hidden)
        self.hidden_norm = nn.RMSNorm(shape.hidden, shape.eps)


class Eagle3Head(RecurrentHead):
    """The parameters, named as in the speculators layout."""

    scheme = "eagle3"

    def __init__(self, config: Eagle3Config, draft_ids: Tensor | None = None) -> None:
        """Make a head with random weights; `draft_ids` [draft vocab] rise."""
        super().__init__()
        self.config, self.shape, self.taps = config, config.layer, config.taps
        self.draft_ids = draft_ids
        hidden, eps, taps = config.layer.hidden, config.layer.eps, len(config.taps)
        width = taps * config.target_hidden
        self.fc = nn.Linear(width, hidden, bias=config.fc_bias)
        self.input_norm = nn.RMSNorm(width, eps) if config.norm_before_fc else None
        self.fc_norm: nn.ModuleList | None = None
        if config.fc_norm:
            self.fc_norm = nn.ModuleList(nn.RMSNorm(config.target_hidden, eps) for _ in range(taps))
        more = [DecoderLayer(config.layer) for _ in range(config.layers - 1)]
        self.layers = nn.ModuleList([Eagle3Layer(config.layer), *more])
        self.norm = nn.RMSNorm(hidden, eps)
        self.embed_tokens = nn.Embedding(config.vocab, hidden) if config.own_embedding else None
        self.lm_head = (
            nn.Linear(hidden, config.draft_vocab, bias=False) if config.own_head else None
        )

    def stage(self, pack: Pack) -> "Eagle3Stage":
        return Eagle3Stage(self, pack)

    def tensors(self) -> dict[str, Tensor]:
        """Return what a checkpoint holds: the parameters, d2t (an offset) and t2d (a mask)."""
        tensors = dict(self.state_dict())
        if self.draft_ids is not None:
            tensors["d2t"] = offsets(self.draft_ids)
            tensors["t2d"] = kept_mask(self.draft_ids, self.config.vocab)
        return tensors


class Eagle3Stage:
    """fc before the first step, two norms at every step, one norm at the end."""

    def __init__(self, head: Eagle3Head, pack: Pack) -> None:
        first = head.layers[0]
        assert isinstance(first, Eagle3Layer)
        self._config = head.config
        self._fc = pack(head.fc)
        self._input_norm = _maybe(head.input_norm, pack)
        self._fc_norms = [pack(norm) for norm in head.fc_norm or ()]
        self._embed_norm, self._hidden_norm = pack(first.input_layernorm), pack(first.hidden_norm)
        self._norm = pack(head.norm)

    def start(self, features: Tensor) -> Tensor:
        if self._fc_norms:
            parts = [norm(features[..., i, :]) for i, norm in enumerate(self._fc_norms)]
            features = torch.stack(parts, dim=-2)
        joined = features.flatten(-2)
        return self._fc(joined if self._input_norm is None else self._input_norm(joined))

    def enter(self, embedded: Tensor, hidden: Tensor) -> Entry:
        normed = self._hidden_norm(hidden)
        read = torch.cat((self._embed_norm(embedded), normed), dim=-1)
        return Entry(read, normed if self._config.norm_before_residual else hidden)

    def leave(self, hidden: Tensor) -> Exit:
        normed = self._norm(hidden)
        said = normed if self._config.final_norm else hidden
        return Exit(said, normed if self._config.recycle_normed else hidden)


def _maybe(module: nn.Module | None, pack: Pack) -> Map | None:
    return None if module is None else pack(module)
