"""A link holds the settings and the place of the reader; what it cannot hold is said."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from specviz.errors import ConfigError
from specviz.traces.timeline import Cursor
from specviz.ui.fields import FIELDS, SHORT, Field, Value, clipped
from specviz.ui.language import PARAMETER
from specviz.words import _

LIVE = "live"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a link says: settings that differ from the defaults, the run, the cursor."""

    values: Mapping[str, Value]
    run: str = ""  # id of a recording, LIVE for a run to repeat, "" for the first screen
    cursor: Cursor | None = None
    notes: tuple[str, ...] = ()  # what could not be used, and what is used instead


def read(query: Mapping[str, str], recordings: tuple[str, ...]) -> Place:
    """Read a link; whatever is unknown or out of range falls back, with a note."""
    values: dict[str, Value] = {}
    notes: list[str] = []
    run, cursor = "", None
    for key, raw in query.items():
        if key == PARAMETER:
            continue
        try:
            if key == "run":
                run = _run(raw, recordings)
            elif key == "at":
                cursor = _cursor(raw)
            else:
                values[key] = _field(key).parse(raw)
        except ConfigError as error:
            text = _("This link could not be used in full: {problem}. The default is used there.")
            notes.append(text.format(problem=str(error).rstrip(".")))
    return Place(values=values, run=run, cursor=cursor, notes=tuple(notes))


def write(values: Mapping[str, Value], run: str, cursor: Cursor | None) -> str:
    """Return the query string of a link, "" if everything is as on the first screen."""
    query = {
        key: field.write(values[key])
        for key, field in FIELDS.items()
        if key in values and values[key] != field.default and fits(values[key])
    }
    if run:
        query["run"] = run
    if cursor is not None:
        query["at"] = str(cursor)
    return urlencode(query)


def fits(value: Value) -> bool:
    """Whether a link can hold this value; a long prompt goes into a file instead."""
    return not isinstance(value, str) or len(value) <= SHORT


def share_url(base: str, query: str) -> str:
    """Return the whole link for the page at `base`."""
    page = base.partition("?")[0].partition("#")[0]
    return f"{page}?{query}" if query else page


def _field(key: str) -> Field:
    if key not in FIELDS:
        text = _("there is no setting {name!r}; there are: {allowed}")
        raise ConfigError(text.format(name=clipped(key), allowed=", ".join((*FIELDS, "run", "at"))))
    return FIELDS[key]


def _run(raw: str, recordings: tuple[str, ...]) -> str:
    if raw not in (LIVE, *recordings):
        text = _("there is no recording {name!r}; there are: {allowed}")
        allowed = ", ".join((LIVE, *recordings))
        raise ConfigError(text.format(name=clipped(raw), allowed=allowed))
    return raw


def _cursor(raw: str) -> Cursor:
    cursor = Cursor.parse(raw)
    if cursor is None:
        text = _("at = {value!r} is no place in a run; allowed: a round and a step, as in 3.2")
        raise ConfigError(text.format(value=clipped(raw)))
    return cursor
