"""Dataclasses to plain JSON data and back, checked against their type hints.

The whole format: a dataclass is an object of its fields; a tuple of dataclasses made of numbers
only is an object of columns; bytes are text of one character per byte (latin-1); an infinite
number is the string "inf" or "-inf"; NaN does not exist.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, partial
from types import NoneType, UnionType
from typing import Literal, TypeGuard, TypeVar, Union, get_args, get_origin, get_type_hints

from specviz.errors import SpecvizError
from specviz.events import Candidate, Evidence, NodeScore, Round, Row, Timing
from specviz.traces.scalars import (
    SCALARS,
    Codec,
    Damaged,
    Json,
    decode_bytes,
    decode_choice,
    decode_list,
    decode_object,
    encode_bytes,
    same,
    show,
)
from specviz.words import _

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")

# 6 significant digits are more than these numbers are good for, and a third of the file. What a
# decision or a setting rests on (u, threshold, temperature) keeps every bit.
SHORT = {
    Candidate: ("p", "q", "logprob"),
    NodeScore: ("p", "q", "logprob"),
    Row: ("entropy", "draft_entropy"),
    Evidence: ("scores", "confidence", "unbiased_scores"),
    Round: ("last_p", "last_logprob"),
}
# Seconds to 0.1 microseconds.
SECONDS = {Timing: tuple(field.name for field in fields(Timing)), Round: ("began",)}


def encode(value: object) -> dict[str, Json]:
    """Turn a dataclass into JSON data."""
    return _encode_object(type(value), value)


def decode(cls: type[T], value: Json) -> T:
    """Make a `cls` of JSON data, every field checked against its type; raises Damaged."""
    return _make(cls, _decode_fields(cls, value))


@cache
def codec(hint: object) -> Codec:
    """Build the codec of a type: scalars, Literal, optional, tuples, id-to-bytes, dataclasses."""
    origin, args = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and is_dataclass(hint):
        return Codec(partial(_encode_object, hint), partial(decode, hint))
    if isinstance(hint, type) and hint in SCALARS:
        return SCALARS[hint]
    if origin is Literal:
        return Codec(same, partial(decode_choice, args))
    if origin in (UnionType, Union) and NoneType in args:
        return _optional(codec(next(arg for arg in args if arg is not NoneType)))
    if origin is tuple and args[-1] is Ellipsis:
        return _sequence(args[0])
    if origin is tuple:
        return _fixed([codec(arg) for arg in args])
    if origin is Mapping:
        return Codec(_encode_pieces, _decode_pieces)
    raise TypeError(f"no codec for {hint}")


def _optional(inner: Codec) -> Codec:
    def encode(value: object) -> Json:
        return None if value is None else inner.encode(value)

    def decode(value: Json) -> object:
        return None if value is None else inner.decode(value)

    return Codec(encode, decode, inner.numeric)


def _each(turn: Callable[[A], B], values: Iterable[A]) -> list[B]:
    done: list[B] = []
    try:
        for value in values:
            done.append(turn(value))
    except Damaged as e:
        raise e.inside(f"[{len(done)}]") from None
    return done


def _sequence(item: object) -> Codec:
    if is_flat(item):
        return Codec(partial(_encode_columns, item), partial(_decode_columns, item))
    one = codec(item)

    def encode(values: tuple[object, ...]) -> Json:
        return _each(one.encode, values)

    def decode(value: Json) -> object:
        return tuple(_each(one.decode, decode_list(value)))

    return Codec(encode, decode)


def _fixed(parts: list[Codec]) -> Codec:
    def encode(values: tuple[object, ...]) -> Json:
        return [part.encode(value) for part, value in zip(parts, values, strict=True)]

    def decode(value: Json) -> object:
        values = decode_list(value)
        if len(values) != len(parts):
            raise Damaged(
                _("has {count} elements; allowed: {allowed}").format(
                    count=len(values), allowed=len(parts)
                )
            )
        return tuple(part.decode(v) for part, v in zip(parts, values, strict=True))

    return Codec(encode, decode)


def _encode_pieces(pieces: Mapping[int, bytes]) -> Json:
    return {str(token): encode_bytes(piece) for token, piece in sorted(pieces.items())}


def _decode_pieces(value: Json) -> dict[int, bytes]:
    pieces = {}
    for key, piece in decode_object(value).items():
        if not (key.isascii() and key.isdigit() and len(key) < 19):
            raise Damaged(_("has the key {key}; allowed: token ids").format(key=show(key)))
        try:
            pieces[int(key)] = decode_bytes(piece)
        except Damaged as e:
            raise e.inside(f"[{key}]") from None
    return pieces


def is_flat(item: object) -> TypeGuard[type]:
    """Whether a dataclass holds numbers only, so that a tuple of it is a table."""
    return (
        isinstance(item, type)
        and is_dataclass(item)
        and all(codec(hint).numeric for hint in hints(item).values())
    )


@cache
def hints(cls: type) -> dict[str, object]:
    """Fields of a dataclass, in order, with their resolved types."""
    found = get_type_hints(cls)
    return {field.name: found[field.name] for field in fields(cls)}


@cache
def _encoders(cls: type) -> tuple[tuple[str, Callable[..., Json]], ...]:
    def encoder(name: str, hint: object) -> Callable[..., Json]:
        plain = codec(hint).encode
        if name in SHORT.get(cls, ()):
            return lambda value: plain(_short(value))
        if name in SECONDS.get(cls, ()):
            return lambda value: plain(round(value, 7))
        return plain

    return tuple((name, encoder(name, hint)) for name, hint in hints(cls).items())


def _short(value: object) -> object:
    if isinstance(value, tuple):
        return tuple(map(_short, value))
    return float(f"{value:.6g}") if isinstance(value, float) else value


@cache
def _decoders(cls: type) -> dict[str, Callable[[Json], object]]:
    return {name: codec(hint).decode for name, hint in hints(cls).items()}


@cache
def _required(cls: type) -> frozenset[str]:
    return frozenset(
        f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING
    )


def _encode_object(cls: type, value: object) -> dict[str, Json]:
    done: dict[str, Json] = {}
    for name, encode in _encoders(cls):
        try:
            done[name] = encode(getattr(value, name))
        except Damaged as e:
            raise e.inside(f".{name}") from None
    return done


def _decode_fields(cls: type, value: Json) -> dict[str, object]:
    decoders, done = _decoders(cls), dict[str, object]()
    # Whoever adds a field raises the schema number, so an unknown key is damage, not the future.
    for name, item in decode_object(value).items():
        if name not in decoders:
            raise Damaged(
                _("has the key {name}; allowed: {decoders}").format(
                    name=show(name), decoders=", ".join(decoders)
                )
            )
        try:
            done[name] = decoders[name](item)
        except Damaged as e:
            raise e.inside(f".{name}") from None
    absent = _required(cls) - done.keys()
    if absent:
        raise Damaged(_("lacks {absent}").format(absent=", ".join(sorted(absent))))
    return done


def _make(cls: type[T], values: dict[str, object]) -> T:
    try:
        return cls(**values)
    except Damaged:
        raise
    except SpecvizError as e:  # settings and drafts check themselves
        raise Damaged(_("is not allowed: {e}").format(e=e)) from e
    except (TypeError, OverflowError) as e:
        raise Damaged(_("cannot be read: {e}").format(e=e)) from e


def _encode_columns(cls: type, values: tuple[object, ...]) -> Json:
    done: dict[str, Json] = {}
    for name, encode in _encoders(cls):
        try:
            done[name] = _each(encode, [getattr(value, name) for value in values])
        except Damaged as e:
            raise e.inside(f".{name}") from None
    return done


def _decode_columns(cls: type, value: Json) -> object:
    columns, decoders = decode_object(value), _decoders(cls)
    if columns.keys() != decoders.keys():
        raise Damaged(
            _("has columns {columns}; allowed: {decoders}").format(
                columns=show(sorted(columns)), decoders=", ".join(decoders)
            )
        )
    done = []
    for name, decode in decoders.items():
        try:
            done.append(_each(decode, decode_list(columns[name])))
        except Damaged as e:
            raise e.inside(f".{name}") from None
    if len({len(column) for column in done}) > 1:
        raise Damaged(_("has columns of unequal length"))
    return tuple(map(cls, *done))
