"""Hidden states of the target for every token of a corpus: in shards on disk, or made again."""

import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Protocol, Self

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from specviz.errors import ConfigError, ModelCorrupt
from specviz.models.store import Progress, silent
from specviz.models.target import Target
from specviz.train.corpus import Example
from specviz.words import _

SHARD = 64  # examples; about 70 MB with four taps of 576
OPEN = 8  # shards kept mapped


class Tapped(Target, Protocol):
    """A target that can be told which hidden states to keep."""

    def with_taps(self, taps: Sequence[int]) -> Self: ...


class Source(Protocol):
    """Examples and, for each, hidden states [tokens, taps, hidden]."""

    @property
    def taps(self) -> tuple[int, ...]:
        """Indices of transformers' hidden_states; the last is after the final norm."""
        ...

    @property
    def examples(self) -> Sequence[Example]: ...

    def features(self, index: int) -> Tensor: ...


def read_taps(target: Tapped, tokens: Sequence[int]) -> Tensor:
    """Run `tokens` through a tapped target; return features [tokens, taps, hidden], a copy."""
    target.truncate(0)
    target.prefill(tokens)
    assert target.features is not None
    return target.features.clone()


class Recomputed:
    """Features made anew each time they are asked for: slow, and no disk."""

    def __init__(self, target: Tapped, examples: Sequence[Example], taps: Sequence[int]) -> None:
        self.taps, self.examples = tuple(taps), examples
        self._target = target.with_taps(self.taps)

    def features(self, index: int) -> Tensor:
        return read_taps(self._target, self.examples[index].tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheKey:
    """What the shards of a folder were made of."""

    model: str
    sha: str
    taps: tuple[int, ...]
    hidden: int
    dtype: str

    @classmethod
    def of(cls, target: Tapped, taps: Sequence[int]) -> "CacheKey":
        c = target.config
        dtype = str(target.dtype).removeprefix("torch.")
        return cls(model=c.name, sha=c.sha, taps=tuple(taps), hidden=c.hidden, dtype=dtype)


def extract(
    target: Tapped,
    examples: Sequence[Example],
    folder: Path,
    taps: Sequence[int],
    progress: Progress = silent,
) -> "FeatureCache":
    """Write features of `examples` to `folder` in shards; those already there are kept.

    Raises:
        ConfigError: the folder holds features of another target or of other taps.
    """
    key, tapped = CacheKey.of(target, taps), target.with_taps(taps)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "key.json"
    if path.is_file():
        _check_key(_read_key(path), key, folder)
    else:
        path.write_text(json.dumps({f.name: getattr(key, f.name) for f in fields(key)}) + "\n")
    for start in range(0, len(examples), SHARD):
        shard = folder / f"features-{start // SHARD:05}.safetensors"
        progress("reading hidden states of the target", start / len(examples))
        wanted = examples[start : start + SHARD]
        if not _holds(shard, wanted):
            _write_shard(tapped, wanted, shard)
    progress("reading hidden states of the target", 1.0)
    return FeatureCache(folder, len(examples))


def _holds(path: Path, examples: Sequence[Example]) -> bool:
    """Whether a shard is there and whole: the last one of a smaller corpus is not.

    Raises:
        ConfigError: it is of other texts.
    """
    if not path.is_file():
        return False
    with safe_open(path, "pt") as shard:
        found = shard.get_tensor("tokens").tolist()
    wanted = [token for example in examples for token in example.tokens]
    shared = min(len(found), len(wanted))
    if found[:shared] != wanted[:shared]:
        raise ConfigError(
            _("{path} holds features of other texts; give another folder for the features").format(
                path=path
            )
        )
    return len(found) >= len(wanted)


def _write_shard(target: Tapped, examples: Sequence[Example], path: Path) -> None:
    starts = [0]
    for example in examples:
        starts.append(starts[-1] + len(example))
    tensors = {
        "features": torch.cat([read_taps(target, e.tokens).cpu() for e in examples]),
        "tokens": torch.tensor([t for e in examples for t in e.tokens], dtype=torch.int32),
        "starts": torch.tensor(starts),
    }
    about = [[e.prompt_length, e.greedy, e.kind, e.held_out] for e in examples]
    partial = path.with_suffix(".partial")
    save_file(tensors, partial, metadata={"examples": json.dumps(about)})
    partial.replace(path)


class FeatureCache:
    """Shards of one folder, memory-mapped: what is in memory is the batch at hand."""

    def __init__(self, folder: Path, most: int | None = None) -> None:
        """Open the folder, of its examples the first `most`, all that are there if None.

        Raises:
            ConfigError: there are no shards.
            ModelCorrupt: one is damaged.
        """
        if not (folder / "key.json").is_file():
            raise ConfigError(
                _("{folder} holds no features; extract them first").format(folder=folder)
            )
        self.key = _read_key(folder / "key.json")
        self.taps = self.key.taps
        self.examples: list[Example] = []
        self._places: list[tuple[Path, int, int]] = []
        for path in sorted(folder.glob("features-*.safetensors")):
            self._index(path)
        if not self.examples:
            raise ConfigError(
                _("{folder} has no features-*.safetensors; extract them first").format(
                    folder=folder
                )
            )
        del self.examples[most:], self._places[most:]
        self._open: OrderedDict[Path, safe_open] = OrderedDict()

    def features(self, index: int) -> Tensor:
        path, start, end = self._places[index]
        rows = self._shard(path).get_slice("features")  # type: ignore[no-untyped-call]
        found: Tensor = rows[start:end]
        return found

    def _index(self, path: Path) -> None:
        try:
            with safe_open(path, "pt") as shard:
                about = json.loads(shard.metadata()["examples"])
                starts, tokens = shard.get_tensor("starts").tolist(), shard.get_tensor("tokens")
        except (SafetensorError, OSError, KeyError, ValueError) as error:
            raise ModelCorrupt(
                _("{path} is damaged ({error}); delete it and extract again").format(
                    path=path, error=error
                )
            ) from error
        for (prompt, greedy, kind, out), start, end in zip(about, starts, starts[1:], strict=False):
            example = Example(
                tokens=tuple(tokens[start:end].tolist()),
                prompt_length=prompt,
                greedy=greedy,
                kind=kind,
                held_out=out,
            )
            self.examples.append(example)
            self._places.append((path, start, end))

    def _shard(self, path: Path) -> safe_open:
        if path in self._open:
            self._open.move_to_end(path)
        else:
            self._open[path] = safe_open(path, "pt")
            if len(self._open) > OPEN:
                self._open.popitem(last=False)
        return self._open[path]


class Joined:
    """Several sources as one; they must have the same taps."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.taps = sources[0].taps
        self.examples = [example for source in sources for example in source.examples]
        self._places = [(s, i) for s in sources for i in range(len(s.examples))]

    def features(self, index: int) -> Tensor:
        source, place = self._places[index]
        return source.features(place)


def _read_key(path: Path) -> CacheKey:
    values = json.loads(path.read_text("utf-8"))
    return CacheKey(**(values | {"taps": tuple(values["taps"])}))


def _check_key(found: CacheKey, wanted: CacheKey, folder: Path) -> None:
    for field in fields(CacheKey):
        old, new = getattr(found, field.name), getattr(wanted, field.name)
        if old != new:
            raise ConfigError(
                _(
                    "the features in {folder} are of {name} {old!r} and not {new!r}; give another "
                    "folder"
                ).format(folder=folder, name=field.name, old=old, new=new)
            )
