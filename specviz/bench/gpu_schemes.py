"""Every scheme on the embedded model, if it is on this machine: nothing is fetched."""

from dataclasses import asdict
from pathlib import Path

import torch

from specviz import checkpoints
from specviz.bench import prompts
from specviz.bench.speed import Plan, against_plain
from specviz.errors import ModelNotFound
from specviz.models.default import folder
from specviz.models.load import load
from specviz.models.store import damage
from specviz.words import _

HEADS = ("eagle3", "mtp", "dflash", "dspark")


def measure_schemes(device: torch.device, model: str = "", *, tiny: bool) -> dict[str, object]:
    """Decode with each scheme that needs no files, and those whose heads come with the program.

    Raises:
        ModelNotFound: the embedded model was never fetched here.
    """
    place = Path(model) if model else folder()
    problem = damage(place) if place.exists() else _("it is not there")
    if problem is not None:
        raise ModelNotFound(
            _(
                "the embedded model is not in {place} ({problem}); copy that folder from a machine "
                "that has it, or say with --model where it is"
            ).format(place=place, problem=problem)
        )
    loaded = load(str(place) if model else None, device=device.type)
    config = loaded.target.config
    name = config.name
    heads = tuple(
        scheme
        for scheme in HEADS
        if checkpoints.find(name, scheme) or checkpoints.find(config.sha, scheme)
    )
    plan = Plan(
        prompts=tuple(
            prompts.of_class((name,))[0] for name in (("copy",) if tiny else ("copy", "chat"))
        ),
        schemes=("ngram",) if tiny else ("ngram", "suffix", *heads),
        draft_length=4,
        tokens=8 if tiny else 64,
        repeats=1 if tiny else 2,
    )
    rows = against_plain(loaded, plan, lambda what: None)
    return {
        "model": name,
        "dtype": str(loaded.target.dtype).removeprefix("torch."),
        "heads_missing": [scheme for scheme in HEADS if scheme not in heads],
        "schemes": [
            {
                "scheme": row.scheme,
                "class": row.prompt_class,
                "tokens_per_second": asdict(row.rate),
                "speedup": asdict(row.speedup),
                "acceptance_length": row.summary.acceptance_length,
                "same_output_as_plain": row.same,
            }
            for row in rows
        ],
    }
