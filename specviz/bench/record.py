"""Make the recordings that come with the program: `python -m specviz.bench.record [NAME ...]`.

With `--sweep LOG NAME` the log of a finished sweep, or its folder, becomes the recording NAME.
"""

import argparse
import gzip
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from specviz import recordings
from specviz.bench import prompts
from specviz.bench.runner import Request, run
from specviz.bench.sweep_log import FILE, read, records
from specviz.config import DrafterOptions, SamplingParams, SessionConfig
from specviz.errors import ConfigError
from specviz.models.load import Loaded, load
from specviz.traces.store import save
from specviz.words import _


@dataclass(frozen=True, slots=True)
class Recording:
    """One recording: its name, its built-in prompt, how long it is and what drafts."""

    name: str
    prompt_id: str
    tokens: int
    scheme: str = "ngram"
    draft_length: int = 5
    options: DrafterOptions = DrafterOptions()

    @property
    def config(self) -> SessionConfig:
        """All of it recorded."""
        return SessionConfig(
            scheme=self.scheme,
            draft_length=self.draft_length,
            options=self.options,
            detail="full",
        )


RECORDINGS = (
    Recording("ngram-copy", "copy-letter", 160),
    Recording("ngram-edit", "edit-rename", 160),
    Recording("ngram-chat", "chat-bread", 120),
    Recording("suffix-edit", "edit-rename", 160, "suffix"),
    Recording("draft_model-chat", "chat-bread", 120, "draft_model", 3),
    Recording("eagle3-chat", "chat-bread", 120, "eagle3", 3),
    Recording(
        "eagle3-tree", "chat-bread", 120, "eagle3", 12, DrafterOptions(tree_top_k=4, tree_depth=4)
    ),
    Recording("mtp-chat", "chat-bread", 120, "mtp", 3),
    Recording("dflash-chat", "chat-bread", 120, "dflash", 5),
    Recording("dspark-chat", "chat-bread", 120, "dspark", 5),
)


def record(loaded: Loaded, recording: Recording, folder: Path) -> Path:
    """Decode one prompt in full detail and save its trace."""
    prompt = prompts.find(recording.prompt_id)
    request = Request(
        prompt=prompt.text,
        params=SamplingParams(max_tokens=recording.tokens),
        config=recording.config,
        title=prompt.title,
    )
    file = folder / f"{recording.name}{recordings.SUFFIX}"
    save(run(loaded, request), file)
    return file


def record_sweep(log: Path, name: str, folder: Path) -> Path:
    """Pack the log of a sweep; its lines lose the name of their trace and nothing else.

    Raises:
        ConfigError: it is no log of a sweep, or holds no point.
    """
    log = log / FILE if log.is_dir() else log
    found = read(log)
    if all(sample.cell.scheme == "none" for sample in found.samples):
        raise ConfigError(_("{file} holds no point of a sweep yet").format(file=log))
    lines = (line | {"trace": ""} if "trace" in line else line for line in records(log))
    text = "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}{recordings.SWEEP_SUFFIX}"
    file.write_bytes(gzip.compress(text.encode(), mtime=0))  # the same log, the same file
    return file


def main(argv: Sequence[str]) -> None:
    """Make the recordings named, or all, in the folder of those that come with the program."""
    parser = argparse.ArgumentParser(prog="python -m specviz.bench.record")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--sweep", type=Path, metavar="LOG", help="a sweep.jsonl, or its folder")
    args = parser.parse_args(argv)
    if args.sweep is not None:
        if len(args.names) != 1:
            parser.error("--sweep takes one NAME")
        tell(record_sweep(args.sweep, args.names[0], recordings.SWEEPS))
        return
    loaded = load()
    for recording in (r for r in RECORDINGS if not args.names or r.name in args.names):
        tell(record(loaded, recording, recordings.FOLDER))


def tell(file: Path) -> None:
    """Say what was written."""
    sys.stderr.write(f"{file} ({file.stat().st_size / 1000:.1f} kB)\n")


if __name__ == "__main__":
    main(sys.argv[1:])
