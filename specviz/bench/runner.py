"""One run from request to trace: encode, check, decode, replay plainly, keep everything."""

import platform
import sys
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import metadata

import torch

from specviz import __version__
from specviz.bench.drafts import card, draft_card, listened_to, load_draft, undraftable
from specviz.config import SamplingParams, SessionConfig
from specviz.drafters import make_drafter
from specviz.drafters.suffix import SuffixHistory
from specviz.errors import PromptError
from specviz.events import Finish, LosslessReport, Round
from specviz.heads.base import Head
from specviz.lossless import replay_plain
from specviz.models.device import device_name
from specviz.models.load import Loaded
from specviz.session import DecodeSession
from specviz.traces.schema import Branch, Environment, Trace, shown_tokens
from specviz.words import _

LOSSLESS_LIMIT = 512  # output tokens; the replay of a longer run is asked for, not a surprise

Observer = Callable[[Round], bool]  # called after each round; False ends the run


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to decode and how. `chat` puts the prompt through the model's chat template."""

    prompt: str
    chat: bool = True
    params: SamplingParams = field(default_factory=SamplingParams)
    config: SessionConfig = field(default_factory=SessionConfig)
    title: str = ""


def uses_template(loaded: Loaded, request: Request) -> bool:
    """Whether the chat template is applied: asked for, and the model has one."""
    return request.chat and loaded.tokenizer.has_chat_template


def encode(loaded: Loaded, request: Request) -> tuple[int, ...]:
    """Return the prompt's token ids.

    Raises:
        PromptError: The prompt is empty, or leaves no room in the context.
    """
    if not request.prompt.strip():
        raise PromptError(
            _(
                "the prompt is empty; it needs at least one character that is not a space: type a "
                "prompt or choose a built-in one"
            )
        )
    tokenizer = loaded.tokenizer
    chat = uses_template(loaded, request)
    ids = tokenizer.chat(request.prompt) if chat else tokenizer.encode(request.prompt)
    context = loaded.target.config.context
    if not ids:
        raise PromptError(_("the prompt has no tokens in this model's vocabulary; type another"))
    if len(ids) >= context:
        raise PromptError(
            _(
                "the prompt has {count} tokens; the model's context holds {context}, prompt and "
                "output together: shorten the prompt to {most} tokens or less"
            ).format(count=len(ids), context=context, most=context - 1)
        )
    return ids


def open_session(
    loaded: Loaded,
    request: Request,
    draft: Loaded | Head | None = None,
    history: SuffixHistory | None = None,
) -> DecodeSession:
    """Return a session at the start of its output, on a cache of its own.

    `history` holds outputs of past requests, for suffix decoding; without, it starts cold.

    Raises:
        PromptError: The prompt is empty or too long.
        UnknownScheme: There is no such scheme.
        ConfigError: The scheme needs a draft model or head, and there is none.
        ModelError: What drafts is missing, damaged or made for another vocabulary or target.
    """
    prompt = encode(loaded, request)
    if draft is None:
        draft = load_draft(loaded, request.config)
    drafter = make_drafter(request.config, loaded.target, loaded.tokenizer, draft, history)
    return DecodeSession(
        listened_to(loaded.target, draft),
        drafter,
        prompt,
        request.params,
        request.config,
        piece=loaded.tokenizer.piece,
    )


def decode(session: DecodeSession, observe: Observer | None = None) -> None:
    """Run rounds until the session is finished or `observe` returns False."""
    for event in session:
        if observe is not None and not observe(event):
            return


def check_lossless(
    session: DecodeSession,
    limit: int = LOSSLESS_LIMIT,
    should_stop: Callable[[], bool] = lambda: False,
    turn: AbstractContextManager[object] | None = None,
) -> LosslessReport:
    """Replay the output through plain decoding, unless it is longer than `limit` tokens."""
    if not session.rounds or len(session.output) > limit:
        return LosslessReport("not-run")
    return replay_plain(session, should_stop, turn)


def run(
    loaded: Loaded,
    request: Request,
    draft: Loaded | Head | None = None,
    *,
    limit: int = LOSSLESS_LIMIT,
    observe: Observer | None = None,
) -> Trace:
    """Decode one request to its end and return the trace, lossless report included.

    `limit` is the longest output, in tokens, that is replayed; 0 switches the replay off.
    """
    if draft is None:
        draft = load_draft(loaded, request.config)
    session = open_session(loaded, request, draft)
    decode(session, observe)
    trace = to_trace(session, loaded, request, draft=draft, lossless=check_lossless(session, limit))
    return trace if trace.finish else replace(trace, finish=Finish("cancelled"))


def environment(loaded: Loaded) -> Environment:
    """Return where a run happens: device, dtype, threads, versions."""
    target = loaded.target
    return Environment(
        device=str(target.device),
        device_name=device_name(target.device),
        dtype=str(target.dtype).removeprefix("torch."),
        threads=torch.get_num_threads(),
        python=platform.python_version(),
        torch=version("torch"),
        transformers=version("transformers"),
        specviz=__version__,
        platform=f"{sys.platform} {platform.machine()}",
    )


def version(distribution: str) -> str:
    """Return the installed version of a distribution without importing it, "" if absent."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def to_trace(
    session: DecodeSession,
    loaded: Loaded,
    request: Request,
    *,
    draft: Loaded | Head | None = None,
    lossless: LosslessReport | None = None,
    run_id: str | None = None,
    parent: Branch | None = None,
) -> Trace:
    """Return all that is known of a session, at any point of it."""
    rounds = tuple(session.rounds)
    piece = loaded.tokenizer.piece
    seen = shown_tokens(session.prompt, rounds, lossless)
    return Trace(
        run_id=run_id or uuid.uuid4().hex,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        title=request.title,
        environment=environment(loaded),
        target=card(loaded.target.config),
        draft=draft_card(draft, loaded.target.config),
        params=request.params,
        config=request.config,
        chat=uses_template(loaded, request),
        prompt_text=request.prompt,
        prompt=session.prompt,
        pieces={token: piece(token) for token in sorted(seen)},
        rounds=rounds,
        prefill_seconds=session.prefill_seconds,
        finish=session.finish,
        lossless=lossless,
        parent=parent,
        undraftable=undraftable(draft, seen),
    )
