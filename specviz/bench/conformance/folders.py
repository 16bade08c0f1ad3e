"""What both engines read: heads in the speculators layout, draft models as whole folders."""

from pathlib import Path

import torch

from specviz.heads import load as heads
from specviz.heads.dflash import DFlashHead
from specviz.heads.dflash_tables import own_tables
from specviz.heads.eagle3 import Eagle3Head
from specviz.heads.small_llama import is_small_llama, write_whole
from specviz.models.target import Target


def export(drafter: Path, out: Path, target: Target, target_folder: Path) -> Path:
    """Write a head or draft model, packed or not, in bfloat16; return the folder to read.

    A draft model that is whole already is read where it lies.

    Raises:
        ModelError: it cannot be read, or is of another target.
        ConfigError: the speculators layout cannot say what this head is.
    """
    if is_small_llama(drafter):
        write_whole(drafter, out, target, target_folder)
        return out
    if _is_model(drafter):
        return drafter
    head = heads.load(drafter, target)
    layout = "speculators-mtp"
    if isinstance(head, Eagle3Head):
        layout = "speculators-eagle3"
    elif isinstance(head, DFlashHead):
        layout = "speculators-block"
        if head.owned.mask:  # engines know a mask token, no mask embedding
            head = own_tables(head, target)
    heads.save(head.to(torch.bfloat16), out, layout)
    return out


def draft_length(folder: Path, target: Target, asked: int) -> int:
    """Return D for what `folder` holds: a block head drafts whole blocks in both engines."""
    if _is_model(folder):
        return asked
    head = heads.load(folder, target)
    return head.config.most if isinstance(head, DFlashHead) else asked


def _is_model(folder: Path) -> bool:
    return (folder / "tokenizer.json").is_file()
