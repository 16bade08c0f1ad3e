"""Checks of the notebooks' exercises: each says why an answer is wrong, never what is right.

A check takes the answer and returns a `Verdict`. An exercise starts with `...` in place of the
answer, so every notebook runs top to bottom before anything is solved. One module per notebook.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Literal, ParamSpec, TypeVar

from specviz.errors import SpecvizError
from specviz.views.html import Markup, tag
from specviz.words import _

P = ParamSpec("P")
T = TypeVar("T")
State = Literal["right", "wrong", "open"]
# What an answer may raise by mistake; torch says RuntimeError where numpy says ValueError.
RAISED = (
    *(ArithmeticError, LookupError, TypeError, ValueError),
    *(AttributeError, NameError, RuntimeError),
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of an answer, and why. It is true if the answer is right."""

    state: State
    reason: str

    def __bool__(self) -> bool:
        return self.state == "right"

    def __repr__(self) -> str:
        return f"{_word(self.state)} {self.reason}"

    def _repr_html_(self) -> Markup:
        return tag("p", tag("strong", _word(self.state)), " ", self.reason)


def _word(state: State) -> str:
    return {"right": _("Right."), "wrong": _("Not yet."), "open": _("Open.")}[state]


def right(reason: str) -> Verdict:
    """Say that an answer holds, and what follows from it."""
    return Verdict("right", reason)


def wrong(reason: str) -> Verdict:
    """Say what is wrong with an answer."""
    return Verdict("wrong", reason)


def exercise(check: Callable[P, Verdict]) -> Callable[P, Verdict]:
    """Make a check that takes `...` for "not answered yet" and reports what an answer raises."""

    @wraps(check)
    def checked(*args: P.args, **kwargs: P.kwargs) -> Verdict:
        if any(value is ... or value is None for value in args):
            return Verdict("open", _("Not answered yet: put your answer in place of `...`."))
        try:
            return check(*args, **kwargs)
        except _Unanswered:
            return Verdict("open", _("Not answered yet: your function returns `...` or nothing."))
        except SpecvizError as error:
            return wrong(str(error))
        except RAISED as error:
            text = _("Your answer raised {kind}: {message}")
            return wrong(text.format(kind=type(error).__name__, message=error))

    return checked


class _Unanswered(Exception):
    """A function that is an answer still returns `...`."""


def called(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that is an answer; one still to be written makes the exercise open."""
    value = function(*args, **kwargs)
    if value is ... or value is None:
        raise _Unanswered
    return value
