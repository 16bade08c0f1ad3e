"""Which scheme and which D for this model, GPU, batch, context and acceptance.

Everything here is modelled from published rates unless the profile was measured; `Advice` says
which is which.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from specviz.cost.acceptance import PromptClass, external, published
from specviz.cost.drafting import Drafting
from specviz.cost.hardware import How
from specviz.cost.kernel_rows import Layout
from specviz.cost.kernels import Kernel, kernels_for
from specviz.cost.mechanisms import plans_blocks
from specviz.cost.model_shape import ModelShape
from specviz.cost.roofline import PARTS, Deployment, Edges, Part, Pass
from specviz.cost.speedup import PLAIN, Point, Profile, best, curve
from specviz.cost.tiles import TILE, free_length
from specviz.errors import ConfigError
from specviz.words import _

MOST = 64  # longest draft that is computed
BEYOND = 2  # a chain may be advised up to so many times the positions its rates are for


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked. `profiles` replace the published ones of the same scheme."""

    place: Deployment
    prompts: PromptClass = "chat"
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    draft_model: ModelShape | None = None
    only: tuple[str, ...] = ()  # schemes to choose from; all if empty


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One scheme: its curve S(D) and the best point, which may be plain decoding.

    Points beyond `most` repeat the last rate too often to be advised.
    """

    scheme: str
    profile: Profile
    points: tuple[Point, ...]
    most: int

    @property
    def best(self) -> Point:
        return best([point for point in self.points if point.draft_length <= self.most])

    def at(self, length: int) -> Point | None:
        """Return the point at one D, None if it was not computed."""
        return next((p for p in self.points if p.draft_length == length), None)

    @property
    def extrapolated(self) -> bool:
        """Whether the best D lies beyond the positions the rates are for."""
        return not self.profile.iid and self.best.draft_length > len(self.profile.rates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """D = 128/G - 1 followed to the letter, beside the optimum."""

    draft_length: int  # what the rule says
    scheme: str  # what it was tried with: the optimum's own scheme, else the fastest that can
    point: Point | None  # None: no drafter here can draft that far
    best: Point  # of the same scheme
    loss: float | None  # share of that best speedup that is lost, 0 to 1

    @property
    def agrees(self) -> bool:
        """Whether following it costs less than 2%."""
        return self.loss is not None and self.loss < 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One real kernel at the optimum's 1 + D."""

    kernel: Kernel
    layout: Layout
    free_length: int
    used: bool  # the one the time model takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The answer; `reasons.sentences` says it in words."""

    question: Question
    group_size: int
    tile: int
    d_star: int
    choices: tuple[Choice, ...]  # fastest first
    scheme: str  # "none" if plain decoding wins
    optimum: Point
    rule: Rule
    kernels: tuple[Row, ...]
    edges: Edges
    free_rows: Mapping[Part, int | None]
    plain: Pass  # one plain pass

    @property
    def how(self) -> Mapping[str, How]:
        """How each kind of number is known."""
        choice = self.choice
        return {
            "times": "modelled",  # from rates that may themselves be measured
            "speedup": "modelled",
            "acceptance": choice.profile.how if choice else "published",
            "kernels": "published",
            "hardware": self.question.place.gpu.how,
        }

    @property
    def choice(self) -> Choice | None:
        """The winning scheme, None for plain decoding."""
        return next((c for c in self.choices if c.scheme == self.scheme), None)


def advise(question: Question) -> Advice:
    """Answer a question.

    Raises:
        ConfigError: the model has no attention, or a scheme is unknown here.
    """
    place = question.place
    group = place.shape.group_size(place.tp)
    choices = _choices(question)
    winner = choices[0] if choices and choices[0].best != PLAIN else None
    optimum = winner.best if winner else PLAIN
    return Advice(
        question=question,
        group_size=group,
        tile=TILE,
        d_star=free_length(group),
        choices=choices,
        scheme=winner.scheme if winner else "none",
        optimum=optimum,
        rule=_rule(free_length(group), choices, optimum),
        kernels=_rows(place, 1 + optimum.draft_length),
        edges=place.edges(),
        free_rows={part: place.free_rows(part) for part in PARTS},
        plain=place.forward(1),
    )


def _choices(question: Question) -> tuple[Choice, ...]:
    profiles = {**published(question.place.shape, question.prompts), **question.profiles}
    if question.draft_model is not None:
        profiles.setdefault("draft_model", external())
    if question.only:
        missing = [name for name in question.only if name not in profiles]
        if missing:
            text = _(
                "no acceptance profile for {missing}; there are {names}. Give one of your own."
            )
            raise ConfigError(text.format(missing=", ".join(missing), names=", ".join(profiles)))
        profiles = {name: profiles[name] for name in question.only}
    ratios = {d: question.place.verify_ratio(d) for d in range(MOST + 1)}
    found = [_choice(question, name, profile, ratios) for name, profile in profiles.items()]
    return tuple(sorted(found, key=lambda choice: -choice.best.speedup))


def _choice(
    question: Question, scheme: str, profile: Profile, ratios: Mapping[int, float]
) -> Choice:
    drafting = Drafting(scheme, question.place, question.draft_model)
    fixed = plans_blocks(scheme) or scheme in ("ngram", "suffix")
    known = MOST if profile.iid else len(profile.rates)
    lengths = range(1, (known if fixed else MOST) + 1)
    points = curve(profile, ratios.__getitem__, drafting.ratio, lengths, block=fixed)
    most = known if fixed else min(MOST, BEYOND * known)
    return Choice(scheme=scheme, profile=profile, points=points, most=most)


def _rule(length: int, choices: tuple[Choice, ...], optimum: Point) -> Rule:
    if length == 0:
        loss = 1 - PLAIN.speedup / optimum.speedup
        return Rule(draft_length=0, scheme="none", point=PLAIN, best=optimum, loss=loss)
    for choice in choices:  # fastest first
        point = choice.at(length)
        if point is not None:
            loss = max(0.0, 1 - point.speedup / choice.best.speedup)
            return Rule(
                draft_length=length,
                scheme=choice.scheme,
                point=point,
                best=choice.best,
                loss=loss,
            )
    return Rule(draft_length=length, scheme="", point=None, best=optimum, loss=None)


def _rows(place: Deployment, tokens: int) -> tuple[Row, ...]:
    main, used = place.shape.main, place.used_kernel
    if main is None:
        return ()
    head = main.head_dim
    group = place.group
    names = {k.name: k for k in (used, *kernels_for(place.gpu.family, main.kind))}
    return tuple(
        Row(
            kernel=kernel,
            layout=kernel.layout(group, tokens, head),
            free_length=kernel.free_length(group, head),
            used=kernel is used,
        )
        for kernel in names.values()
    )
