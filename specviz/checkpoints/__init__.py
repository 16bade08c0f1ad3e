"""The heads shipped with this package: folders of config.json, weights and card.json."""

import json
from pathlib import Path

SHIPPED = Path(__file__).parent


def find(target: str, scheme: str, root: Path | None = None) -> Path | None:
    """Return the folder of the head for a target, by its name or the sha of its weights.

    A folder counts if it has config.json and a card.json that names scheme and target; None if
    there is none. `root` is where to look, instead of in this package.
    """
    for card in sorted((root or SHIPPED).rglob("card.json")):
        if target and (card.parent / "config.json").is_file() and _fits(card, target, scheme):
            return card.parent
    return None


def is_for(folder: Path, sha: str) -> bool:
    """Whether a shipped folder was trained for the target with those weights."""
    card = folder / "card.json"
    return card.is_file() and json.loads(card.read_text("utf-8"))["target"]["sha"] == sha


def _fits(card: Path, target: str, scheme: str) -> bool:
    said = json.loads(card.read_text("utf-8"))
    return said["scheme"] == scheme and target in (said["target"]["name"], said["target"]["sha"])
