"""Make the recordings that come with the program: `python -m specviz.bench.record [NAME ...]`."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from specviz import recordings
from specviz.bench import prompts
from specviz.bench.runner import Request, run
from specviz.config import DrafterOptions, SamplingParams, SessionConfig
from specviz.models.load import Loaded, load
from specviz.traces.store import save


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


def main(argv: Sequence[str]) -> None:
    """Make the recordings named, or all, in the folder of those that come with the program."""
    folder = recordings.FOLDER
    loaded = load()
    for recording in (r for r in RECORDINGS if not argv or r.name in argv):
        file = record(loaded, recording, folder)
        sys.stderr.write(f"{file} ({file.stat().st_size // 1000} kB)\n")


if __name__ == "__main__":
    main(sys.argv[1:])
