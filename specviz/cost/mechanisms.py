"""The six mechanisms of NVIDIA's table, as data, beside the schemes of specviz that run them.

Source: NVIDIA Technical Blog, "Co-Designing AI Models Using Speculative Decoding for Faster LLM
Inference" (2 Sep 2026), table 1, in our own words.
"""

from dataclasses import dataclass

from specviz.cost.speedup import BLOCK_DRAFTING, Drafting
from specviz.words import _

SOURCE = "NVIDIA Technical Blog, 2 Sep 2026, table 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """One row of the table. `schemes` are the names used here and by vLLM."""

    name: str
    schemes: tuple[str, ...]
    drafting: Drafting
    module: str
    inputs: str
    runs: str
    shipped: str
    training: str
    memory: str
    latency: str
    verdict: str


def mechanisms() -> tuple[Mechanism, ...]:
    """Return the six rows in the language of the page."""
    return (
        Mechanism(
            name=_("External draft model"),
            schemes=("draft_model",),
            drafting="serial",
            module=_("a small language model"),
            inputs=_("token ids"),
            runs=_("D passes"),
            shipped=_("a release of its own"),
            training=_("1T-10T+ tokens from scratch, 100B-400B distilled, 10M-1B adapted"),
            memory=_("weights and a full KV cache"),
            latency=_("a full draft pass, D times"),
            verdict=_("best where drafting runs on other hardware; not recommended on a GPU alone"),
        ),
        Mechanism(
            name="EAGLE-3",
            schemes=("eagle3",),
            drafting="serial",
            module=_("decoder layers and a linear projection"),
            inputs=_("embedding of the last token, hidden states of the target"),
            runs=_("D passes"),
            shipped=_("a head trained afterwards"),
            training=_("1B-10B tokens"),
            memory=_("weights and a small KV cache"),
            latency=_("one layer, serial"),
            verdict=_("a reference point; others accept more"),
        ),
        Mechanism(
            name="MTP",
            schemes=("mtp",),
            drafting="serial",
            module=_("decoder layers and a linear projection"),
            inputs=_("last hidden state of the target"),
            runs=_("D passes"),
            shipped=_("inside the model's own checkpoint"),
            training=_("with the model's pretraining"),
            memory=_("weights and a small KV cache"),
            latency=_("one layer, serial"),
            verdict=_("best for larger models on GPUs"),
        ),
        Mechanism(
            name="DFlash",
            schemes=("dflash",),
            drafting="one_pass",
            module=_("decoder layers, target features fused into their keys and values"),
            inputs=_("hidden states of the target"),
            runs=_("1 pass for D tokens"),
            shipped=_("a head trained afterwards"),
            training=_("1B-10B tokens"),
            memory=_("weights and a KV cache"),
            latency=_("about 5 layers, once"),
            verdict=_("smaller models, batch 1"),
        ),
        Mechanism(
            name="DSpark",
            schemes=("dspark",),
            drafting="block_markov",
            module=_("DFlash with a light Markov head"),
            inputs=_("hidden states of the target"),
            runs=_("1 pass, then the head once per token"),
            shipped=_("a head trained afterwards"),
            training=_("as DFlash"),
            memory=_("as DFlash"),
            latency=_("about 5 layers once, and the Markov head"),
            verdict=_("smaller models, batch 1"),
        ),
        Mechanism(
            name=_("Suffix and n-gram"),
            schemes=("ngram", "suffix"),
            drafting="lookup",
            module=_("string matching"),
            inputs=_("the text so far"),
            runs=_("1 lookup"),
            shipped=_("nothing to ship"),
            training=_("none"),
            memory=_("none"),
            latency=_("about 0"),
            verdict=_("output that repeats itself or its prompt"),
        ),
    )


def mechanism_of(scheme: str) -> Mechanism | None:
    """Return the row of a scheme, None for plain decoding."""
    return next((row for row in mechanisms() if scheme in row.schemes), None)


def plans_blocks(scheme: str) -> bool:
    """Whether a scheme drafts a block as a whole, so that its rates hold for one D only."""
    row = mechanism_of(scheme)
    return row is not None and row.drafting in BLOCK_DRAFTING
