"""What there is to open: recordings, runs of this tab, and files kept in the library."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import streamlit as st

from specviz.models.store import cache_dir
from specviz.traces import store
from specviz.traces.schema import Header, Trace
from specviz.ui.header import date, title
from specviz.ui.run import Run
from specviz.ui.state import State
from specviz.words import _

NAME = 60  # characters of a title shown in a list


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One run of the list; `load` reads it, `path` is of a kept file."""

    key: str
    name: str
    where: str
    made: str
    scheme: str
    size: str
    load: Callable[[], Trace]
    path: Path | None = None
    problem: str = ""


def folder() -> Path:
    """Return the folder in which runs are kept."""
    return cache_dir() / "traces"


def items(state: State) -> list[Item]:
    """Return everything that can be opened, runs of this tab first, damaged files last."""
    runs = [_of_run(run, n) for n, run in enumerate(state.runs.values()) if run.trace()]
    return [*runs, *(map(_of_entry, store.library(folder())))]


def _of_run(run: Run, number: int) -> Item:
    trace = run.trace()
    assert trace is not None
    env = trace.environment
    return Item(
        key=run.id,
        name=title(run, number),
        where=f"{env.device_name}, {env.dtype}",
        made=date(trace.created),
        scheme=f"{trace.config.scheme}, D = {trace.config.draft_length}",
        size=_size(len(trace.output), len(trace.rounds)),
        load=lambda: trace,
    )


def _of_entry(entry: store.Entry) -> Item:
    name = _("Kept: {name}")
    if entry.header is None:
        unknown = _("damaged")
        return Item(
            key=entry.path.name,
            name=name.format(name=entry.path.name),
            where=unknown,
            made=unknown,
            scheme=unknown,
            size=unknown,
            load=lambda: store.load(entry.path),
            path=entry.path,
            problem=entry.problem,
        )
    return _of_header(entry.path, entry.header, name)


def _of_header(path: Path, header: Header, name: str) -> Item:
    shown = _(header.title[:NAME]) or _("untitled")
    return Item(
        key=path.name,
        name=name.format(name=f"{shown} ({path.name.partition('.')[0]})"),
        where=f"{header.environment.device_name}, {header.environment.dtype}",
        made=date(header.created),
        scheme=f"{header.config.scheme}, D = {header.config.draft_length}",
        size=_size(header.counts.output_tokens, header.counts.rounds),
        load=lambda: store.load(path),
        path=path,
    )


def _size(tokens: int, rounds: int) -> str:
    return _("{tokens} tokens, {rounds} rounds").format(tokens=tokens, rounds=rounds)


def choose(label: str, found: list[Item], key: str, at: int = 0) -> Item:
    """Draw a choice among the runs; it survives that one of them goes away."""
    names = {item.key: item.name for item in found}
    if st.session_state.get(key) not in names:
        st.session_state[key] = found[min(at, len(found) - 1)].key
    chosen = st.selectbox(
        label, tuple(names), format_func=names.__getitem__, key=key, persist_state="session"
    )
    return next(item for item in found if item.key == chosen)


def keep(trace: Trace) -> Path:
    """Write a run into the library under a name that is free.

    Raises:
        TraceError: it cannot be written.
    """
    stem = re.sub(r"[^A-Za-z0-9-]", "", trace.run_id)[:12] or "run"
    number, path = 1, folder() / f"{stem}.json.gz"
    while path.exists():
        number += 1
        path = folder() / f"{stem}-{number}.json.gz"
    store.save(trace, path)
    return path


def rename(path: Path, name: str) -> None:
    """Give a kept run another title.

    Raises:
        TraceError: it cannot be read or written.
    """
    store.save(replace(store.load(path), title=name.strip()), path)
