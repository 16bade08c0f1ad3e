"""MTP: the module that predicts one token more, shipped inside the target (arXiv:2412.19437)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from specviz.heads.experts import Experts, ExpertsShape
from specviz.heads.layers import DecoderLayer, LayerShape
from specviz.heads.recurrent import Entry, Exit, Pack, RecurrentHead


@dataclass(frozen=True, slots=True, kw_only=True)
class MtpConfig:
    """Shape and variants of an MTP module."""

    layer: LayerShape
    layers: int  # of the target: its last hidden state, after the final norm, is what is read
    vocab: int
    trained: int = 1  # how many tokens ahead it was trained for; more reuse it
    context: int = 2048  # only written, never a limit
    hidden_first: bool = False  # MiMo puts the hidden state before the embedding
    blank_first: bool = False  # MiMo: the embedding beside position 0 is zero
    experts: ExpertsShape | None = None
    own_embedding: bool = False
    own_head: bool = False
    draft_vocab: int | None = None  # rows of an own head; None: the whole vocabulary


class MtpHead(RecurrentHead):
    """One decoder layer over the target's final hidden state and the next token's embedding.

    Its hidden state is recycled after the last norm, as DeepSeek, Qwen and GLM are served: the
    target's own hidden state comes normed, too. Norm weights are plain factors here; layouts that
    store them less one are converted.
    """

    scheme = "mtp"

    def __init__(self, config: MtpConfig, draft_ids: Tensor | None = None) -> None:
        """Make a module with random weights; `draft_ids` [draft vocab] rise."""
        super().__init__()
        self.config, self.shape, self.taps = config, config.layer, (config.layers,)
        self.draft_ids = draft_ids
        self.blank_first = config.blank_first
        hidden, eps = config.layer.hidden, config.layer.eps
        self.token_layernorm = nn.RMSNorm(hidden, eps)
        self.hidden_layernorm = nn.RMSNorm(hidden, eps)
        self.input_proj = nn.Linear(2 * hidden, hidden, bias=False)
        mlp = Experts(config.experts, config.layer) if config.experts else None
        self.layers = nn.ModuleList([DecoderLayer(config.layer, mlp=mlp)])
        self.final_layernorm = nn.RMSNorm(hidden, eps)
        self.embed_tokens = nn.Embedding(config.vocab, hidden) if config.own_embedding else None
        drafted = config.draft_vocab or config.vocab
        self.lm_head = nn.Linear(hidden, drafted, bias=False) if config.own_head else None

    def stage(self, pack: Pack) -> "MtpStage":
        return MtpStage(self, pack)


class MtpStage:
    """Two norms and a projection before the layer, one norm after it."""

    def __init__(self, head: MtpHead, pack: Pack) -> None:
        self._hidden_first = head.config.hidden_first
        self._token_norm, self._hidden_norm = (
            pack(head.token_layernorm),
            pack(head.hidden_layernorm),
        )
        self._project = pack(head.input_proj)
        self._input_norm = pack(head.decoder_layers()[0].input_layernorm)
        self._final_norm = pack(head.final_layernorm)

    def start(self, features: Tensor) -> Tensor:
        return features[..., 0, :]

    def enter(self, embedded: Tensor, hidden: Tensor) -> Entry:
        pair = self._token_norm(embedded), self._hidden_norm(hidden)
        mixed = self._project(torch.cat(pair[::-1] if self._hidden_first else pair, dim=-1))
        return Entry(self._input_norm(mixed), mixed)

    def leave(self, hidden: Tensor) -> Exit:
        normed = self._final_norm(hidden)
        return Exit(normed, normed)
