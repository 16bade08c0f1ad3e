"""Numbers, text and bytes as JSON values: exact, and never a bare NaN or Infinity."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from specviz.errors import SpecvizError
from specviz.words import _

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

MAX_INT = 2**63 - 1


class Damaged(SpecvizError):
    """A value that does not fit its type; `where` grows on the way out: ".rounds[3].path[0]"."""

    def __init__(self, problem: str, where: str = "") -> None:
        super().__init__(problem)
        self.problem, self.where = problem, where

    def inside(self, step: str) -> "Damaged":
        """Put the outer part of the path in front."""
        return Damaged(self.problem, step + self.where)

    def __str__(self) -> str:
        return f"{self.where.lstrip('.')} {self.problem}".strip()


@dataclass(frozen=True, slots=True)
class Codec:
    """Both directions for one type; both raise Damaged."""

    encode: Callable[..., Json]
    decode: Callable[[Json], object]
    numeric: bool = False  # number, bool or None: fit for a column


def show(value: object) -> str:
    """Name a value in an error, whatever its size."""
    if isinstance(value, list | dict):
        return f"a {'list' if isinstance(value, list) else 'object'} of {len(value)}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def same(value: Json) -> Json:
    """Encode what JSON can hold as it is."""
    return value


def encode_float(value: float) -> Json:
    """Write a number; the infinities as "inf" and "-inf"."""
    if math.isfinite(value):
        return value
    if math.isnan(value):
        raise Damaged(_("is NaN, which a trace cannot hold"))
    return "inf" if value > 0 else "-inf"


def decode_float(value: Json) -> float:
    """Read a number."""
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) is int and abs(value) <= MAX_INT:
        return float(value)
    if type(value) is str and value in ("inf", "-inf"):
        return float(value)
    raise Damaged(_("is {value}; allowed: a finite number").format(value=show(value)))


def decode_int(value: Json) -> int:
    """Read a whole number."""
    if type(value) is int and abs(value) <= MAX_INT:
        return value
    raise Damaged(
        _("is {value}; allowed: a whole number of at most 63 bits").format(value=show(value))
    )


def decode_bool(value: Json) -> bool:
    """Read true or false."""
    if type(value) is bool:
        return value
    raise Damaged(_("is {value}; allowed: true or false").format(value=show(value)))


def encode_text(value: str) -> Json:
    """Write text; what UTF-8 cannot hold becomes "?": token ids and bytes are the record."""
    return value.encode(errors="replace").decode()


def decode_text(value: Json) -> str:
    """Read text; a lone surrogate, which no UTF-8 file can hold, is refused."""
    if type(value) is str and value.encode(errors="ignore").decode() == value:
        return value
    raise Damaged(_("is {value}; allowed: text").format(value=show(value)))


def encode_bytes(value: bytes) -> Json:
    """Write bytes as text of one character per byte (latin-1)."""
    return value.decode("latin-1")


def decode_bytes(value: Json) -> bytes:
    """Read bytes."""
    if type(value) is not str:
        raise Damaged(
            _("is {value}; allowed: text of one character per byte").format(value=show(value))
        )
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        raise Damaged(_("holds a character above 255; allowed: one character per byte")) from None


def decode_choice(allowed: tuple[str, ...], value: Json) -> str:
    """Read one of a few words."""
    if type(value) is str and value in allowed:
        return value
    raise Damaged(
        _("is {value}; allowed: {allowed}").format(value=show(value), allowed=", ".join(allowed))
    )


def decode_list(value: Json) -> list[Json]:
    """Read a list, its elements as they are."""
    if type(value) is list:
        return value
    raise Damaged(_("is {value}; allowed: a list").format(value=show(value)))


def decode_object(value: Json) -> dict[str, Json]:
    """Read an object, its values as they are."""
    if type(value) is dict:
        return value
    raise Damaged(_("is {value}; allowed: an object").format(value=show(value)))


SCALARS: dict[object, Codec] = {
    float: Codec(encode_float, decode_float, numeric=True),
    int: Codec(same, decode_int, numeric=True),
    bool: Codec(same, decode_bool, numeric=True),
    str: Codec(encode_text, decode_text),
    bytes: Codec(encode_bytes, decode_bytes),
}
