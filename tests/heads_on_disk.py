"""Random heads for the tiny model of `tests.cli.folders`, saved as users get them."""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from specviz.heads.base import Head
from specviz.heads.load import save
from specviz.heads.small_llama import EMBED, HEAD, SHARED
from tests.cli.folders import VOCAB
from tests.heads.block_heads import VANILLA, block_config, spark_config, tiny_dflash, tiny_dspark
from tests.heads.random_heads import eagle3_head, mtp_head

LAYOUTS = {
    "eagle3": "eagle",
    "mtp": "speculators-mtp",
    "dflash": "z-lab",
    "dspark": "speculators-block",
}
LAYERS = 2  # of the target; heads of blocks do not read its last layer
TAPS = (1,)


def make_head(scheme: str) -> Head:
    """Make a head that drafts for the tiny model of two layers; EAGLE-3 knows the even ids only."""
    block = {"vocab": VOCAB, "draft_vocab": VOCAB, "mask_token": VOCAB - 1, "taps": TAPS}
    if scheme == "eagle3":
        even = torch.arange(0, VOCAB, 2)
        return eagle3_head(taps=TAPS, vocab=VOCAB, draft_ids=even, draft_vocab=len(even))
    if scheme == "mtp":
        return mtp_head(layers=LAYERS, vocab=VOCAB)
    if scheme == "dflash":
        return tiny_dflash(block_config(**block))
    return tiny_dspark(spark_config(VANILLA, **block))


def write_head(scheme: str, folder: Path) -> Path:
    """Save it in the layout its family publishes."""
    save(make_head(scheme), folder, LAYOUTS[scheme])
    return folder


def write_small_llama(model: Path, folder: Path) -> Path:
    """Save a model's first layer as a draft model that leaves its tables to the target."""
    settings = json.loads((model / "config.json").read_text())
    settings |= {"num_hidden_layers": 1, SHARED: [EMBED, HEAD]}
    tensors = load_file(model / "model.safetensors")
    kept = {n: t for n, t in tensors.items() if ".layers.0." in n or n == "model.norm.weight"}
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(settings))
    save_file(kept, folder / "model.safetensors")
    return folder
