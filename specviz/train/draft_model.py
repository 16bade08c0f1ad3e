"""A draft model made of a few of the target's own layers, taught to say what the target says."""

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from specviz.heads.dflash_vocab import offsets
from specviz.heads.layers import DecoderLayer, LayerShape, Turns
from specviz.heads.small_llama import D2T
from specviz.models.llama_config import LlamaConfig
from specviz.train.batches import Batch
from specviz.train.course import Loss, favourites
from specviz.train.projection import Goals, projected_loss
from specviz.train.sampling import draw
from specviz.train.tables import LlamaDonor, Tables, Vocabulary, teacher

SAMPLED = 3072  # ids of the softmax of a step


class SmallLlama(nn.Module):
    """Decoder layers and a norm between the target's embedding and its output head."""

    def __init__(self, shape: LayerShape, layers: int) -> None:
        super().__init__()
        self.shape = shape
        self.layers = nn.ModuleList(DecoderLayer(shape) for _ in range(layers))
        self.norm = nn.RMSNorm(shape.hidden, shape.eps)

    def forward(self, tokens: Tensor, table: Tensor) -> Tensor:
        """Return final-normed hidden [batch, length, hidden] of tokens [batch, length]."""
        hidden = F.embedding(tokens, table).to(self.norm.weight.dtype)
        turns = Turns.at(self.shape, torch.arange(tokens.shape[1], device=tokens.device))
        for layer in self.layers:
            hidden = layer(hidden, turns)
        out: Tensor = self.norm(hidden)
        return out


def own_layers(layers: int, keep: int) -> tuple[int, ...]:
    """Choose `keep` of the target's layers: the first, the last, and between them evenly."""
    if keep == 1:
        return (0,)
    return tuple(round(i * (layers - 1) / (keep - 1)) for i in range(keep))


def make_small_llama(donor: LlamaDonor, chosen: Sequence[int]) -> SmallLlama:
    """Copy the layers `chosen` of the target."""
    model = SmallLlama(donor.layer_shape(), len(chosen))
    for layer, index in zip(model.layers, chosen, strict=True):
        layer.load_state_dict(donor.layer(index))
    with torch.no_grad():
        model.norm.weight.copy_(donor.final_norm())
    return model


def small_llama_settings(llama: LlamaConfig, chosen: Sequence[int]) -> dict[str, object]:
    """Return config.json of a model of the target's layers `chosen`."""
    c = llama.target
    family = "qwen3" if llama.qk_norm else "qwen2" if llama.qkv_bias else "llama"
    settings: dict[str, object] = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": family,
        "vocab_size": c.vocab,
        "hidden_size": c.hidden,
        "num_hidden_layers": len(chosen),
        "num_attention_heads": c.heads,
        "num_key_value_heads": c.kv_heads,
        "head_dim": c.head_dim,
        "max_position_embeddings": c.context,
        "intermediate_size": llama.intermediate,
        "rms_norm_eps": llama.eps,
        "hidden_act": "silu",
        "attention_bias": llama.o_bias,
        "mlp_bias": llama.mlp_bias,
        "tie_word_embeddings": llama.tied,
        "eos_token_id": list(c.eos),
        "torch_dtype": "bfloat16",
        "shared_with_target": ["model.embed_tokens.weight", "lm_head.weight"],
        "target_layers": list(chosen),
        "rope_theta": llama.rope.theta,
    }
    if llama.rope.kind == "llama3":
        settings["rope_scaling"] = {
            "rope_type": "llama3",
            "factor": llama.rope.factor,
            "low_freq_factor": llama.rope.low_freq_factor,
            "high_freq_factor": llama.rope.high_freq_factor,
            "original_max_position_embeddings": llama.rope.original_context,
        }
    elif llama.rope.kind == "linear":
        settings["rope_scaling"] = {"rope_type": "linear", "factor": llama.rope.factor}
    return settings


class DraftModelCourse:
    """Forward KL from the target, on the ids of the batch and others drawn anew for each."""

    scheme = "draft_model"

    def __init__(
        self, model: SmallLlama, tables: Tables, ids: Tensor, settings: dict[str, object]
    ) -> None:
        """Teach `model`; `ids` are frequent, `settings` the config.json of a saved folder."""
        self.module, self.depth = model, 4
        self._tables, self._settings, self._frequent = tables, settings, ids
        self._all = Vocabulary(None, len(tables.embed), tables.embed.device)
        self._drafted = Vocabulary(ids, len(tables.embed), tables.embed.device)

    def loss(self, batch: Batch, seed: int) -> Loss:
        said = batch.tokens[batch.supervised]
        sample = draw(self._all, said, SAMPLED, seed, self._frequent)
        vocabulary, lift = sample.vocabulary, sample.lift
        shared = vocabulary.rows(self._tables.head)
        text, at = batch.supervised[:, 1:].nonzero(as_tuple=True)
        rows = vocabulary.index(batch.tokens[text, at + 1])
        known = rows >= 0
        text, at, rows = text[known], at[known], rows[known]
        even = torch.full((len(rows),), 1 / max(1, len(rows)), device=rows.device)
        goals = Goals(teacher(batch.final[text, at], shared, lift), rows, 0.0, even, lift)
        # the fused CPU kernel's backward pass takes as long as all matrices together
        with sdpa_kernel(SDPBackend.MATH):
            hidden = self.module(batch.tokens, self._tables.embed)
        found = projected_loss(hidden[text, at], shared, goals)
        right = {"right at 1": float(found.right.float().mean())}
        return Loss(found.loss, right, len(rows))

    @torch.no_grad()
    def hits(self, batch: Batch) -> Tensor:
        hidden = self.module(batch.tokens, self._tables.embed)
        text, at = batch.supervised[:, 1:].nonzero(as_tuple=True)
        head = self._drafted.rows(self._tables.head)
        said = favourites(lambda h: F.linear(h, head.to(h.dtype)), hidden[text, at], self._drafted)
        right = torch.zeros(batch.tokens.shape, dtype=torch.bool, device=batch.tokens.device)
        right[text, at] = said == batch.tokens[text, at + 1]
        ahead = [F.pad(right[:, j:], (0, min(j, right.shape[1]))) for j in range(self.depth)]
        return torch.stack(ahead, dim=-1).int().cumprod(dim=-1).bool()

    def save(self, folder: Path) -> None:
        """Write an ordinary Llama folder but for the embedding, which is the target's."""
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {
            f"model.{name}": tensor.detach().to(torch.bfloat16).contiguous().cpu()
            for name, tensor in self.module.state_dict().items()
        }
        tensors[D2T] = offsets(self._frequent.cpu())
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        text = json.dumps(self._settings, indent=2, sort_keys=True)
        (folder / "config.json").write_text(text + "\n", "utf-8")
