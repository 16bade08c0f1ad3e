"""What a recorded run holds, and the versions of that."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from specviz.config import SamplingParams, SessionConfig
from specviz.errors import TraceError
from specviz.events import Finish, LosslessReport, Round
from specviz.traces.scalars import Json
from specviz.words import _

SCHEMA = 4  # raised with every change of a field here, in events.py or in config.py

HIDDEN = -1  # stands for each prompt token of a redacted trace

# MIGRATIONS[n] turns the plain data of schema n into that of n + 1.
MIGRATIONS: dict[int, Callable[[dict[str, Json]], dict[str, Json]]] = {
    1: dict,  # 2 added settings and evidence of heads, whose defaults say that there was none
    2: dict,  # 3 added undraftable, empty where nobody noted it
    3: dict,  # 4 added the attention of a round, whose default says that nobody noted it
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Where a run was made."""

    device: str
    device_name: str
    dtype: str
    threads: int
    python: str
    torch: str
    transformers: str
    specviz: str
    platform: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """Shape and provenance of a model; `sha` is of its weights, "" if made in memory."""

    name: str
    sha: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    context: int

    @property
    def group_size(self) -> int:
        """G: query heads per KV head."""
        return self.heads // self.kv_heads


@dataclass(frozen=True, slots=True)
class Branch:
    """The run this one left, and the round before which it did."""

    run_id: str
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One run, complete: enough to step through it, judge it and check every decision again."""

    schema: int = SCHEMA
    run_id: str
    created: str  # ISO 8601, UTC
    title: str
    environment: Environment
    target: ModelCard
    draft: ModelCard | None = None
    params: SamplingParams
    config: SessionConfig
    chat: bool  # whether the chat template was applied
    prompt_text: str | None  # None when redacted
    prompt: tuple[int, ...]
    pieces: Mapping[int, bytes]  # exact bytes of every token in `shown_tokens`
    rounds: tuple[Round, ...]
    prefill_seconds: float
    finish: Finish | None = None
    lossless: LosslessReport | None = None
    parent: Branch | None = None
    undraftable: tuple[int, ...] = ()  # of `pieces`, those the draft vocabulary lacks

    @property
    def output(self) -> tuple[int, ...]:
        """Committed tokens without the prompt."""
        return tuple(chain.from_iterable(r.committed for r in self.rounds))

    @property
    def tokens(self) -> tuple[int, ...]:
        return (*self.prompt, *self.output)

    @property
    def redacted(self) -> bool:
        return HIDDEN in self.prompt

    def piece(self, token: int) -> bytes:
        """Exact bytes of one token; empty for a redacted one."""
        return self.pieces.get(token, b"")

    @property
    def text(self) -> str:
        """The visible output: a stop string and what follows it are left out."""
        raw = b"".join(map(self.piece, self.output))
        end = self.finish.text_bytes if self.finish else None
        return raw[:end].decode(errors="replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """A trace in six numbers."""

    prompt_tokens: int
    output_tokens: int
    rounds: int
    drafted: int
    accepted: int
    decode_seconds: float


def count(trace: Trace) -> Counts:
    """Count what a trace holds."""
    return Counts(
        prompt_tokens=len(trace.prompt),
        output_tokens=len(trace.output),
        rounds=len(trace.rounds),
        drafted=sum(len(r.draft) for r in trace.rounds),
        accepted=sum(len(r.path) for r in trace.rounds),
        decode_seconds=round(sum(r.timing.total for r in trace.rounds), 4),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first line of a file: what a list of runs shows. Fields are those of `Trace`."""

    schema: int
    run_id: str
    created: str
    title: str
    environment: Environment
    target: ModelCard
    draft: ModelCard | None
    params: SamplingParams
    config: SessionConfig
    chat: bool
    prefill_seconds: float
    finish: Finish | None
    lossless: LosslessReport | None
    parent: Branch | None
    counts: Counts


def shown_tokens(
    prompt: Sequence[int], rounds: Sequence[Round], lossless: LosslessReport | None = None
) -> frozenset[int]:
    """Every token id a view may have to spell: `Trace.pieces` must have them all."""
    told = (lossless.plain_token, lossless.token) if lossless else ()
    shown = {t for t in prompt if t != HIDDEN} | {t for t in told if t is not None}
    return frozenset(shown.union(*map(_tokens_of, rounds)))


def _tokens_of(r: Round) -> Iterator[int]:
    yield from r.draft.tokens
    yield from r.evidence.unbiased
    yield from r.committed
    for row in r.rows:
        yield row.best
        yield from (candidate.token for candidate in row.top)


def redact(trace: Trace) -> Trace:
    """Take the prompt out: its text, its ids and the bytes of ids seen only there.

    Ids are replaced by HIDDEN, so counts and positions stay. What the output or a draft copied
    from the prompt is still there. A title that quotes the prompt goes too.
    """
    quoted = trace.title.rstrip(" .\u2026")
    quotes = trace.prompt_text is not None and bool(quoted) and quoted in trace.prompt_text
    kept = shown_tokens((), trace.rounds, trace.lossless)
    return replace(
        trace,
        title="" if quotes else trace.title,
        prompt_text=None,
        prompt=(HIDDEN,) * len(trace.prompt),
        pieces={token: piece for token, piece in trace.pieces.items() if token in kept},
        undraftable=tuple(token for token in trace.undraftable if token in kept),
    )


def migrate(data: dict[str, Json]) -> dict[str, Json]:
    """Bring plain data of an older schema up to this one.

    Raises:
        TraceError: the data is newer than this program, or names no schema.
    """
    found = data.get("schema")
    if type(found) is not int or found < 1:
        raise TraceError(
            _("not a trace: its schema is {found!r:.40}; allowed: 1 to {schema}").format(
                found=found, schema=SCHEMA
            )
        )
    if found > SCHEMA:
        raise TraceError(
            _(
                "this trace has schema {found}, made by a newer specviz; this one reads up to "
                "schema {schema}. Update specviz to open it."
            ).format(found=found, schema=SCHEMA)
        )
    for version in range(found, SCHEMA):
        data = MIGRATIONS[version](data) | {"schema": version + 1}
    return data
