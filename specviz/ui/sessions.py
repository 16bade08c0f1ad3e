"""The session of a run: begun at its prompt, or after the first rounds of another run."""

from typing import TYPE_CHECKING

from specviz.config import SessionConfig
from specviz.errors import SpecvizError, UnsupportedModel
from specviz.ui.run import Run
from specviz.words import _

if TYPE_CHECKING:
    from specviz.bench.runner import Request
    from specviz.drafters.base import Drafter
    from specviz.drafters.suffix import SuffixHistory
    from specviz.session import DecodeSession


def session_of(run: Run) -> "DecodeSession":
    """Return the session of a run that has one."""
    if run.session is None:
        raise SpecvizError(_("this run has no session to go on with; start it again"))
    return run.session


def fresh(run: Run, request: "Request", history: "SuffixHistory") -> "DecodeSession":
    """Begin at the prompt."""
    from specviz.bench.runner import open_session

    assert run.loaded is not None
    return open_session(run.loaded, request, run.draft, history)


def grafted(run: Run, request: "Request", history: "SuffixHistory") -> "DecodeSession":
    """Continue the first rounds of `run.trunk` under the settings of `run`."""
    from specviz.bench.drafts import keeps_for

    assert run.trunk is not None
    session = run.trunk.session
    if session is None or not keeps_for(session.target, run.draft):
        session = _resumed(run.trunk, run, request)
    return session.fork(
        len(run.rounds),
        drafter=drafter_of(run, request.config, history),
        params=request.params,
        config=request.config,
    )


def _resumed(trunk: Run, run: Run, request: "Request") -> "DecodeSession":
    """Rebuild a session by reading its text into a fresh cache.

    Raises:
        UnsupportedModel: The trace was made by another target.
    """
    from specviz.bench.drafts import listened_to
    from specviz.session import DecodeSession

    trace = trunk.trace()
    assert trace is not None
    assert run.loaded is not None
    target, piece = run.loaded.target, run.loaded.tokenizer.piece
    if trace.target.sha != target.config.sha:
        raise UnsupportedModel(
            _(
                "this run was made by {name}, and {target} is loaded; choose that model as the "
                "target to branch from the run"
            ).format(name=trace.target.name, target=target.config.name)
        )
    session = DecodeSession(
        listened_to(target, run.draft),
        drafter_of(run, request.config),
        trace.prompt,
        trace.params,
        trace.config,
        piece=piece,
    )
    session.rounds.extend(trace.rounds[: len(run.rounds)])
    session.target.prefill(session.tokens[len(trace.prompt) - 1 : -1])
    return session


def drafter_of(
    run: Run, config: SessionConfig, history: "SuffixHistory | None" = None
) -> "Drafter":
    """Return a new drafter; refuses what was made for another vocabulary or scheme."""
    from specviz.drafters import make_drafter

    assert run.loaded is not None
    return make_drafter(config, run.loaded.target, run.loaded.tokenizer, run.draft, history)
