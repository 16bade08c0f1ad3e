"""The GGUF container, versions 2 and 3: metadata, then tensors that stay on disk until used.

The gguf package has a reader too; it takes seconds for the 100,000 strings of a vocabulary, and
of a damaged file it says only where numpy gave up.
"""

import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from numpy.typing import NDArray

from specviz.errors import ModelCorrupt, UnsupportedModel
from specviz.words import _

Bytes = NDArray[np.uint8]

_STRING, _ARRAY = 8, 9
_SCALARS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True))


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor as stored: `data` [rows, bytes per row], uint8."""

    name: str
    shape: tuple[int, ...]  # rows first, as torch has it
    kind: GGMLQuantizationType
    data: Bytes


@dataclass(frozen=True, slots=True)
class GgufFile:
    """What is inside a file."""

    path: Path
    metadata: dict[str, object]
    tensors: dict[str, StoredTensor]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: tensor.shape for name, tensor in self.tensors.items()}


def read_gguf(path: Path) -> GgufFile:
    """Open a file.

    Raises:
        ModelCorrupt: not GGUF, or cut short.
        UnsupportedModel: a version or a tensor type that is not known here.
    """
    with path.open("rb") as head:
        start = head.read(8)
    if len(start) < 8 or start[:4] != b"GGUF":
        raise ModelCorrupt(
            _(
                "{path} is not a GGUF file: it starts with {start!r}, not b'GGUF'. Download it "
                "again, or give a model folder or a hub id."
            ).format(path=path, start=start[:4])
        )
    version = int.from_bytes(start[4:], "little")
    if version not in (2, 3):
        raise UnsupportedModel(
            _(
                "{path} is GGUF version {version}; versions 2 and 3 in little-endian order are read"
            ).format(path=path, version=version)
        )
    content: Bytes = np.asarray(np.memmap(path, dtype=np.uint8, mode="r"))
    try:
        return _parse(path, content)
    except (ValueError, KeyError, OverflowError, RecursionError, struct.error) as error:
        raise ModelCorrupt(
            _("{path} is damaged or cut short ({count} bytes; {error}). Download it again.").format(
                path=path, count=len(content), error=error
            )
        ) from error


def _parse(path: Path, content: Bytes) -> GgufFile:
    cursor = _Cursor(content)
    cursor.at = 8
    tensor_count, value_count = cursor.number("Q"), cursor.number("Q")
    metadata: dict[str, object] = {}
    for _index in range(value_count):
        key = cursor.text()
        metadata[key] = cursor.value(cursor.number("I"))
    heads = [_head(cursor) for _ in range(tensor_count)]
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment <= 0:
        raise ValueError(_("alignment {alignment}").format(alignment=alignment))
    start = -(-cursor.at // alignment) * alignment
    tensors = {}
    for head in heads:
        tensors[head.name] = _tensor(head, content[start:], path)
    return GgufFile(path, metadata, tensors)


@dataclass(frozen=True, slots=True)
class _Head:
    name: str
    sizes: tuple[int, ...]  # columns first, as stored
    kind: int
    at: int  # from the start of the data


def _head(cursor: "_Cursor") -> _Head:
    name = cursor.text()
    dimensions = cursor.number("I")
    if not 1 <= dimensions <= 8:
        raise ValueError(
            _("{name} has {dimensions} dimensions").format(name=name, dimensions=dimensions)
        )
    sizes = tuple(cursor.number("Q") for _ in range(dimensions))
    return _Head(name, sizes, kind=cursor.number("I"), at=cursor.number("Q"))


def _tensor(head: _Head, content: Bytes, path: Path) -> StoredTensor:
    try:
        kind = GGMLQuantizationType(head.kind)
    except ValueError:
        raise UnsupportedModel(
            _(
                "{path} stores {name} as type {kind}, which is not known here. Use another "
                "quantisation of this model, such as Q8_0 or Q4_K_M."
            ).format(path=path, name=head.name, kind=head.kind)
        ) from None
    block_values, block_bytes = GGML_QUANT_SIZES[kind]
    columns, *rows = head.sizes
    if columns % block_values:
        raise ValueError(
            _("{name} has rows of {columns}, no multiple of {block_values}").format(
                name=head.name, columns=columns, block_values=block_values
            )
        )
    row_bytes = columns // block_values * block_bytes
    end = head.at + row_bytes * prod(rows)
    if end > len(content):
        raise ValueError(
            _("{name} lacks {count} bytes").format(name=head.name, count=end - len(content))
        )
    data = content[head.at : end].reshape(-1, row_bytes)
    return StoredTensor(head.name, tuple(reversed(head.sizes)), kind, data)


class _Cursor:
    """Reads values one after another; running past the end is a ValueError."""

    def __init__(self, content: Bytes) -> None:
        self.at = 0
        self._content = content.data

    def take(self, size: int) -> memoryview:
        end = self.at + size
        if end > len(self._content):
            raise ValueError(_("it should go on to byte {end}").format(end=end))
        part = self._content[self.at : end]
        self.at = end
        return part

    def number(self, form: str) -> int:
        (value,) = struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))
        return int(value)

    def text(self) -> str:
        return bytes(self.take(self.number("Q"))).decode("utf-8")

    def value(self, kind: int, *, nested: bool = False) -> object:
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY and not nested:
            return self._array(self.number("I"), self.number("Q"))
        form = "<" + _SCALARS[kind]
        (value,) = struct.unpack(form, self.take(struct.calcsize(form)))
        return value

    def _array(self, kind: int, count: int) -> list[object]:
        if kind in (_STRING, _ARRAY):
            return [self.value(kind, nested=True) for _ in range(count)]
        form = np.dtype(_SCALARS[kind]).newbyteorder("<")
        values: list[object] = np.frombuffer(self.take(form.itemsize * count), form).tolist()
        return values
