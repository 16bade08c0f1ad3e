"""A whole training run: texts, features, head, loop, card."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from specviz.errors import ConfigError
from specviz.heads.load import load
from specviz.models.llama import LlamaTarget
from specviz.models.load import Loaded
from specviz.models.store import Progress, silent
from specviz.train.build import Builder
from specviz.train.card import Provenance, write_card
from specviz.train.data import Answering, answer_prompts
from specviz.train.features import Source
from specviz.train.loop import BEST, Report, Trainer
from specviz.train.recipe import Recipe
from specviz.train.saved import Texts
from specviz.words import _

VOCABULARY = "draft_ids.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to train on and where to write it."""

    recipe: Recipe
    data: tuple[Path, ...] = ()  # responses, .parquet or .jsonl
    prompts: Path | None = None  # answered first, into `out`
    answering: Answering = field(default_factory=Answering)
    rows: int | None = None  # of each file at most
    features: Path | None = None  # one cache for each file in it; None: made anew each time
    out: Path
    until: int | None = None  # step to stop at for now
    start: Path | None = None  # a head whose weights of equal name and shape to begin with
    command: str = ""


def prepare(
    loaded: Loaded, request: Request, progress: Progress = silent
) -> tuple[Source, Request]:
    """Answer prompts, read texts and extract features, as far as that is not done yet.

    Returns the texts with their features, and the request with the answers among its data.

    Raises:
        ConfigError: there is nothing to train on.
    """
    data = request.data
    request.out.mkdir(parents=True, exist_ok=True)
    if request.prompts is not None:
        responses = request.out / "responses.jsonl"
        answer_prompts(loaded, request.prompts, responses, request.answering, progress)
        data = (*data, responses)
    if not data:
        raise ConfigError(_("there is nothing to train on; give --data or --prompts"))
    texts = Texts(data=data, rows=request.rows, features=request.features)
    source = texts.open(own_target(loaded), progress)
    return source, replace(request, data=data, prompts=None)


def train(
    loaded: Loaded,
    request: Request,
    tell: Callable[[Report], None],
    progress: Progress = silent,
) -> Path:
    """Train, going on where an earlier run with the same `out` stopped; return the best head."""
    source, request = prepare(loaded, request, progress)
    progress("making the head", 0.0)
    ids = read_ids(request.out)
    builder = Builder(own_target(loaded), source, request.recipe, ids)
    write_ids(request.out, builder.ids)
    course = builder.course()
    if request.start is not None:
        begin_with(course.module, load(request.start, loaded.target))
    trainer = Trainer(course, source, request.recipe, request.out)
    trainer.run(tell, request.until)
    best = request.out / BEST
    if not best.is_dir():
        return request.out  # stopped before anything was measured
    provenance = Provenance(
        scheme=course.scheme,
        target=loaded.target.config,
        parameters=sum(p.numel() for p in course.module.parameters()),
        depth=course.depth,
        data=request.data,
        examples=source.examples,
        command=request.command,
    )
    write_card(best, trainer.state, provenance)
    return best


def begin_with(module: nn.Module, other: nn.Module) -> None:
    """Copy weights whose name and shape are the same: DSpark begins with a trained DFlash trunk.

    Raises:
        ConfigError: there are none.
    """
    mine, theirs = module.state_dict(), other.state_dict()
    alike = {n: t for n, t in theirs.items() if n in mine and mine[n].shape == t.shape}
    if not alike:
        raise ConfigError(_("the head to start with has no weight of this one's names and shapes"))
    module.load_state_dict(alike, strict=False)


def read_ids(out: Path) -> Tensor | None:
    """Return the draft vocabulary of an earlier run; weights have a row for each of its ids."""
    path = out / VOCABULARY
    return torch.tensor(json.loads(path.read_text("utf-8"))) if path.is_file() else None


def write_ids(out: Path, ids: Tensor) -> None:
    """Write the draft vocabulary."""
    (out / VOCABULARY).write_text(json.dumps(ids.tolist()) + "\n", "utf-8")


def own_target(loaded: Loaded) -> LlamaTarget:
    """Return the target as our own decoder runs it.

    Raises:
        ConfigError: transformers runs it.
    """
    if not isinstance(loaded.target, LlamaTarget):
        raise ConfigError(
            _(
                "{name} is run by transformers; heads are trained for models of the Llama family, "
                "which our own decoder runs"
            ).format(name=loaded.target.config.name)
        )
    return loaded.target
