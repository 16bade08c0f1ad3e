"""Ours against peers, and drafters against our own plain decoding, in one process, alternating."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from specviz.bench.drafts import load_draft
from specviz.bench.peers import Decoded, Peer
from specviz.bench.prompts import BuiltInPrompt, PromptClass
from specviz.bench.runner import Request, decode, encode, open_session
from specviz.bench.spread import Spread
from specviz.config import DrafterOptions, SamplingParams, SessionConfig
from specviz.events import Round
from specviz.heads.base import Head
from specviz.metrics import Summary, summarise
from specviz.models.load import Loaded

Report = Callable[[str], None]

WARM_UP = 16  # tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to measure. D is the draft length of every scheme."""

    prompts: tuple[BuiltInPrompt, ...]
    schemes: tuple[str, ...] = ("ngram", "suffix")
    draft_length: int = 8
    tokens: int = 128
    repeats: int = 5
    options: DrafterOptions = DrafterOptions()

    def warming_up(self, repeat: int) -> "Plan":
        """Return the plan of a repeat; repeat -1 only warms up, is short and not counted."""
        return self if repeat >= 0 else replace(self, tokens=min(self.tokens, WARM_UP))

    @property
    def classes(self) -> tuple[PromptClass, ...]:
        return tuple(dict.fromkeys(prompt.prompt_class for prompt in self.prompts))

    def of_class(self, name: PromptClass) -> tuple[BuiltInPrompt, ...]:
        return tuple(prompt for prompt in self.prompts if prompt.prompt_class == name)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstPeer:
    """Plain decoding of one class, ours and a peer's: tokens per second, the same work each."""

    prompt_class: PromptClass
    peer: str
    tokens: int
    ours: Spread
    theirs: Spread
    ours_with_prefill: Spread
    theirs_with_prefill: Spread
    ratio: Spread  # of neighbouring repeats
    ratio_with_prefill: Spread
    same: int  # tokens before the first difference of the outputs, all prompts together


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstPlain:
    """One scheme on one class against our own plain decoding, prefill excluded."""

    prompt_class: PromptClass
    scheme: str
    stop: str  # why the outputs ended
    rate: Spread  # tokens per second
    speedup: Spread  # plain TPOT / TPOT, of neighbouring repeats
    summary: Summary
    same: bool  # the output is plain decoding's


@dataclass(frozen=True, slots=True)
class Run:
    """One of our decodes: rounds, output, seconds and the end."""

    rounds: tuple[Round, ...]
    output: tuple[int, ...]
    decode: float
    prefill: float
    stop: str

    @property
    def decoded(self) -> Decoded:
        return Decoded(self.output, self.prefill + self.decode, self.decode / len(self.output))


def run_once(
    loaded: Loaded,
    prompt: BuiltInPrompt,
    plan: Plan,
    config: SessionConfig,
    draft: Loaded | Head | None = None,
) -> Run:
    """Decode once to the natural end; the drafter starts empty, so repeats do equal work."""
    return _run(loaded, _request(prompt, plan, config), draft)


def _request(prompt: BuiltInPrompt, plan: Plan, config: SessionConfig) -> Request:
    return Request(prompt=prompt.text, params=SamplingParams(max_tokens=plan.tokens), config=config)


def _run(loaded: Loaded, request: Request, draft: Loaded | Head | None = None) -> Run:
    session = open_session(loaded, request, draft)
    if session.target.device.type == "cuda":  # graphs are captured in a decode that is not timed
        decode(session)
        session.rewind(0)
    began = perf_counter()
    decode(session)
    seconds = perf_counter() - began
    stop = session.finish.reason if session.finish else ""
    return Run(tuple(session.rounds), session.output, seconds, session.prefill_seconds, stop)


def config_of(scheme: str, plan: Plan) -> SessionConfig:
    """Return the configuration a scheme is measured with: no detail is kept."""
    length = 0 if scheme == "none" else plan.draft_length
    return SessionConfig(scheme=scheme, draft_length=length, detail="off", options=plan.options)


def against_peer(loaded: Loaded, peer: Peer, plan: Plan, report: Report) -> tuple[AgainstPeer, ...]:
    """Measure plain decoding of every class, ours and the peer's in turn."""
    return tuple(_peer_class(loaded, peer, plan, name, report) for name in plan.classes)


def _peer_class(
    loaded: Loaded, peer: Peer, plan: Plan, name: PromptClass, report: Report
) -> AgainstPeer:
    pairs: list[tuple[Decoded, Decoded]] = []
    for repeat in range(-1, plan.repeats):
        report(f"{name}: against {peer.name}, {_of(repeat, plan)}")
        step = plan.warming_up(repeat)
        both = [_pair(loaded, peer, step, prompt, repeat) for prompt in plan.of_class(name)]
        if repeat >= 0:
            pairs.append((_sum([ours for ours, _ in both]), _sum([theirs for _, theirs in both])))
    ours, theirs = pairs[-1]
    return AgainstPeer(
        prompt_class=name,
        peer=peer.name,
        tokens=len(ours.tokens),
        ours=Spread.of(o.rate for o, _ in pairs),
        theirs=Spread.of(t.rate for _, t in pairs),
        ours_with_prefill=Spread.of(o.rate_with_prefill for o, _ in pairs),
        theirs_with_prefill=Spread.of(t.rate_with_prefill for _, t in pairs),
        ratio=Spread.of(o.rate / t.rate for o, t in pairs),
        ratio_with_prefill=Spread.of(o.rate_with_prefill / t.rate_with_prefill for o, t in pairs),
        same=common(ours.tokens, theirs.tokens),
    )


def _pair(
    loaded: Loaded, peer: Peer, plan: Plan, prompt: BuiltInPrompt, repeat: int
) -> tuple[Decoded, Decoded]:
    """Decode both ways, changing who goes first from repeat to repeat."""
    request = _request(prompt, plan, config_of("none", plan))
    request = replace(request, params=replace(request.params, ignore_eos=True))
    ids = encode(loaded, request)

    def ours() -> Decoded:
        return _run(loaded, request).decoded

    if repeat % 2:
        theirs = peer.decode(ids, plan.tokens)
        return ours(), theirs
    mine = ours()
    return mine, peer.decode(ids, plan.tokens)


def _sum(parts: Sequence[Decoded]) -> Decoded:
    """Several decodes as one."""
    tokens = tuple(token for part in parts for token in part.tokens)
    seconds = sum(part.per_token * len(part.tokens) for part in parts)
    return Decoded(tokens, sum(part.total for part in parts), seconds / len(tokens))


def against_plain(loaded: Loaded, plan: Plan, report: Report) -> tuple[AgainstPlain, ...]:
    """Measure every scheme on every class, in turn with plain decoding."""
    drafts = {name: load_draft(loaded, config_of(name, plan)) for name in plan.schemes}
    return tuple(
        row for name in plan.classes for row in _plain_class(loaded, plan, name, drafts, report)
    )


def _plain_class(
    loaded: Loaded,
    plan: Plan,
    name: PromptClass,
    drafts: Mapping[str, Loaded | Head | None],
    report: Report,
) -> list[AgainstPlain]:
    schemes = ("none", *plan.schemes)
    seen: dict[str, list[list[Run]]] = {scheme: [] for scheme in schemes}
    for repeat in range(-1, plan.repeats):
        turn = schemes if repeat % 2 else tuple(reversed(schemes))
        for scheme in turn:
            report(f"{name}: {scheme}, {_of(repeat, plan)}")
            config, step = config_of(scheme, plan), plan.warming_up(repeat)
            draft = drafts.get(scheme)
            runs = [run_once(loaded, p, step, config, draft) for p in plan.of_class(name)]
            if repeat >= 0:
                seen[scheme].append(runs)
    return [_row(name, scheme, seen[scheme], seen["none"]) for scheme in schemes]


def _row(
    name: PromptClass, scheme: str, repeats: list[list[Run]], plain: list[list[Run]]
) -> AgainstPlain:
    rates = [_rate(runs) for runs in repeats]
    last = repeats[-1]
    return AgainstPlain(
        prompt_class=name,
        scheme=scheme,
        stop=", ".join(sorted({run.stop for run in last})),
        rate=Spread.of(rates),
        speedup=Spread.of(r / _rate(p) for r, p in zip(rates, plain, strict=True)),
        summary=summarise([event for run in last for event in run.rounds]),
        same=[run.output for run in last] == [run.output for run in plain[-1]],
    )


def _rate(runs: Sequence[Run]) -> float:
    return sum(len(run.output) for run in runs) / sum(run.decode for run in runs)


def _of(repeat: int, plan: Plan) -> str:
    return "warm-up" if repeat < 0 else f"repeat {repeat + 1} of {plan.repeats}"


def common(a: Sequence[int], b: Sequence[int]) -> int:
    """Return how many tokens two outputs share before the first difference."""
    for index, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return index
    return min(len(a), len(b))
