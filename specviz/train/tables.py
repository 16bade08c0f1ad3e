"""What heads take from their target: its tables, its distributions and, to begin with, its rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from specviz.errors import UnsupportedModel
from specviz.heads.layers import LayerShape
from specviz.heads.packing import target_rows
from specviz.models.llama import LlamaTarget
from specviz.models.target import Target
from specviz.words import _


@dataclass(frozen=True, slots=True)
class Tables:
    """The target's embedding and output head, both [vocab, hidden]; they are never trained."""

    embed: Tensor
    head: Tensor

    @classmethod
    def of(cls, target: Target) -> "Tables":
        """Copy them out of any target."""
        return cls(target.embed(range(target.config.vocab)).clone(), target_rows(target).clone())


class Vocabulary:
    """The ids that logits are about, and the way back.

    `ids` [size] rise; None stands for the whole vocabulary.
    """

    def __init__(self, ids: Tensor | None, vocab: int, device: torch.device) -> None:
        self.ids = None if ids is None else ids.to(device)
        self.size, self._whole = vocab if ids is None else len(ids), vocab
        self._index = None
        if self.ids is not None:
            self._index = torch.full((vocab,), -1, device=device)
            self._index[self.ids] = torch.arange(self.size, device=device)

    def index(self, tokens: Tensor) -> Tensor:
        """Return the row of each token, -1 where there is none."""
        return tokens if self._index is None else self._index[tokens]

    def tokens(self, rows: Tensor) -> Tensor:
        """Return the token of each row."""
        return rows if self.ids is None else self.ids[rows]

    def part(self, rows: Tensor) -> "Vocabulary":
        """Keep only some of its rows, which rise."""
        return Vocabulary(self.tokens(rows), self._whole, rows.device)

    def rows(self, table: Tensor) -> Tensor:
        """Return the rows of a table [vocab, hidden] that belong to it."""
        return table if self.ids is None else table[self.ids]


def teacher(final: Tensor, head: Tensor, lift: Tensor | None = None) -> Tensor:
    """Probabilities [rows, size] of the target from final-normed states [rows, hidden].

    head [size, hidden] holds the rows of the draft vocabulary; the mass of other ids is left out
    and the rest renormalised. `lift` [size] is as in `Sample`.
    """
    with torch.no_grad():
        logits = (final @ head.to(final.dtype).T).float()
        return (logits if lift is None else logits.add_(lift)).softmax(dim=-1)


class Donor(Protocol):
    """A target whose decoder layers can be copied."""

    def layer_shape(self) -> LayerShape: ...

    def layer(self, index: int) -> dict[str, Tensor]: ...


class LlamaDonor:
    """Layers of our own decoder under the names of Hugging Face, in float32."""

    def __init__(self, target: Target) -> None:
        """Take `target`.

        Raises:
            UnsupportedModel: it is not run by our own decoder.
        """
        if not isinstance(target, LlamaTarget):
            raise UnsupportedModel(
                _(
                    "{name} is run by transformers; heads are trained for models of the Llama "
                    "family, which our own decoder runs"
                ).format(name=target.config.name)
            )
        self._target = target

    def layer_shape(self) -> LayerShape:
        """Return the shape of its layers."""
        llama = self._target.llama
        c = llama.target
        return LayerShape(
            hidden=c.hidden,
            heads=c.heads,
            kv_heads=c.kv_heads,
            head_dim=c.head_dim,
            intermediate=llama.intermediate,
            eps=llama.eps,
            rope=llama.rope,
            qkv_bias=llama.qkv_bias,
            o_bias=llama.o_bias,
            mlp_bias=llama.mlp_bias,
            qk_norm=llama.qk_norm,
        )

    def layer(self, index: int) -> dict[str, Tensor]:
        """Return the tensors of one layer by their names in a DecoderLayer."""
        w, c = self._target.weights.layers[index], self._target.config
        q, kv = c.heads * c.head_dim, c.kv_heads * c.head_dim
        found = {
            "input_layernorm.weight": w.input_norm.weight,
            "post_attention_layernorm.weight": w.post_norm.weight,
            "self_attn.o_proj.weight": w.o.weight,
            "mlp.down_proj.weight": w.down.weight,
        }
        found |= _parts("self_attn", ("q_proj", "k_proj", "v_proj"), w.qkv.weight, (q, kv, kv))
        inner = w.down.weight.shape[1]
        found |= _parts("mlp", ("gate_proj", "up_proj"), w.gate_up.weight, (inner, inner))
        for name, bias, sizes in (
            ("self_attn q_proj k_proj v_proj", w.qkv.bias, (q, kv, kv)),
            ("self_attn o_proj", w.o.bias, (c.hidden,)),
            ("mlp gate_proj up_proj", w.gate_up.bias, (inner, inner)),
            ("mlp down_proj", w.down.bias, (c.hidden,)),
        ):
            if bias is not None:
                at, *names = name.split()
                found |= _parts(at, names, bias, sizes, "bias")
        if w.qk_norm is not None:
            found["self_attn.q_norm.weight"] = w.qk_norm.weight[0]
            found["self_attn.k_norm.weight"] = w.qk_norm.weight[c.heads]
        return {name: tensor.float().clone() for name, tensor in found.items()}

    def final_norm(self) -> Tensor:
        """Return the weight of the norm before the output head."""
        return self._target.weights.norm.weight.float().clone()


def _parts(
    at: str, names: Sequence[str], whole: Tensor, sizes: Sequence[int], kind: str = "weight"
) -> dict[str, Tensor]:
    parts = torch.split(whole, list(sizes))
    return {f"{at}.{name}.{kind}": part for name, part in zip(names, parts, strict=True)}
