"""Random heads for tiny targets, and targets that keep what such heads read."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from specviz.heads.eagle3 import Eagle3Config, Eagle3Head
from specviz.heads.layers import LatentShape, LayerShape
from specviz.heads.mtp import MtpConfig, MtpHead
from specviz.heads.recurrent import RecurrentHead
from specviz.models.llama import LlamaTarget
from specviz.models.rope import Rope
from specviz.models.tiny import Family, tiny_llama

SHAPE = LayerShape(
    hidden=32, heads=4, kv_heads=2, head_dim=8, intermediate=48, eps=1e-5, rope=Rope(theta=5000.0)
)
LATENT = replace(
    SHAPE,
    kv_heads=4,
    head_dim=12,
    rotary=4,
    latent=LatentShape(kv_rank=12, turning=4, still=8, value=6, q_rank=10),
)
VOCAB = 64
IDS = torch.arange(1, 64, 2)  # the odd tokens


def randomise(head: nn.Module, seed: int = 0) -> None:
    """Give every parameter a value that shows when it is ignored."""
    generator = torch.Generator().manual_seed(seed)
    for name, weight in head.named_parameters():
        noise = torch.randn(weight.shape, generator=generator)
        if "norm" in name:
            weight.data = 1 + 0.3 * noise
        else:
            weight.data = noise * weight.shape[-1] ** -0.5 * (4.0 if "lm_head" in name else 1.0)


def eagle3_head(seed: int = 0, *, draft_ids: Tensor | None = IDS, **changes: object) -> Eagle3Head:
    settings: dict[str, object] = {
        "layer": SHAPE,
        "taps": (1, 2, 3),
        "target_hidden": 32,
        "vocab": VOCAB,
        "draft_vocab": VOCAB if draft_ids is None else len(draft_ids),
    }
    head = Eagle3Head(Eagle3Config(**(settings | changes)), draft_ids)  # type: ignore[arg-type]
    randomise(head, seed)
    return head


def mtp_head(seed: int = 0, **changes: object) -> MtpHead:
    settings: dict[str, object] = {"layer": SHAPE, "layers": 4, "vocab": VOCAB}
    head = MtpHead(MtpConfig(**(settings | changes)))  # type: ignore[arg-type]
    randomise(head, seed)
    return head


def target_for(head: RecurrentHead, family: Family = "llama", **shape: int) -> LlamaTarget:
    return tiny_llama(seed=1, family=family, layers=4, vocab=VOCAB, **shape).with_taps(head.taps)


def features_of(target: LlamaTarget, tokens: tuple[int, ...]) -> Tensor:
    """True features of all tokens but the last [len(tokens) - 1, taps, hidden]."""
    target.truncate(0)
    target.prefill(tokens[:-1])
    assert target.features is not None
    return target.features.clone()


def random_text(length: int, seed: int = 0) -> tuple[int, ...]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randint(VOCAB, (length,), generator=generator).tolist())
