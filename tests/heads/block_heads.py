"""Random block heads on tiny targets, and what the tests of all of them need."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from specviz.config import SamplingParams
from specviz.drafters.base import Context
from specviz.heads.dflash import BORROWED, Blocks, DFlashHead, Owned
from specviz.heads.dflash_config import DFlashConfig, DSparkShape
from specviz.heads.dspark import DSparkHead
from specviz.heads.layers import LayerShape
from specviz.models.llama import LlamaTarget
from specviz.models.rope import Rope
from specviz.models.tiny import tiny_llama
from specviz.verify.draws import Draws

TAPS = (1, 3)
MASK = 63
VANILLA = DSparkShape(rank=6)
TEXT = (5, 9, 2, 33, 41, 7, 7, 12, 60, 3, 18, 25, 44)


def tiny_target(family: str = "llama", **shape: int) -> LlamaTarget:
    return tiny_llama(family=family, layers=4, **shape).with_taps(TAPS)


def block_config(**changes: object) -> DFlashConfig:
    layer = LayerShape(
        hidden=32,
        heads=4,
        kv_heads=2,
        head_dim=8,
        intermediate=48,
        eps=1e-6,
        rope=Rope(),
        qk_norm=True,
    )
    config = DFlashConfig(
        layer=layer, layers=2, vocab=64, draft_vocab=64, block=5, mask_token=MASK, taps=TAPS
    )
    return replace(config, **changes)


def spark_config(dspark: DSparkShape = VANILLA, **changes: object) -> DFlashConfig:
    return block_config(anchor_predicts=True, dspark=dspark, **changes)


def randomise(module: nn.Module, seed: int = 0) -> None:
    """Weights for which no two parts of a head say the same."""
    generator = torch.Generator().manual_seed(seed)
    for name, weight in module.named_parameters():
        noise = torch.randn(weight.shape, generator=generator)
        scale = 0.2 if weight.ndim == 1 else weight.shape[-1] ** -0.5
        weight.data = noise * scale + (1.0 if "norm" in name else 0.0)


def tiny_dflash(config: DFlashConfig | None = None, owned: Owned = BORROWED) -> DFlashHead:
    head = DFlashHead(config or block_config(), owned)
    randomise(head)
    return head


def tiny_dspark(config: DFlashConfig | None = None, owned: Owned = BORROWED) -> DSparkHead:
    head = DSparkHead(config or spark_config(), owned)
    randomise(head)
    return head


def read(target: LlamaTarget, text: tuple[int, ...] = TEXT) -> Tensor:
    """Features [len(text), taps, hidden] of a whole text."""
    target.truncate(0)
    target.prefill(text)
    features = target.features
    assert features is not None
    return features.clone()


def context(
    target: LlamaTarget, text: tuple[int, ...] = TEXT, params: SamplingParams | None = None
) -> Context:
    """What a drafter sees once `text` is committed: features of all tokens but the last."""
    params = params or SamplingParams()
    return Context(text, 1, params, Draws(params.seed), read(target, text[:-1]))


def blocks_at(target: LlamaTarget, anchors: list[int]) -> Blocks:
    return Blocks(read(target)[None], torch.tensor([TEXT]), torch.tensor([anchors]))
