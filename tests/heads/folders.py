"""Saved EAGLE-3 heads whose config and tensors a test can change."""

import json
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor

from specviz.heads.eagle3 import Eagle3Head
from specviz.heads.load import load, save
from specviz.models.target import TargetConfig
from tests.heads.random_heads import VOCAB, eagle3_head

TARGET = TargetConfig(
    name="t", layers=12, hidden=32, heads=4, kv_heads=2, head_dim=8, vocab=VOCAB, context=512
)


def read(folder: Path, layer_ids: tuple[int, ...] | None = None) -> Eagle3Head:
    head = load(folder, TARGET, layer_ids)
    assert isinstance(head, Eagle3Head)
    return head


class Folder:
    """A saved head whose config and tensors can be changed."""

    def __init__(self, path: Path, layout: str = "eagle", **changes: object) -> None:
        self.path = path
        save(eagle3_head(**changes), path, layout)
        self.config = json.loads((path / "config.json").read_text())
        self.tensors: dict[str, Tensor] = load_file(path / "model.safetensors")

    def write(self) -> Path:
        (self.path / "config.json").write_text(json.dumps(self.config))
        save_file(self.tensors, self.path / "model.safetensors")
        return self.path
