"""One record per GPU: what it can move and compute, and where each figure comes from.

Rates are dense, in FLOP/s, B/s and exponentials/s. A data-sheet peak is never reached: `achieved`
scales it by what a real part delivered. A machine that was measured needs no such factor.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Literal

from specviz.errors import ConfigError
from specviz.words import _, later

How = Literal["measured", "published", "modelled"]
Family = Literal["ampere", "ada", "hopper", "blackwell", "blackwell-rtx", "cdna", "cpu", "other"]
Math = Literal["float32", "bfloat16", "fp8", "fp4"]

THIS = "this"  # the machine specviz runs on, once it was measured
TERA, GIGA = 1e12, 1e9

# H200 as measured: device copy 4.3 of 4.8 TB/s, BF16 GEMM 769 to 798 of 989 TFLOPS, random data.
COPY_SHARE, MATMUL_SHARE = 4.3 / 4.8, 783.5 / 989
SHARES = later("H200: copy 4.3 of 4.8 TB/s, BF16 GEMM 769-798 of 989 TFLOPS")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One part. `sources` says for every figure where it was read; `how`, how it is known."""

    name: str
    title: str
    family: Family
    bf16: float  # FLOP/s, FP32 accumulation
    fp8: float | None = None
    fp4: float | None = None
    fp32: float | None = None
    bandwidth: float  # B/s
    memory: float  # bytes
    sms: int | None = None
    exps: float | None = None  # exponentials/s of the whole part
    op_seconds: float = 3e-6  # least time of one operation, however little it moves
    how: How = "published"
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for figure in ("bf16", "bandwidth", "memory"):
            value = getattr(self, figure)
            if not (0 < value < math.inf):
                text = _("{figure} of {name} is {value}; allowed: a number above 0")
                raise ConfigError(text.format(figure=figure, name=self.name, value=value))

    @property
    def achieved(self) -> "Gpu":
        """The same part at the rates one really gets; a measured machine is left as it is."""
        if self.how == "measured":
            return self
        share = MATMUL_SHARE
        return replace(
            self,
            bf16=self.bf16 * share,
            fp8=self.fp8 and self.fp8 * share,
            fp4=self.fp4 and self.fp4 * share,
            fp32=self.fp32 and self.fp32 * share,
            bandwidth=self.bandwidth * COPY_SHARE,
            how="modelled",
        )

    def rate(self, math_type: Math) -> float:
        """FLOP/s of a matmul in `math_type`; what the part lacks runs in the next wider type."""
        if math_type == "float32":
            return self.fp32 or self.bf16
        chain = {"bfloat16": (self.bf16,), "fp8": (self.fp8,), "fp4": (self.fp4, self.fp8)}
        return next((rate for rate in chain[math_type] if rate), self.bf16)


_AIC = "NVIDIA aiconfigurator-core 0.12.0, systems yaml (cites the data sheet)"
_SECOND = "second-hand list, not a vendor's document"
_CLOCK = "derived: SMs x 16 per clock x boost clock (FlashAttention-4 notes)"


def _gpu(  # one line per part below is easier to check than thirteen blocks
    name: str, title: str, family: Family, rates: tuple[float | None, ...], exps: float | None
) -> Gpu:
    """Rates: BF16, FP8, FP4 in TFLOPS, TB/s, GB of memory, SMs."""
    bf16, fp8, fp4, bandwidth, memory, sms = rates
    source = _AIC if name in _FROM_AIC else _SECOND
    sources = dict.fromkeys(("bf16", "fp8", "fp4", "bandwidth", "memory"), source)
    return Gpu(
        name=name,
        title=title,
        family=family,
        bf16=(bf16 or 0) * TERA,
        fp8=fp8 and fp8 * TERA,
        fp4=fp4 and fp4 * TERA,
        bandwidth=(bandwidth or 0) * TERA,
        memory=(memory or 0) * GIGA,
        sms=int(sms) if sms else None,
        exps=exps and exps * TERA,
        sources=sources
        | _OWN.get(name, {})
        | {"exps": _CLOCK, "sms": "vendor's architecture paper", "op_seconds": _AIC},
    )


_FROM_AIC = frozenset(("a100", "h100", "h200", "b200", "gb200", "b300", "gb300", "l40s"))
_OWN = {
    "rtx5090": {
        "bf16": "second-hand; FP32 accumulation. NVIDIA's yaml lists 419, the FP16-accumulate rate"
    },
    "epyc9654": {"bf16": "derived: 64 FLOP per clock and core x 96 cores x 2.4 GHz"},
    "xeon6980p": {"bf16": "derived: AMX, 1024 FLOP per clock and core x 128 cores x 2.0 GHz"},
    "mi300x": {"bf16": "second-hand; some sites list the FP8 rate, 2615, as FP16"},
    "b300": {"exps": "derived: twice B200 (second-hand: 10.7 against 5 tera-exponentials/s)"},
    "gb300": {"exps": "derived: twice GB200 (second-hand: 10.7 against 5 tera-exponentials/s)"},
}

GPUS: Mapping[str, Gpu] = {
    gpu.name: gpu
    for gpu in (
        _gpu("a100", "A100 SXM 80GB", "ampere", (312, None, None, 2.039, 80, 108), 2.44),
        _gpu("h100", "H100 SXM", "hopper", (989, 1978, None, 3.35, 80, 132), 3.70),
        _gpu("h200", "H200 SXM", "hopper", (989, 1978, None, 4.8, 141, 132), 3.70),
        _gpu("b200", "B200 SXM", "blackwell", (2250, 4500, 9000, 7.7, 180, 148), 4.38),
        _gpu("gb200", "GB200", "blackwell", (2500, 5000, 10000, 8.0, 185, 148), 4.38),
        _gpu("b300", "B300 SXM", "blackwell", (2250, 4500, 14000, 7.75, 288, 148), 8.76),
        _gpu("gb300", "GB300", "blackwell", (2500, 5000, 15000, 8.0, 288, 148), 8.76),
        _gpu("l40s", "L40S", "ada", (362, 733, None, 0.864, 48, 142), 5.73),
        _gpu("rtx4090", "RTX 4090", "ada", (165.2, 330.3, None, 1.008, 24, 128), 5.16),
        _gpu("rtx5090", "RTX 5090", "blackwell-rtx", (209.5, 419, None, 1.792, 32, 170), 6.55),
        _gpu("mi300x", "MI300X", "cdna", (1307, 2615, None, 5.3, 192, None), None),
        _gpu("epyc9654", "EPYC 9654 (96C)", "cpu", (14.7, None, None, 0.4608, 768, None), None),
        _gpu("xeon6980p", "Xeon 6980P, AMX", "cpu", (262, None, None, 0.8448, 768, None), None),
    )
}


def find_gpu(name: str, this: Gpu | None = None) -> Gpu:
    """Return the record of a part; "this" is the measured machine, if there is one.

    Raises:
        ConfigError: nothing is known under that name.
    """
    if name == THIS:
        if this is None:
            raise ConfigError(
                _(
                    "this machine was not measured yet; run: python -m specviz advise --measure, "
                    "or choose one of {names}"
                ).format(names=", ".join(GPUS))
            )
        return this
    key = name.lower().replace(" ", "").replace("-", "")
    if key not in GPUS:
        text = _("the GPU is {name!r}; known are {names}, and {this!r} once it was measured")
        raise ConfigError(text.format(name=name, names=", ".join(GPUS), this=THIS))
    return GPUS[key]


def to_json(machine: Gpu) -> str:
    """Return a record as JSON, for the cache folder."""
    return json.dumps(asdict(machine) | {"sources": dict(machine.sources)}, indent=1)


def from_json(text: str) -> Gpu | None:
    """Read what `to_json` wrote; None for anything else, so that it is measured again."""
    try:
        known = json.loads(text)
        return Gpu(**known)
    except (ValueError, TypeError):
        return None
