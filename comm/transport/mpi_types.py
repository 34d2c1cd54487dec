"""MPI derived datatypes of array windows, so that these are sent and received without packing."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from typing import Any
from warnings import warn

from mpi4py import MPI

from .call_location import caller_text
from .errors import PerformanceWarning
from .protocol import Array

__all__ = ["TYPES", "absolute_type", "buffer_of"]


class _Types:
    """A least-recently-used cache of MPI datatypes, by the shapes and strides of windows."""

    CAPACITY = 512
    # A loop over all neighbours in three dimensions needs 52 types; one over changing sizes needs more.
    WARN_AT = 64

    def __init__(self) -> None:
        self.cached: OrderedDict[Any, MPI.Datatype] = OrderedDict()
        self.made = 0
        self._by_place: Counter[str] = Counter()

    def of(self, key: Any) -> MPI.Datatype:
        """Return a message's datatype; the key has each window's offset, shape, strides and item size."""
        known = self.cached.get(key)
        if known is not None:
            self.cached.move_to_end(key)
            return known
        if len(key) == 1:
            new = self._window(*key[0][1:])
        else:
            parts = [self._window(*part[1:]) for part in key]
            new = MPI.Datatype.Create_struct([1] * len(key), [part[0] for part in key], parts)
            for part in parts:
                part.Free()
        self.cached[key] = new.Commit()
        if len(self.cached) > self.CAPACITY:
            self.cached.popitem(last=False)[1].Free()
        where = caller_text()
        self.made += 1
        self._by_place[where] += 1
        if self._by_place[where] == self.WARN_AT:
            warn(
                f"{where} has sent or received {self.WARN_AT} windows of different sizes or strides, and an "
                "MPI type was made for each",
                PerformanceWarning,
                stacklevel=2,
            )
        return new

    @staticmethod
    def _window(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> MPI.Datatype:
        """Return the datatype of a window in C order: contiguous blocks, nested in vectors for other axes."""
        block, axes = itemsize, list(zip(shape, strides, strict=True))
        while axes and axes[-1][1] == block:
            block *= axes.pop()[0]
        if not axes:
            return MPI.BYTE.Create_contiguous(block)
        length, stride = axes.pop()
        datatype = MPI.BYTE.Create_hvector(length, block, stride)
        for length, stride in reversed(axes):
            inner = datatype
            datatype = inner.Create_hvector(length, 1, stride)
            inner.Free()
        return datatype


TYPES = _Types()


def buffer_of(parts: Sequence[Array]) -> list[Any]:
    """Return the buffer argument (memory, count, datatype) of mpi4py for a message."""
    held = [part for part in parts if part.size]
    if not held:
        return [None, 0, MPI.BYTE]
    addresses = [int(part.__array_interface__["data"][0]) for part in held]
    start = addresses[0]
    if len(held) == 1 and held[0].flags.c_contiguous:
        return [MPI.buffer.fromaddress(start, held[0].nbytes), held[0].nbytes, MPI.BYTE]
    key = tuple(
        (address - start, part.shape, part.strides, part.itemsize)
        for address, part in zip(addresses, held, strict=True)
    )
    # The type says what is touched; the length of the buffer plays no part.
    return [MPI.buffer.fromaddress(start, 1), 1, TYPES.of(key)]


def absolute_type(parts: Sequence[Array]) -> MPI.Datatype:
    """Return a message's datatype with absolute addresses of its windows; the caller has to free it."""
    buffer, count, inner = buffer_of(parts)
    at = buffer.address if count else 0
    return MPI.Datatype.Create_struct([count], [at], [inner]).Commit()
