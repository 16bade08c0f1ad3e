"""Make the recordings that come with the program: `python -m specviz.bench.record [FOLDER]`."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from specviz import recordings
from specviz.bench import prompts
from specviz.bench.runner import Request, run
from specviz.config import SamplingParams, SessionConfig
from specviz.models.load import Loaded, load
from specviz.traces.store import save


@dataclass(frozen=True, slots=True)
class Recording:
    """One recording: its name, its built-in prompt and how long it is."""

    name: str
    prompt_id: str
    tokens: int


RECORDINGS = (
    Recording("ngram-copy", "copy-letter", 160),
    Recording("ngram-edit", "edit-rename", 160),
    Recording("ngram-chat", "chat-bread", 120),
)
CONFIG = SessionConfig(scheme="ngram", draft_length=5, detail="full")


def record(loaded: Loaded, recording: Recording, folder: Path) -> Path:
    """Decode one prompt in full detail and save its trace."""
    prompt = prompts.find(recording.prompt_id)
    request = Request(
        prompt=prompt.text,
        params=SamplingParams(max_tokens=recording.tokens),
        config=CONFIG,
        title=prompt.title,
    )
    file = folder / f"{recording.name}{recordings.SUFFIX}"
    save(run(loaded, request), file)
    return file


def main(argv: Sequence[str]) -> None:
    """Make all recordings, in the program's own folder unless another is named."""
    folder = Path(argv[0]) if argv else recordings.FOLDER
    loaded = load()
    for recording in RECORDINGS:
        file = record(loaded, recording, folder)
        sys.stderr.write(f"{file} ({file.stat().st_size // 1000} kB)\n")


if __name__ == "__main__":
    main(sys.argv[1:])
