"""The card beside trained weights: data, recipe, versions, E[L] by class, how to do it again."""

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from specviz import __version__
from specviz.models.store import sha256
from specviz.models.target import TargetConfig
from specviz.train.checkpointing import RunState
from specviz.train.corpus import Example
from specviz.train.evaluate import Acceptance
from specviz.train.plot import plot


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What a card says beside what the run itself knows."""

    scheme: str
    target: TargetConfig
    parameters: int
    depth: int  # drafts per round of the E[L] that is told
    data: tuple[Path, ...]
    examples: Sequence[Example]
    command: str


def write_card(folder: Path, state: RunState, provenance: Provenance) -> None:
    """Write card.json, README.md and training.svg into `folder`."""
    card = make_card(state, provenance)
    text = json.dumps(card, indent=2, sort_keys=True)
    (folder / "card.json").write_text(text + "\n", "utf-8")
    title = f"{provenance.scheme} for {provenance.target.name}"
    (folder / "training.svg").write_text(plot(state.marks, title), "utf-8")
    (folder / "README.md").write_text(_readme(title, state, provenance), "utf-8")


def make_card(state: RunState, provenance: Provenance) -> dict[str, object]:
    """Return the card as JSON holds it."""
    p, examples = provenance, provenance.examples
    return {
        "schema": 1,
        "scheme": p.scheme,
        "date": datetime.now(UTC).date().isoformat(),
        "target": {"name": p.target.name, "sha": p.target.sha},
        "parameters": p.parameters,
        "data": [{"file": path.name, "sha256": sha256(path)} for path in p.data],
        "texts": {
            "trained": sum(not e.held_out for e in examples),
            "held_out": sum(e.held_out for e in examples),
            "response_tokens": sum(len(e.response) for e in examples if not e.held_out),
        },
        "supervised_tokens": state.tokens,
        "recipe": state.recipe,
        "best_step": state.best_step,
        "drafts_per_round": p.depth,
        "acceptance_length": {kind: round(a.length, 4) for kind, a in _counts(state).items()},
        "accepted_by_position": _by_position(_counts(state).get("all")),
        "marks": [asdict(mark) for mark in state.marks],
        "versions": versions(),
        "command": p.command,
    }


def versions() -> dict[str, str]:
    """Return the versions a run depends on."""
    names = ("torch", "transformers", "safetensors")
    found = {name: metadata.version(name) for name in names}
    return {"specviz": __version__, "python": platform.python_version(), **found}


def _counts(state: RunState) -> dict[str, Acceptance]:
    return {kind: Acceptance(**counts) for kind, counts in state.best_counts.items()}  # type: ignore[arg-type]


def _by_position(counts: Acceptance | None) -> list[float]:
    if counts is None or not counts.rounds:
        return []
    return [round(n / counts.rounds, 4) for n in counts.by_position]


def _readme(title: str, state: RunState, p: Provenance) -> str:
    rows = [
        f"| {kind} | {a.rounds} | {a.length:.2f} |"
        for kind, a in sorted(_counts(state).items(), key=lambda pair: pair[0] != "all")
    ]
    files = ", ".join(path.name for path in p.data)
    return "\n".join(
        [
            f"# {title}",
            "",
            f"{p.parameters / 1e6:.1f}M parameters, {state.tokens:,} supervised tokens of {files}: "
            f"responses of the target itself. Weights of step {state.best_step}, the best by",
            "held-out E[L] (teacher-forced, exact for greedy text; the target's own token "
            f"included; {p.depth} drafts per round).",
            "",
            "| class of prompt | rounds | E[L] |",
            "| --- | --- | --- |",
            *rows,
            "",
            "![loss and E[L]](training.svg)",
            "",
            "Trained with:",
            "",
            f"    {p.command}",
            "",
            ", ".join(f"{name} {version}" for name, version in versions().items()) + ".",
            "",
        ]
    )
