"""What every head is."""

from typing import ClassVar

from torch import Tensor, nn

from specviz.errors import DraftError
from specviz.words import _


class Head(nn.Module):
    """A network that drafts from hidden states of a target; its parameters are what is trained.

    `taps` are the hidden states it reads, as indices of transformers' `hidden_states`: hand them to
    `with_taps` of the target. `layout` names the checkpoint layout it was read from, `name` its
    folder and `sha` identifies its weights; all are "" if made here.
    """

    scheme: ClassVar[str]
    taps: tuple[int, ...]
    layout: str = ""
    name: str = ""
    sha: str = ""


def check_fed(features: Tensor) -> None:
    """Refuse features [rows, taps, hidden] of which a tap was never written.

    Such a head drafts badly and silently: this says so before the first draft.
    """
    silent = features.abs().amax(-1) == 0
    if silent.any():
        row, tap = silent.nonzero()[0].tolist()
        raise DraftError(
            _(
                "hidden state {tap} of text position {row} is all zeros: the target did not record "
                "it. Give the target its taps before the prompt is read."
            ).format(tap=tap, row=row)
        )
