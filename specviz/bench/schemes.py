"""Every scheme with its best draft length against plain decoding, prompt by prompt."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from time import perf_counter

from specviz.bench.drafts import draft_card, load_draft
from specviz.bench.runner import Request, check_lossless, decode, encode, open_session
from specviz.bench.schemes_record import PLAIN, Phase, Record, Sample, Visit, pool
from specviz.bench.specbench import BenchPrompt, some
from specviz.config import DrafterOptions, SamplingParams, SessionConfig, require
from specviz.errors import ConfigError
from specviz.events import LosslessClass
from specviz.heads.base import Head as Network
from specviz.metrics import alarms, summarise
from specviz.models.load import Loaded
from specviz.session import DecodeSession
from specviz.words import _

WARM_UP = 16  # tokens
TPOT = 0.028  # seconds; of the embedded model on two cores, for the first estimate
Draft = Loaded | Network | None
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One scheme with its options, and the draft lengths to try."""

    label: str  # unique
    scheme: str
    lengths: tuple[int, ...]
    options: DrafterOptions = DrafterOptions()

    def config(self, length: int) -> SessionConfig:
        """Return the configuration of a draft length; no detail is kept."""
        return SessionConfig(
            scheme=self.scheme, draft_length=length, detail="off", options=self.options
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to measure."""

    prompts: tuple[BenchPrompt, ...]
    entries: tuple[Entry, ...]
    params: SamplingParams = SamplingParams()
    repeats: int = 3
    probes: int = 8  # prompts on which the best D is looked for

    def __post_init__(self) -> None:
        labels = [entry.label for entry in self.entries]
        require(bool(labels), "schemes", labels, _("at least one"))
        require(len(set(labels)) == len(labels), "schemes", labels, _("each one once"))
        ids = [prompt.id for prompt in self.prompts]
        require(len(set(ids)) == len(ids) > 0, "prompts", len(ids), _("at least one, each id once"))

    @property
    def tries(self) -> "tuple[Column, ...]":
        """Columns of the first phase: every D of schemes that have several."""
        several = [entry for entry in self.entries if len(entry.lengths) > 1]
        return tuple(Column(entry, d) for entry in several for d in entry.lengths)

    @property
    def visits(self) -> int:
        """Visits of prompts in both phases."""
        probes = min(self.probes, len(self.prompts)) if self.tries else 0
        return probes + len(self.prompts) * self.repeats

    @property
    def decodes(self) -> int:
        """Decodes of both phases, plain ones included."""
        full = len(self.prompts) * self.repeats
        return self.visits + (self.visits - full) * len(self.tries) + full * len(self.entries)

    def seconds(self, tpot: float = TPOT) -> float:
        """Return how long it takes at most, prompts excluded, if no scheme is slower than plain."""
        return self.decodes * self.params.max_tokens * tpot

    def as_json(self) -> str:
        """Return all of it in one line."""
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True, slots=True)
class Column:
    """One scheme at one draft length."""

    entry: Entry
    draft_length: int


@dataclass(frozen=True, slots=True)
class Task:
    """One visit that is to be made; the columns come in this order."""

    phase: Phase
    prompt: BenchPrompt
    repeat: int
    columns: tuple[Column, ...]


class Suite:
    """Runs a plan into a record; what the record has already is not measured again."""

    def __init__(self, loaded: Loaded, plan: Plan) -> None:
        """Load what drafts; check that every prompt and scheme can be run.

        Raises:
            ConfigError: a scheme lacks its head or draft model.
            ModelError: one cannot be used.
            PromptError: a prompt does not fit the context.
        """
        self.loaded, self.plan = loaded, plan
        for prompt in plan.prompts:
            encode(loaded, self._request(prompt, 0, SessionConfig(scheme="none", draft_length=0)))
        self._drafts: dict[str, Draft] = {}
        for entry in plan.entries:
            draft = load_draft(loaded, entry.config(1))
            if draft is None and entry.scheme == "draft_model":
                text = _("no draft model is given, and none is shipped for this target")
                raise ConfigError(text)
            self._drafts[entry.label] = draft

    @property
    def drafts(self) -> tuple[tuple[str, str], ...]:
        """Name and weights of what drafts, by label."""
        target = self.loaded.target.config
        cards = {label: draft_card(draft, target) for label, draft in self._drafts.items()}
        return tuple((label, f"{c.name} {c.sha}" if c else "") for label, c in cards.items())

    def run(self, record: Record, tell: Tell) -> dict[str, int]:
        """Measure what is missing; return the draft length used for each scheme."""
        if len(record.visits) < self.plan.visits:
            self._warm_up(tell)
        for number, prompt in enumerate(some(self.plan.prompts, self.plan.probes)):
            if self.plan.tries:
                turned = _turned(self.plan.tries, number)
                self._visit(Task("probe", prompt, 0, turned), record, tell)
        lengths = best_lengths(self.plan, record.visits)
        columns = [Column(entry, lengths[entry.label]) for entry in self.plan.entries]
        for repeat in range(self.plan.repeats):
            for number, prompt in enumerate(self.plan.prompts):
                turned = _turned(columns, number + repeat)
                self._visit(Task("full", prompt, repeat, turned), record, tell)
        return lengths

    def _visit(self, task: Task, record: Record, tell: Tell) -> None:
        """Decode plainly and with every column, unless that was done before."""
        prompt, repeat = task.prompt, task.repeat
        if record.has(task.phase, prompt.id, repeat):
            return
        tell(f"{task.phase} {repeat + 1}, {prompt.kind} {prompt.id}")
        plain, output = self._plain(prompt, repeat)
        samples = (self._sample(prompt, repeat, column, output) for column in task.columns)
        record.add(
            Visit(
                phase=task.phase,
                prompt=prompt.id,
                kind=prompt.kind,
                repeat=repeat,
                samples=(plain, *samples),
            )
        )

    def _plain(self, prompt: BenchPrompt, repeat: int) -> tuple[Sample, tuple[int, ...]]:
        config = SessionConfig(scheme="none", draft_length=0, detail="off")
        session, seconds = self._decode(self._request(prompt, repeat, config), None)
        kind: LosslessClass = "identical" if self.plan.params.greedy else "sampled"
        return _sample(Column(PLAIN_ENTRY, 0), session, seconds, kind), session.output

    def _sample(
        self, prompt: BenchPrompt, repeat: int, column: Column, plain: tuple[int, ...]
    ) -> Sample:
        config = column.entry.config(column.draft_length)
        draft = self._drafts[column.entry.label]
        session, seconds = self._decode(self._request(prompt, repeat, config), draft)
        kind: LosslessClass = "identical" if self.plan.params.greedy else "sampled"
        if self.plan.params.greedy and session.output != plain:
            kind = check_lossless(session, limit=len(session.output)).kind
        return _sample(column, session, seconds, kind)

    def _decode(self, request: Request, draft: Draft) -> tuple[DecodeSession, float]:
        session = open_session(self.loaded, request, draft)
        began = perf_counter()
        decode(session)
        return session, perf_counter() - began

    def _request(self, prompt: BenchPrompt, repeat: int, config: SessionConfig) -> Request:
        params = replace(self.plan.params, seed=self.plan.params.seed + repeat)
        return Request(prompt=prompt.text, params=params, config=config)

    def _warm_up(self, tell: Tell) -> None:
        """Decode a little with everything, not counted; say how long the rest may take."""
        short = min(self.plan.params.max_tokens, WARM_UP)
        prompt = min(self.plan.prompts, key=lambda one: len(one.text))
        plain = SessionConfig(scheme="none", draft_length=0, detail="off")
        configs: dict[str, tuple[SessionConfig, Draft]] = {PLAIN: (plain, None)}
        for entry in self.plan.entries:
            config = entry.config(max(entry.lengths))
            configs[entry.label] = (config, self._drafts[entry.label])
        for label, (config, draft) in configs.items():
            tell(_("warming up {label}").format(label=label))
            request = self._request(prompt, 0, config)
            request = replace(request, params=replace(request.params, max_tokens=short))
            session, seconds = self._decode(request, draft)
            if label == PLAIN:
                tpot = seconds / max(1, len(session.output))
        tell(
            _("{n} decodes, about {minutes:.0f} minutes at {ms:.0f} ms a token").format(
                n=self.plan.decodes, minutes=self.plan.seconds(tpot) / 60, ms=1000 * tpot
            )
        )


PLAIN_ENTRY = Entry(label=PLAIN, scheme="none", lengths=(0,))


def _turned(columns: Sequence[Column], by: int) -> tuple[Column, ...]:
    """Let another column go first at each visit."""
    first = by % len(columns)
    return (*columns[first:], *columns[:first])


def _sample(column: Column, session: DecodeSession, seconds: float, kind: LosslessClass) -> Sample:
    return Sample(
        label=column.entry.label,
        draft_length=column.draft_length,
        seconds=seconds,
        prefill=session.prefill_seconds,
        stop=session.finish.reason if session.finish else "",
        lossless=kind,
        busy=any(alarm.kind == "busy" for alarm in alarms(session.rounds)),
        summary=summarise(session.rounds),
    )


def best_lengths(plan: Plan, visits: Sequence[Visit]) -> dict[str, int]:
    """Return the draft length with the most tokens per second in the first phase, by label."""
    found = {entry.label: entry.lengths[0] for entry in plan.entries}
    for label, rates in rates_by_length(visits).items():
        found[label] = max(rates, key=lambda d: rates[d])
    return found


def rates_by_length(visits: Sequence[Visit]) -> Mapping[str, dict[int, float]]:
    """Return tokens per second of the first phase, by label and draft length."""
    by: dict[str, dict[int, list[Sample]]] = {}
    for sample in _probed(visits):
        by.setdefault(sample.label, {}).setdefault(sample.draft_length, []).append(sample)
    return {
        label: {
            d: pool([one.summary for one in each]).output_tokens / sum(one.seconds for one in each)
            for d, each in sorted(lengths.items())
        }
        for label, lengths in by.items()
    }


def _probed(visits: Sequence[Visit]) -> Iterator[Sample]:
    for visit in visits:
        if visit.phase == "probe":
            yield from (sample for sample in visit.samples if sample.label != PLAIN)
