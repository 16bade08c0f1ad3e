"""Shape of the heads that draft a block in one pass: DFlash and, with shifted labels, DSpark."""

from dataclasses import dataclass
from typing import Literal

from specviz.config import require
from specviz.heads.layers import LayerShape
from specviz.words import _

MarkovKind = Literal["vanilla", "gated", "rnn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the rows of a block see in one layer.

    `window` positions back, counted from each row, or from the anchor for all rows at once
    (`from_anchor`: everything at anchor - window and after); None for the whole context. Inside
    the block rows see each other, or only earlier ones (`causal`).
    """

    window: int | None = None
    from_anchor: bool = False
    causal: bool = False


WHOLE = View()


@dataclass(frozen=True, slots=True, kw_only=True)
class DSparkShape:
    """What DSpark adds to the trunk (arXiv:2607.05147); `rank` 0 is no Markov head."""

    rank: int = 256
    kind: MarkovKind = "vanilla"
    confidence: bool = True
    confidence_sees_markov: bool = True  # its input is [hidden; embedding], else hidden alone


@dataclass(frozen=True, slots=True, kw_only=True)
class DFlashConfig:
    """Everything a block head needs beside its tensors (arXiv:2602.06036).

    `taps` are indices as in `hidden_states` of transformers, in the order `fc` expects them.
    `block` counts the anchor's row. In DFlash that row predicts nothing; with
    `anchor_predicts` row k says the token k + 1 after the anchor, so no row is wasted.
    """

    layer: LayerShape
    layers: int
    vocab: int  # rows of the target's head
    draft_vocab: int  # tokens this head can draft
    block: int
    mask_token: int
    taps: tuple[int, ...]
    views: tuple[View, ...] = ()  # one per layer; empty: every row sees everything
    anchor_predicts: bool = False
    dspark: DSparkShape | None = None

    def __post_init__(self) -> None:
        least = 1 if self.anchor_predicts else 2
        require(self.block >= least, "block", self.block, _("{least} or more").format(least=least))
        require(bool(self.taps), "taps", self.taps, _("at least one target layer"))
        if self.views:
            given = len(self.views)
            require(
                given == self.layers,
                "views",
                given,
                _("one per layer, {layers}").format(layers=self.layers),
            )

    @property
    def most(self) -> int:
        """Tokens one block drafts at most."""
        return self.block if self.anchor_predicts else self.block - 1

    def rows(self, drafts: int) -> int:
        """Rows of the block that drafts so many tokens."""
        return drafts if self.anchor_predicts else drafts + 1

    def view(self, layer: int) -> View:
        return self.views[layer] if self.views else WHOLE
