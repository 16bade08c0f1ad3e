"""What every head is."""

from typing import ClassVar

from torch import nn


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
