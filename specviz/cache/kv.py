"""Keys and values of one sequence, and whatever else must be dropped and kept with them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.models.transfer import send

# Keys are read in whole blocks, the spare ones masked: a sum over keys then is split the same way
# however many rows are new, and a row's result does not depend on the rows after it.
BLOCK = 32


def in_blocks(length: int) -> int:
    """Return `length` rounded up to whole blocks."""
    return -(-length // BLOCK) * BLOCK


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheShape:
    """What one cached token takes; `taps` hidden states of width `hidden` ride along."""

    layers: int
    kv_heads: int
    head_dim: int
    context: int  # most tokens that will ever be cached
    taps: int = 0
    hidden: int = 0


class Rows:
    """A tensor that grows along one dimension by doubling, up to a limit."""

    def __init__(self, empty: Tensor, dim: int, limit: int) -> None:
        self.data, self.dim, self.limit = empty, dim, limit

    @property
    def capacity(self) -> int:
        return self.data.shape[self.dim]

    def reserve(self, needed: int, length: int) -> None:
        """Make room for `needed` rows, keeping the first `length`."""
        if needed > self.limit:
            raise IndexError(f"{needed} rows do not fit in the {self.limit} of the context")
        if needed <= self.capacity:
            return
        self.data = self.copied(min(max(needed, 2 * self.capacity), self.limit), length)

    def copied(self, capacity: int, length: int) -> Tensor:
        """Return the first `length` rows in a new tensor of `capacity` rows."""
        shape = list(self.data.shape)
        shape[self.dim] = capacity
        grown = self.data.new_zeros(shape)
        grown.narrow(self.dim, 0, length).copy_(self.data.narrow(self.dim, 0, length))
        return grown

    def move(self, rows: Tensor, to: int) -> None:
        """Copy `rows` to `to` and after; sources are read before anything is written."""
        chosen = self.data.index_select(self.dim, rows)
        self.data.narrow(self.dim, to, len(rows)).copy_(chosen)


class KVCache:
    """Keys and values [layers, kv_heads, capacity, head_dim], valid up to `length`.

    Rows written at and past `length` are a draft: `keep` makes some of them permanent, the next
    write overwrites the rest. So a rollback is one assignment.
    """

    def __init__(
        self, shape: CacheShape, device: torch.device, dtype: torch.dtype, capacity: int = 256
    ) -> None:
        self.shape, self.length = shape, 0
        capacity, limit = in_blocks(min(capacity, shape.context)), in_blocks(shape.context)
        size = (shape.layers, 2, shape.kv_heads, capacity, shape.head_dim)
        # keys beside values, so that one copy per layer writes both
        self._kv = Rows(torch.zeros(size, device=device, dtype=dtype), 3, limit)
        taps = torch.zeros(capacity, shape.taps, shape.hidden, device=device, dtype=dtype)
        self._taps = Rows(taps, 0, limit)

    @property
    def capacity(self) -> int:
        return self._kv.capacity

    @property
    def k(self) -> Tensor:
        """Keys of the cached tokens [layers, kv_heads, length, head_dim]."""
        return self._kv.data[:, 0, :, : self.length]

    @property
    def v(self) -> Tensor:
        """Values of the cached tokens [layers, kv_heads, length, head_dim]."""
        return self._kv.data[:, 1, :, : self.length]

    @property
    def features(self) -> Tensor:
        """Tapped hidden states of the cached tokens [length, taps, hidden]."""
        return self._taps.data[: self.length]

    @property
    def storage(self) -> Tensor:
        """Keys [:, 0] and values [:, 1] with all room: [layers, 2, kv_heads, capacity, head_dim].

        The tensor stays in place until `reserve` makes a larger one.
        """
        return self._kv.data

    @property
    def taps_storage(self) -> Tensor:
        """Tapped hidden states with all room [capacity, taps, hidden]."""
        return self._taps.data

    def reserve(self, rows: int) -> int:
        """Make room for `rows` tokens past `length`; return the number of keys `write` returns."""
        total = in_blocks(self.length + rows)
        self._kv.reserve(total, self.length)
        if self.shape.taps:
            self._taps.reserve(total, self.length)
        return total

    def write(self, layer: int, kv: Tensor) -> tuple[Tensor, Tensor]:
        """Put kv [rows, 2, kv_heads, head_dim] past `length`, where `reserve` made room.

        Returns keys and values [kv_heads, total, head_dim] of that layer in whole blocks, the new
        rows included, what follows them to be masked; `length` stays.
        """
        end = self.length + kv.shape[0]
        whole = self._kv.data[layer, :, :, : in_blocks(end)]
        whole[:, :, self.length : end].copy_(kv.permute(1, 2, 0, 3))
        return whole[0], whole[1]

    def write_tap(self, tap: int, hidden: Tensor) -> None:
        """Put hidden [rows, hidden] past `length` as tap number `tap`."""
        self._taps.data[self.length : self.length + len(hidden), tap] = hidden

    def append(self, rows: int) -> None:
        """Make the first `rows` tokens written past `length` permanent."""
        if not 0 <= rows <= self.capacity - self.length:
            raise IndexError(f"{rows} rows after {self.length} of {self.capacity} were never made")
        self.length += rows

    @torch.inference_mode()  # room made during a pass may only be written in this mode
    def keep(self, start: int, rows: Sequence[int]) -> None:
        """Keep the cached rows `start + rows[i]`, in that order, from `start` on."""
        if not 0 <= start <= self.length:
            raise IndexError(f"cannot keep rows from {start} on: {self.length} are cached")
        in_place = 0
        while in_place < len(rows) and rows[in_place] == in_place:
            in_place += 1  # a prefix of what was written costs nothing
        if in_place < len(rows):
            moved = send([start + row for row in rows[in_place:]], self._kv.data.device)
            self._kv.move(moved, start + in_place)
            if self.shape.taps:
                self._taps.move(moved, start + in_place)
        self.length = start + len(rows)

    def truncate(self, length: int) -> None:
        """Drop tokens past `length`; what lies beyond is overwritten by the next write."""
        if not 0 <= length <= self.length:
            raise IndexError(f"cannot truncate {self.length} cached tokens to {length}")
        self.length = length

    def fork(self, length: int) -> "KVCache":
        """Return a copy of the first `length` tokens that shares nothing with this one."""
        if not 0 <= length <= self.length:
            raise IndexError(f"cannot fork {self.length} cached tokens at {length}")
        other = object.__new__(KVCache)
        other.shape, other.length = self.shape, length
        other._kv = Rows(self._kv.copied(self._kv.capacity, length), 3, self._kv.limit)
        taps = self._taps  # it never grows where there is nothing to tap
        data = taps.copied(taps.capacity, length) if self.shape.taps else taps.data
        other._taps = Rows(data, 0, taps.limit)
        return other
