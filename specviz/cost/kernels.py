"""How real attention kernels lay the G * (1 + D) rows of a verify pass into their row tiles.

Rules were read from the kernels' open sources (versions in `Kernel.version`). They say how many
rows are computed, not how long that takes; `relative_time` is there only where a source has it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from specviz.cost import kernel_rows as rows
from specviz.cost.hardware import Family
from specviz.cost.kernel_rows import Layout, Rule
from specviz.errors import ConfigError
from specviz.words import _, later

Attention = Literal["gqa", "mla"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One attention kernel. `tile` is its largest row tile at head size 128."""

    name: str
    title: str
    version: str
    families: tuple[Family, ...]
    tile: int
    rule: Rule
    attention: tuple[Attention, ...] = ("gqa",)
    packs: bool = True  # the heads of a group into one tile, also when 1 + D > 1
    tree: str = later("no")  # how a tree of drafts can be masked
    note: str = ""

    def layout(self, group: int, tokens: int, head_dim: int = 128) -> Layout:
        """Lay out `tokens` = 1 + D rows of each of `group` query heads."""
        if group < 1 or tokens < 1 or head_dim < 1:
            text = _("G is {g}, 1 + D is {q}, the head size {d}; allowed: 1 or more of each")
            raise ConfigError(text.format(g=group, q=tokens, d=head_dim))
        return self.rule(group, tokens, head_dim)

    def free_length(self, group: int, head_dim: int = 128) -> int:
        """D* of this kernel: the longest draft that still fits one block, at least 0."""
        widest = max(self.tile, self.layout(1, 1, head_dim).tile)
        length = 0
        while True:
            longer = self.layout(group, length + 2, head_dim)
            if longer.blocks > 1 or longer.tile > widest:
                return length
            length += 1

    def edge(self, head_dim: int = 128) -> int | None:
        """Rows per KV head that fit one block; None for a kernel without such an edge."""
        if not self.packs or "mla" in self.attention:
            return self.tile if self.tile > 1 else None
        return self.free_length(1, head_dim) + 1


_FA, _FI = "flash-attention @0251105a", "flashinfer @fb28d724"
_ANY: tuple[Family, ...] = ("ampere", "ada", "hopper", "blackwell", "blackwell-rtx", "cdna")

KERNELS: Mapping[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        Kernel(
            name="trtllm-gen",
            title="TensorRT-LLM gen",
            version=_FI,
            families=("blackwell",),
            tile=128,
            rule=rows.ladder,
            note=later(
                "whole tokens only; with idle SMs it may choose smaller tiles and more blocks"
            ),
        ),
        Kernel(
            name="prims-ts",
            title="FlashInfer prims_ts",
            version=_FI,
            families=("blackwell",),
            tile=128,
            rule=rows.ladder,
            note=later("open port of trtllm-gen, same ladder and timing model"),
        ),
        Kernel(
            name="fa4",
            title="FlashAttention 4",
            version=_FA,
            families=("blackwell",),
            tile=128,
            rule=rows.fa4,
            tree="mask_mod",
            note=later("at head size 256 a kernel of its own that does not pack this way"),
        ),
        Kernel(
            name="fa3",
            title="FlashAttention 3",
            version=_FA,
            families=("hopper",),
            tile=128,
            rule=rows.fa3,
            note=later("may leave the heads unpacked when 1 + D is near a multiple of 128"),
        ),
        Kernel(
            name="fa4-sm90",
            title="FlashAttention 4 (Hopper)",
            version=_FA,
            families=("hopper",),
            tile=128,
            rule=rows.fa3,
            tree="mask_mod",
        ),
        Kernel(
            name="fa2",
            title="FlashAttention 2",
            version="flash-attn 2.8.3",
            families=("ampere", "ada", "hopper"),
            tile=64,
            rule=rows.fa2,
            packs=False,
            note=later(
                "packs heads only when 1 + D = 1: a verify pass reads the KV once per query head"
            ),
        ),
        Kernel(
            name="xqa-hopper",
            title="XQA (Hopper)",
            version=_FI,
            families=("hopper",),
            tile=64,
            rule=rows.xqa_hopper,
            tree=later("packed bits"),
        ),
        Kernel(
            name="xqa",
            title="XQA (Ampere, Ada)",
            version=_FI,
            families=("ampere", "ada"),
            tile=32,
            rule=rows.fixed(32),
            tree=later("packed bits"),
        ),
        Kernel(
            name="flashinfer-fa2",
            title="FlashInfer FA2",
            version=_FI,
            families=("ampere", "ada", "hopper", "blackwell-rtx"),
            tile=128,
            rule=rows.flashinfer_fa2,
            tree="custom_mask",
        ),
        Kernel(
            name="vllm-triton",
            title="vLLM Triton unified",
            version="vLLM 0.33",
            families=_ANY,
            tile=16,
            rule=rows.vllm_triton,
            tree="qq_bias",
            note=later("a step every 16/G tokens; the KV is split only when 1 + D = 1"),
        ),
        Kernel(
            name="flex-decoding",
            title="PyTorch flex_decoding",
            version="torch 2.13",
            families=_ANY,
            tile=16,
            rule=rows.flex,
            tree="mask_mod",
            note=later("rows double at powers of two; a G that is none goes another way"),
        ),
        Kernel(
            name="sdpa",
            title="PyTorch SDPA (math)",
            version="torch 2.13",
            families=("cpu", "other"),
            tile=1,
            rule=rows.fixed(1),
            packs=False,
            tree="attn_mask",
            note=later("no row tile: keys and values are repeated for every head"),
        ),
        Kernel(
            name="rocm-ck",
            title="ROCm CK unified",
            version="AITER",
            families=("cdna",),
            tile=128,
            rule=rows.rocm,
        ),
        Kernel(
            name="flashmla",
            title="FlashMLA",
            version="FlashMLA @9241ae3",
            families=("hopper",),
            tile=64,
            rule=rows.fixed(64),
            attention=("mla",),
        ),
        Kernel(
            name="trtllm-mla",
            title="TensorRT-LLM gen, MLA",
            version=_FI,
            families=("blackwell",),
            tile=64,
            rule=rows.mla_ladder,
            attention=("mla",),
            note=later("every drafted token takes a block of its own, also below a full tile"),
        ),
        Kernel(
            name="tokenspeed-mla",
            title="tokenspeed-mla",
            version="tokenspeed-mla 2.0.4",
            families=("blackwell",),
            tile=128,
            rule=rows.fixed(128),
            attention=("mla",),
        ),
    )
}

# What an engine takes by default on such a part, for the model's attention.
_DEFAULT: Mapping[tuple[Attention, Family], str] = {
    ("gqa", "hopper"): "fa3",
    ("gqa", "blackwell"): "trtllm-gen",
    ("gqa", "ampere"): "flashinfer-fa2",
    ("gqa", "ada"): "flashinfer-fa2",
    ("gqa", "blackwell-rtx"): "flashinfer-fa2",
    ("gqa", "cdna"): "rocm-ck",
    ("gqa", "cpu"): "sdpa",
    ("gqa", "other"): "sdpa",
    ("mla", "hopper"): "flashmla",
    ("mla", "blackwell"): "tokenspeed-mla",
}


def default_kernel(family: Family, attention: Attention = "gqa") -> Kernel:
    """Return the kernel an engine usually takes on such a part."""
    return KERNELS[_DEFAULT.get((attention, family), "sdpa" if family == "cpu" else "vllm-triton")]


def find_kernel(name: str) -> Kernel:
    """Return a kernel by name.

    Raises:
        ConfigError: there is none of that name.
    """
    if name not in KERNELS:
        text = _("the kernel is {name!r}; known are {names}")
        raise ConfigError(text.format(name=name, names=", ".join(KERNELS)))
    return KERNELS[name]


def kernels_for(family: Family, attention: Attention) -> tuple[Kernel, ...]:
    """Return the kernels that run such attention on such a part."""
    return tuple(k for k in KERNELS.values() if family in k.families and attention in k.attention)
