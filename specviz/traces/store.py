"""Trace files: one JSON object, gzipped when large, whose first line is a header.

Whatever is wrong with a file, `load` says so with a TraceError and nothing else.
"""

import gzip
import json
import os
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from specviz.errors import TraceError
from specviz.traces.checks import check, check_counts
from specviz.traces.codec import decode, encode
from specviz.traces.scalars import Damaged, Json, show
from specviz.traces.schema import Header, Trace, count, migrate
from specviz.words import _

FORMAT = "specviz-trace"
GZIP_FROM = 256 * 1024  # bytes of JSON
MAX_BYTES = 128 * 1024 * 1024  # of JSON; some 60,000 tokens in full detail
MAX_NESTED = 4_000_000  # lists and objects: what hostile JSON makes most memory with
HEADER_BYTES = 256 * 1024
SUFFIXES = (".json", ".json.gz")
GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a library; a damaged one has a `problem` instead of a header."""

    path: Path
    header: Header | None
    problem: str = ""


BODY = ("prompt_text", "prompt", "pieces", "undraftable")  # of no use to a list of runs


def to_json(trace: Trace) -> str:
    """Write a trace as JSON text: header on the first line, then one line per round.

    Raises:
        TraceError: the trace is not consistent; `load` would refuse it.
    """
    try:
        data, counts = encode(trace), encode(count(trace))
        check(trace)
    except Damaged as e:
        raise TraceError(_("this run cannot be saved: {e}").format(e=e)) from e
    rounds = data.pop("rounds")
    body = {name: data.pop(name) for name in BODY}
    head = {"format": FORMAT, **data, "counts": counts}
    lines = ",\n".join(map(_dump, rounds if isinstance(rounds, list) else ()))
    return f'{_dump(head)[:-1]},\n{_dump(body)[1:-1]},\n"rounds":[\n{lines}\n]}}\n'


def _dump(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def check_place(path: Path) -> None:
    """Refuse what cannot be replaced by a file: a device, a pipe, a folder.

    Raises:
        TraceError: one of these has that name.
    """
    if path.exists() and not path.is_file():
        raise TraceError(
            _(
                "cannot write the trace {path}: that is a folder, a device or a pipe. Give the "
                "name of a file, new or to be replaced."
            ).format(path=path)
        )


def save(trace: Trace, path: Path | str) -> None:
    """Write a trace file, or nothing; gzipped when large or when the name ends in .gz.

    A link is followed: the file behind it is replaced.

    Raises:
        TraceError: the trace is not consistent or too large, there is something else than a file
            of that name, or the disk refuses.
    """
    path = Path(path)
    raw = to_json(trace).encode()
    if len(raw) > MAX_BYTES:
        raise TraceError(
            _(
                "this run takes {count} MiB; a trace holds up to {max_bytes} MiB. Record it with "
                "less detail or fewer tokens."
            ).format(count=len(raw) >> 20, max_bytes=MAX_BYTES >> 20)
        )
    if path.name.endswith(".gz") or len(raw) > GZIP_FROM:
        raw = gzip.compress(raw, 6, mtime=0)
    temporary: str | None = None
    try:
        check_place(path)
        place = Path(os.path.realpath(path))
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=".trace-", dir=place.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
        os.chmod(temporary, 0o644)
        os.replace(temporary, place)
    except OSError as e:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)
        raise TraceError(
            _(
                "cannot write the trace {path}: {strerror}. Free some space or choose another "
                "place; the run itself is not lost."
            ).format(path=path, strerror=e.strerror or e)
        ) from e


def load(source: Path | str | bytes) -> Trace:
    """Read a trace from a file or from the bytes of one.

    Raises:
        TraceError: unreadable, cut short, hostile, not a trace, or from a newer specviz.
    """
    name = "this trace" if isinstance(source, bytes) else Path(source).name
    try:
        data = migrate(_parse(_unpack(_read(source, MAX_BYTES), MAX_BYTES)))
        counts = data.pop("counts", None)
        trace = decode(Trace, data)
        check(trace)
        check_counts(counts, trace)
    except Damaged as e:
        raise TraceError(_("{name} is damaged: {e}").format(name=name, e=e)) from e
    except TraceError as e:
        raise TraceError(_("{name}: {e}").format(name=name, e=e)) from e
    return trace


def load_header(path: Path | str) -> Header:
    """Read the first line alone; the whole file where another program rewrote it.

    Raises:
        TraceError: as `load`.
    """
    try:
        start = _unpack(_read(path, HEADER_BYTES), HEADER_BYTES, part=True)
        line, more, _body = start.partition(b",\n")
        if more and b"\n" not in line:
            return _header_of(line + b"}")
        return _header_of(_unpack(_read(path, MAX_BYTES), MAX_BYTES))
    except Damaged as e:
        raise TraceError(_("{name} is damaged: {e}").format(name=Path(path).name, e=e)) from e
    except TraceError as e:
        raise TraceError(_("{name}: {e}").format(name=Path(path).name, e=e)) from e


def _header_of(raw: bytes) -> Header:
    data = migrate(_parse(raw))
    return decode(Header, {k: v for k, v in data.items() if k in Header.__slots__})


def library(folder: Path | str) -> tuple[Entry, ...]:
    """List the trace files of a folder, newest first, then the damaged ones by name."""
    try:
        paths = [p for p in Path(folder).iterdir() if _is_trace_name(p.name) and p.is_file()]
    except FileNotFoundError:
        return ()
    except OSError as e:
        raise TraceError(
            _("cannot read the folder {folder}: {strerror}").format(
                folder=folder, strerror=e.strerror or e
            )
        ) from e
    entries = list(map(_entry, sorted(paths)))
    good = [e for e in entries if e.header is not None]
    good.sort(key=lambda e: e.header.created if e.header else "", reverse=True)
    return (*good, *(e for e in entries if e.header is None))


def _is_trace_name(name: str) -> bool:
    return name.endswith(SUFFIXES) and not name.startswith(".")


def _entry(path: Path) -> Entry:
    try:
        return Entry(path, load_header(path))
    except TraceError as e:
        return Entry(path, None, str(e))


def _read(source: Path | str | bytes, limit: int) -> bytes:
    """At most `limit` bytes and one: enough to tell that there are too many."""
    if isinstance(source, bytes):
        return source
    try:
        with open(source, "rb") as file:
            return file.read(limit + 1)
    except (OSError, ValueError) as e:
        raise TraceError(
            _("cannot be opened: {e}").format(e=getattr(e, "strerror", None) or e)
        ) from e


def _unpack(raw: bytes, limit: int, part: bool = False) -> bytes:
    """Undo gzip, never past `limit` bytes; `part`: the first `limit` bytes are enough."""
    cut = len(raw) > limit
    if raw.startswith(GZIP_MAGIC):
        unzip = zlib.decompressobj(wbits=31)
        try:
            raw = unzip.decompress(raw, limit + 1)
        except zlib.error as e:
            raise TraceError(_("damaged: not valid gzip ({e})").format(e=e)) from e
        cut = len(raw) > limit
        if not (unzip.eof or cut or part):
            raise TraceError(_("cut short: the gzip stream has no end"))
        if unzip.unused_data:
            raise TraceError(_("damaged: more bytes follow the gzip stream"))
    if cut and not part:
        raise TraceError(
            _("too large: a trace holds up to {limit} MiB of JSON").format(limit=limit >> 20)
        )
    return raw


def _parse(raw: bytes) -> dict[str, Json]:
    if raw.count(b"[") + raw.count(b"{") > MAX_NESTED:
        raise TraceError(
            _("not a trace: more than {max_nested} lists and objects").format(max_nested=MAX_NESTED)
        )
    try:
        data = json.loads(raw, parse_constant=_no_constant, object_pairs_hook=_no_duplicates)
    except RecursionError:
        raise TraceError(_("not a trace: nested too deeply")) from None
    except UnicodeDecodeError as e:
        raise TraceError(_("not a trace: no UTF-8 at byte {start}").format(start=e.start)) from e
    except ValueError as e:
        raise TraceError(_("cut short, or not JSON: {e}").format(e=e)) from e
    if not isinstance(data, dict) or data.pop("format", None) != FORMAT:
        raise TraceError(
            _('not a trace: no JSON object with "format": "{format}"').format(format=FORMAT)
        )
    return data


def _no_duplicates(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Refuse what two programs may read differently: one keeps the first value, one the last."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(key for key, _value in pairs).most_common(1)[0][0]
        text = _("damaged: the key {key} appears twice in one object")
        raise TraceError(text.format(key=show(twice)))
    return found


def _no_constant(name: str) -> Iterable[Json]:
    raise ValueError(_("{name} is not a JSON number").format(name=name))
