"""Texts to train on: what the target itself answered, as token ids."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor

from specviz.errors import ConfigError
from specviz.words import _

HELD_OUT = 20  # every so many rows one is kept out of training
COLUMNS = ("prompt_ids", "output_ids", "temperature", "source")


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One prompt and the target's response; only the response is supervised."""

    tokens: tuple[int, ...]
    prompt_length: int
    greedy: bool  # the response is the target's argmax, so E[L] on it is exact
    kind: str  # class of the prompt
    held_out: bool = False  # for measuring, never trained on

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def response(self) -> tuple[int, ...]:
        return self.tokens[self.prompt_length :]


def read_corpora(paths: Sequence[Path], rows: int | None = None) -> list[Example]:
    """Read files of responses, `.parquet` or `.jsonl`; of each at most the first `rows`.

    Every 20th row of a file is held out.

    Raises:
        ConfigError: a file is missing, of another kind, or lacks a column.
    """
    examples: list[Example] = []
    for path in paths:
        if not path.is_file():
            raise ConfigError(
                _("there is no file {path}; give a .parquet or .jsonl of responses").format(
                    path=path
                )
            )
        if path.suffix == ".parquet":
            found: Iterator[Example] = _read_parquet(path)
        elif path.suffix == ".jsonl":
            found = _read_jsonl(path)
        else:
            raise ConfigError(
                _("{path} is neither .parquet nor .jsonl; those are read").format(path=path)
            )
        examples += islice(found, rows)
    if not examples:
        raise ConfigError(_("the corpus has no rows; give a file of responses"))
    return examples


def to_row(example: Example) -> dict[str, object]:
    """Return one line of a `.jsonl` corpus, the columns as in parquet."""
    return {
        "prompt_ids": list(example.tokens[: example.prompt_length]),
        "output_ids": list(example.response),
        "temperature": 0.0 if example.greedy else 1.0,
        "source": example.kind,
    }


def frequent_ids(examples: Iterable[Example], size: int, always: Iterable[int] = ()) -> Tensor:
    """Choose a draft vocabulary: the most frequent ids of responses that are trained on.

    `always` are ids that are in it whatever the text, as end tokens are. Fewer distinct ids are
    filled up with the lowest missing ones. Returned [size], rising.
    """
    counts: Counter[int] = Counter()
    for example in examples:
        if not example.held_out:
            counts.update(example.response)
    ranked = [*always, *(token for token, _ in counts.most_common())]
    chosen = list(dict.fromkeys(ranked))[:size]
    known, lowest = set(chosen), 0
    while len(chosen) < size:
        if lowest not in known:
            chosen.append(lowest)
        lowest += 1
    return torch.tensor(sorted(chosen))


def _read_parquet(path: Path) -> Iterator[Example]:
    import pyarrow
    import pyarrow.parquet

    try:
        file = pyarrow.parquet.ParquetFile(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise ConfigError(
            _("{path} is no parquet file: {error}").format(path=path, error=error)
        ) from error
    missing = [name for name in COLUMNS if name not in file.schema_arrow.names]
    if missing:
        raise ConfigError(
            _("{path} has no column {missing}; needed: {columns}").format(
                path=path, missing=missing[0], columns=", ".join(COLUMNS)
            )
        )
    row = 0
    for batch in file.iter_batches(batch_size=256, columns=list(COLUMNS)):
        for values in batch.to_pylist():
            yield _example(values, row, path)
            row += 1


def _read_jsonl(path: Path) -> Iterator[Example]:
    with path.open(encoding="utf-8") as lines:
        for row, line in enumerate(lines):
            try:
                values = json.loads(line)
            except ValueError as error:
                raise ConfigError(
                    _("{path}, line {row} is no JSON: {error}").format(
                        path=path, row=row + 1, error=error
                    )
                ) from error
            if not isinstance(values, dict) or any(name not in values for name in COLUMNS):
                raise ConfigError(
                    _(
                        "{path}, line {row} is no response; needed: {columns}. Prompts become "
                        "responses with `specviz train data`."
                    ).format(path=path, row=row + 1, columns=", ".join(COLUMNS))
                )
            yield _example(values, row, path)


def _example(values: Mapping[str, object], row: int, path: Path) -> Example:
    prompt, output, temperature = (values[name] for name in COLUMNS[:3])
    if not isinstance(prompt, list) or not isinstance(output, list) or not prompt:
        raise ConfigError(
            _("{path}, row {row}: prompt_ids and output_ids must be lists of ids").format(
                path=path, row=row
            )
        )
    return Example(
        tokens=(*prompt, *output),
        prompt_length=len(prompt),
        greedy=temperature == 0,
        kind=str(values["source"]),
        held_out=row % HELD_OUT == 0,
    )
