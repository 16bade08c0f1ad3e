"""The trunk of block heads: equations, who sees whom, and the cache as a shortcut only."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import AutoConfig, AutoModelForCausalLM

from specviz.errors import ConfigError
from specviz.heads.dflash import DFlashHead, Owned
from specviz.heads.dflash_cache import BlockDecoder
from specviz.heads.dflash_config import View
from specviz.heads.dflash_tables import own_tables
from specviz.models.llama import LlamaTarget
from specviz.models.llama_config import read_llama_config
from specviz.models.tiny import TinyShape, tiny_tensors
from tests.heads.block_heads import (
    MASK,
    TAPS,
    TEXT,
    block_config,
    blocks_at,
    read,
    tiny_dflash,
    tiny_target,
)

VIEWS = {
    "whole": (),
    "sliding": (View(window=4), View()),
    "sliding, causal": (View(window=4, causal=True), View()),
    "from the anchor": (View(window=4, from_anchor=True, causal=True), View()),
    "causal": (View(causal=True), View(causal=True)),
}


def turned(x: Tensor, positions: list[int]) -> Tensor:
    """RoPE of x [rows, heads, head_dim], pair by pair."""
    out, half = x.clone(), x.shape[-1] // 2
    for row, position in enumerate(positions):
        for i in range(half):
            angle = torch.tensor(position * 10_000.0 ** (-i / half))
            low, high = x[row, :, i], x[row, :, i + half]
            out[row, :, i] = low * angle.cos() - high * angle.sin()
            out[row, :, i + half] = high * angle.cos() + low * angle.sin()
    return out


def by_the_book(head: DFlashHead, features: Tensor, anchor: int, table: Tensor) -> Tensor:
    """One block after `features` [length, taps, hidden] by the equations, head by head."""
    c, length, rows = head.config.layer, len(features), head.config.block

    def norm(x: Tensor, weight: Tensor) -> Tensor:
        return x / (x.pow(2).mean(-1, keepdim=True) + c.eps).sqrt() * weight

    context = norm(features.flatten(1) @ head.fc.weight.T, head.hidden_norm.weight)
    z = table[[anchor, *[head.config.mask_token] * (rows - 1)]]
    before, within = list(range(length)), list(range(length, length + rows))
    for layer in head.decoder_layers():
        a, zn = layer.self_attn, norm(z, layer.input_layernorm.weight)

        def keys(x: Tensor, at: list[int], a: torch.nn.Module = a) -> Tensor:
            k = (x @ a.k_proj.weight.T).view(len(x), c.kv_heads, c.head_dim)
            return turned(norm(k, a.k_norm.weight), at)

        q = (zn @ a.q_proj.weight.T).view(rows, c.heads, c.head_dim)
        q = turned(norm(q, a.q_norm.weight), within)
        k = torch.cat((keys(context, before), keys(zn, within)))
        v = torch.cat((context, zn)) @ a.v_proj.weight.T
        v = v.view(-1, c.kv_heads, c.head_dim)
        found = []
        for h in range(c.heads):
            kv = h // c.group_size
            weights = (q[:, h] @ k[:, kv].T / c.head_dim**0.5).softmax(-1)
            found.append(weights @ v[:, kv])
        z = z + torch.cat(found, dim=1) @ a.o_proj.weight.T
        zn, mlp = norm(z, layer.post_attention_layernorm.weight), layer.mlp
        gated = F.silu(zn @ mlp.gate_proj.weight.T) * (zn @ mlp.up_proj.weight.T)
        z = z + gated @ mlp.down_proj.weight.T
    return norm(z, head.norm.weight)


@torch.no_grad()
def test_the_trunk_follows_the_equations() -> None:
    target, head = tiny_target(), tiny_dflash()
    table = target.weights.embed
    found = head(blocks_at(target, [6, 9]), table)[0]
    for block, anchor in enumerate((6, 9)):
        expected = by_the_book(head, read(target)[:anchor], TEXT[anchor], table)
        torch.testing.assert_close(found[block], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("views", VIEWS.values(), ids=VIEWS)
def test_drafting_computes_what_training_does(views: tuple[View, ...]) -> None:
    target, head = tiny_target(), tiny_dflash(block_config(views=views))
    with torch.no_grad():
        trained = head(blocks_at(target, [3, 9]), target.weights.embed)[0]
    features, decoder = read(target), BlockDecoder(head, target)
    for block, anchor in enumerate((3, 9)):
        decoder.read(features[decoder.length : anchor])
        drafted = decoder.block(TEXT[anchor], head.config.block)
        torch.testing.assert_close(drafted, trained[block], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("views", VIEWS.values(), ids=VIEWS)
def test_the_cache_is_exact(views: tuple[View, ...]) -> None:
    target, head = tiny_target(), tiny_dflash(block_config(views=views))
    features, cached = read(target), BlockDecoder(head, target)
    for length in (1, 2, 6, 7, 12):
        cached.read(features[cached.length : length])
        fresh = BlockDecoder(head, target)
        fresh.read(features[:length])
        assert torch.equal(cached.block(TEXT[length], 5), fresh.block(TEXT[length], 5))


def test_a_block_leaves_nothing_behind() -> None:
    target, decoder = tiny_target(), BlockDecoder(tiny_dflash(), tiny_target())
    features = read(target)
    decoder.read(features[:6])
    first = decoder.block(TEXT[6], 5)
    decoder.block(1, 3)
    assert decoder.length == 6
    assert torch.equal(decoder.block(TEXT[6], 5), first)


def test_a_block_without_context_is_drafted_from_its_anchor() -> None:
    decoder = BlockDecoder(tiny_dflash(), tiny_target())
    assert torch.isfinite(decoder.block(TEXT[0], 5)).all()


def test_early_slots_see_later_ones_unless_the_layers_are_causal() -> None:
    target = tiny_target()
    for views, same in ((VIEWS["whole"], False), (VIEWS["causal"], True)):
        decoder = BlockDecoder(tiny_dflash(block_config(views=views)), target)
        decoder.read(read(target)[:6])
        long, short = decoder.block(TEXT[6], 5)[:3], decoder.block(TEXT[6], 3)
        assert torch.allclose(long, short, atol=1e-6) is same


@torch.no_grad()
def test_blocks_see_neither_each_other_nor_the_text_from_their_anchor_on() -> None:
    target, head = tiny_target(), tiny_dflash()
    blocks = blocks_at(target, [4, 8])
    before = head(blocks, target.weights.embed)
    blocks.features[:, 4:] += 1.0
    blocks.tokens[:, 5:] = 1
    after = head(blocks, target.weights.embed)
    assert torch.equal(before[:, 0], after[:, 0])
    assert not torch.allclose(before[:, 1], after[:, 1])


def test_every_weight_is_reached_by_the_loss() -> None:
    target, head = tiny_target(), tiny_dflash(owned=Owned(mask=True))
    hidden = head(blocks_at(target, [4, -1]), target.weights.embed)
    head.logits(hidden[:, :1], target.weights.head.weight).logsumexp(-1).sum().backward()
    assert all(weight.grad is not None and weight.grad.any() for weight in head.parameters())


def test_padding_blocks_are_finite() -> None:
    target, head = tiny_target(), tiny_dflash()
    with torch.no_grad():
        assert torch.isfinite(head(blocks_at(target, [-1, 5]), target.weights.embed)).all()


def test_a_mask_embedding_stands_for_the_mask_row_anchor_included() -> None:
    target, head = tiny_target(), tiny_dflash(owned=Owned(mask=True))
    own = own_tables(head, target)
    for anchor in (TEXT[6], MASK):
        found = []
        for each in (head, own):
            decoder = BlockDecoder(each, target)
            decoder.read(read(target)[:6])
            hidden = decoder.block(anchor, 5)
            found.append((hidden, decoder.logits(hidden)))
        assert torch.equal(found[0][0], found[1][0])
        torch.testing.assert_close(found[0][1], found[1][1])
    with torch.no_grad():
        anchors = torch.tensor([5, MASK])
        ours = head.embed(anchors, 3, target.weights.embed)
        assert torch.equal(ours, own.embed(anchors, 3, target.weights.embed))


@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_layer_ids_are_hidden_states_of_transformers(family: str) -> None:
    settings = TinyShape(layers=4).settings(family)
    config = read_llama_config(settings, name=family)
    tensors = tiny_tensors(config)
    target = LlamaTarget.from_tensors(config, tensors).with_taps(TAPS)
    reference = AutoModelForCausalLM.from_config(AutoConfig.for_model(**settings)).eval()
    reference.load_state_dict(tensors)
    with torch.no_grad():
        out = reference(torch.tensor([TEXT]), output_hidden_states=True).hidden_states
    for tap, layer in enumerate(TAPS):
        torch.testing.assert_close(read(target)[:, tap], out[layer][0], rtol=1e-4, atol=1e-5)
        assert not torch.allclose(out[layer], out[layer + 1], atol=1e-2)


def test_a_config_that_contradicts_itself_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"block is 1; allowed: 2 or more"):
        block_config(block=1)
    with pytest.raises(ConfigError, match="views is 1; allowed: one per layer, 2"):
        replace(block_config(), views=(View(),))
    with pytest.raises(ConfigError, match="taps"):
        block_config(taps=())
