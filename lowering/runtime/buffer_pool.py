"""The memory of arrays: a pool of large buffers that are reused.

Fresh memory from the system costs more than the arithmetic done on it: every page is cleared and mapped at
its first touch.  Arrays of at least ``POOLED`` bytes therefore live in mapped blocks, in huge pages where
the system has them, which come back to the pool when the array and all its views have died.  A block that is
larger than the request is divided, and merged again when both parts are free.  The amount of unused memory
that the pool keeps is bounded.

A block is lent through a ``_Loan``, the base of the array that the caller gets.  Its finaliser may run
anywhere, also inside the pool's own code (a garbage collection), so it only appends to a queue, and
processes the queue when the pool's lock is free.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import mmap
import os
import sys
import threading
from collections import deque
from collections.abc import Sequence
from pickle import PickleBuffer
from typing import Any

import numpy as np

POOLED = 1 << 20
"""The least bytes of arrays from the pool."""

MAPPED = 1 << 17
"""Bytes from which on C libraries may return memory to the system as soon as it is free, so that a program
which allocates and drops array after array waits for fresh pages each time."""

_HUGE = 1 << 21
# A block is divided for a request of at least a fifth of it: larger blocks may not be needed again.
_LARGER = 5
_STAGGER = 1 << 14  # bytes within which arrays start at different cache lines
_APART = 1088  # bytes between such starts
_U8 = np.dtype(np.uint8)
_MAPS = hasattr(mmap, "MAP_PRIVATE") and hasattr(mmap, "MAP_ANONYMOUS")
_ADVISE = hasattr(mmap, "MADV_HUGEPAGE")
_FORGETS = hasattr(mmap, "MADV_DONTNEED")


class _Block:
    """A mapped block of memory: ``size`` usable bytes from offset ``skip`` of the mapping on, at ``address``,
    aligned to 64 bytes.  Only the first ``filled`` bytes get huge pages, each of which takes memory as a
    whole."""

    __slots__ = (
        "address", "bytes", "free", "mapped", "other", "room", "size", "skip", "stamp", "used", "whole",
    )  # fmt: skip
    whole: _Block | None  # of which this is a part,
    other: _Block | None  # and the other part

    def __init__(self, size: int, filled: int, serial: int) -> None:
        # Private, or a fork would share the arrays with the child.  One huge page more than asked for
        # leaves room to start at a huge page's boundary; what comes last, to divide it into equal parts.
        room = size + 2 * _STAGGER + (_HUGE if size >= _HUGE else 0)
        self.mapped = mmap.mmap(-1, room, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.bytes: Any = self.mapped  # as the base of arrays
        start = address_of(np.frombuffer(self.mapped, _U8))
        skip = -start % _HUGE if size >= _HUGE else 0
        if _ADVISE and filled >= _HUGE:
            with contextlib.suppress(OSError):  # a kernel without huge pages: ordinary ones serve
                self.mapped.madvise(mmap.MADV_HUGEPAGE, skip, filled & -_HUGE)
        # Arrays that all start at a boundary compete for the same cache sets and alias in the store
        # buffer when a kernel walks several of them together; so each starts at another cache line.
        self.skip = skip + (serial * _APART % _STAGGER & -64)
        self.size, self.room = size, size + _STAGGER  # the latter is there, the former counts
        self.address = start + self.skip
        self.stamp = serial
        self.used = False  # never lent: all of it is zero, and takes no memory
        self.free = False
        self.whole = self.other = None

    def divide(self, size: int) -> tuple[_Block, _Block]:
        """Divide a block; return the block of its first ``size`` bytes and the block of the others."""
        past = size + max((self.room - self.size) // (2 * _APART), 1) * _APART
        first, rest = _Part(self, 0, size, past), _Part(self, past, self.size - size, self.room - past)
        first.other, rest.other = rest, first
        return first, rest

    def leave(self) -> None:
        """Unlink the two parts of a block, so that no reference cycle keeps them alive."""
        if self.other is not None:
            self.other.other = None
        self.other = None

    def drop(self) -> None:
        """Return the block's pages to the system: a mapping at its last reference's end, a part now."""


class _Part(_Block):
    """A part of a divided block."""

    __slots__ = ()

    def __init__(self, whole: _Block, past: int, size: int, room: int) -> None:
        self.mapped, self.skip, self.address = whole.mapped, whole.skip + past, whole.address + past
        self.bytes = PickleBuffer(whole.mapped)  # arrays whose bases are one object are taken to share memory
        self.room, self.size = room, min(size, room & -64)
        self.stamp, self.used, self.free = whole.stamp, whole.used, False
        self.whole, self.other = whole, None

    def drop(self) -> None:
        self.leave()
        start, end = (
            round_up(self.skip, mmap.PAGESIZE),
            (self.skip + self.size) // mmap.PAGESIZE * mmap.PAGESIZE,
        )
        if _FORGETS:
            with contextlib.suppress(OSError):
                self.mapped.madvise(mmap.MADV_DONTNEED, start, end - start)


class _Loan(np.ndarray[Any, Any]):
    """The bytes of a block while an array uses them: the base of that array.  Its own base is the mapping,
    not an array, since NumPy would make that the base of the array instead, and the loan would die at
    once."""

    __slots__ = ("_block", "_pool")
    _block: _Block
    _pool: Pool

    def __del__(self) -> None:
        try:
            pool, block = self._pool, self._block
        except AttributeError:  # a view of a loan, or one whose construction failed
            return
        pool.give_back(block)


class Pool:
    """A pool of blocks that keeps at most ``limit`` unused bytes for reuse; by default an eighth of the
    machine's memory, and at most 1 GiB."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = _default_limit() if limit is None else limit
        self.lent = self.reused = self.mapped = self._clock = 0
        self._most = 0  # bytes that were lent at once
        self._free: dict[int, list[_Block]] = {}  # by size; in each list the longest unused first
        self._returned: deque[_Block] = deque()
        self._lock = threading.Lock()

    def lend(self, nbytes: int) -> tuple[_Loan, int]:
        """Return a buffer of at least ``nbytes`` bytes and its address; it returns to the pool when its last
        reference dies. Raises MemoryError if the system has no memory left, even after the pool has returned
        all unused blocks."""
        size = _size_class(nbytes)
        with self._lock:
            if self._returned:
                self._reclaim()
            block = self._take(size) or self._map(size, nbytes)
            self.lent += block.size
            self._most = max(self._most, self.lent)
        loan = np.ndarray.__new__(_Loan, (block.size,), _U8, block.bytes, block.skip)
        loan._pool, loan._block = self, block
        return loan, block.address

    def give_back(self, block: _Block) -> None:
        """Take a block back; callable from a finaliser at any moment."""
        block.used = True
        self._returned.append(block)
        self._try_reclaim()

    def _take(self, size: int) -> _Block | None:
        """Return a free block of ``size`` bytes, or a part of a larger one; None if there is none."""
        fitting = size
        if size not in self._free:
            fitting = min((n for n in self._free if size < n <= _LARGER * size), default=0)
        if not fitting:
            return None
        block = self._free[fitting][-1]
        self._remove(block)
        self.reused += 1
        if fitting - size >= max(MAPPED, size // 8):  # a smaller remainder is of no use
            block, rest = block.divide(size)
            self._keep(rest)
        return block

    def _keep(self, block: _Block) -> None:
        """Add a free block; two free parts are merged to their whole block."""
        while block.other is not None and block.other.free and block.whole is not None:
            self._remove(block.other)
            block.leave()
            block = block.whole
        self._clock += 1
        block.stamp, block.free, block.used = self._clock, True, True
        self._free.setdefault(block.size, []).append(block)

    def _remove(self, block: _Block) -> None:
        blocks = self._free[block.size]
        blocks.remove(block)
        if not blocks:
            del self._free[block.size]
        block.free = False

    def _kept_bytes(self) -> int:
        # The sum is taken afresh: a count kept aside would go wrong when an interrupt hits between.
        return sum(size * len(blocks) for size, blocks in self._free.items())

    def _map(self, size: int, filled: int) -> _Block:
        """Return a newly mapped block; unused blocks are first returned to the system where necessary.

        Unused and lent bytes together never exceed the peak of lent bytes, so that the pool takes no more
        memory than a program that frees each array at once.
        """
        lent = self.lent + size
        self._shrink(max(self._most - lent, 0))
        self._clock += 1
        try:
            block = _Block(size, filled, self._clock)
        except (OSError, MemoryError, OverflowError, ValueError):
            self._shrink(0)
            try:
                block = _Block(size, filled, self._clock)
            except (OSError, OverflowError, ValueError):
                raise MemoryError(f"Unable to allocate {size} bytes") from None
        self.mapped += 1
        return block

    def _try_reclaim(self) -> None:
        # The lock's holder may have emptied the queue before the last append: check again.
        while self._returned and self._lock.acquire(blocking=False):
            try:
                self._reclaim()
            finally:
                self._lock.release()

    def _reclaim(self) -> None:
        while self._returned:
            block = self._returned.popleft()
            self.lent -= block.size
            if block.size > self.limit:
                block.drop()
            else:
                self._keep(block)
        self._shrink(self.limit)

    def _shrink(self, limit: int) -> None:
        """Drop the longest unused blocks until at most ``limit`` bytes are kept."""
        while self._kept_bytes() > limit:
            oldest = min([blocks[0] for blocks in self._free.values()], key=lambda block: block.stamp)
            self._remove(oldest)
            oldest.drop()

    def trim(self, keep: int = 0) -> None:
        """Give memory back to the system until at most ``keep`` unused bytes are kept."""
        with self._lock:
            self._reclaim()
            self._shrink(keep)

    def stats(self) -> dict[str, int]:
        """Return the bytes ``retained`` (unused) and ``lent``, and the blocks ``reused``, ``mapped``."""
        with self._lock:
            self._reclaim()
            return {
                "retained": self._kept_bytes(),
                "lent": self.lent,
                "reused": self.reused,
                "mapped": self.mapped,
            }

    def after_fork(self) -> None:
        """Replace the lock in a forked child: another thread of the parent may have held it, and would never
        release it."""
        self._lock = threading.Lock()


def _size_class(nbytes: int) -> int:
    """Return a size rounded up to one of eight per power of two, so that similar sizes can share blocks."""
    step = max(1 << max(nbytes - 1, 1).bit_length() - 4, 1 << 16)
    return -(-nbytes // step) * step


def _default_limit() -> int:
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        total = 1 << 32
    return min(total // 8, 1 << 30)


def address_of(array: np.ndarray[Any, Any]) -> int:
    """Return the address of an array's first element."""
    address: int = array.__array_interface__["data"][0]
    return address


def round_up(extent: int, step: int) -> int:
    """Return the smallest multiple of a step that is not below an extent."""
    return -(-extent // step) * step


def _field_of(array: np.ndarray[Any, Any]) -> int:
    return _word(id(array) + _HEAD).value


# CPython's ndarray object starts with its data pointer (NumPy's C macros rely on it): reading it there is
# ten times as fast as asking for it.  Believed only after a trial.
_word = ctypes.c_size_t.from_address
_HEAD = object.__basicsize__
if sys.implementation.name == "cpython" and all(
    _field_of(trial) == address_of(trial) for trial in (np.zeros(3), np.zeros((4, 5), np.int8)[2:, 3:])
):
    address_of = _field_of

POOL = Pool()
"""The pool of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL.after_fork)


def allocate(
    shape: Sequence[int], dtype: Any, size: int = -1, pooled: int = POOLED
) -> tuple[np.ndarray[Any, Any], int]:
    """Return a new C-contiguous array with arbitrary contents, and its address.

    ``size`` is the number of elements if the caller knows it. An array of at least ``pooled`` bytes comes
    from the pool, which takes three microseconds. Raises NumPy's MemoryError if there is no memory left.
    """
    if type(dtype) is not np.dtype:
        dtype = np.dtype(dtype)
    nbytes = (math.prod(shape) if size < 0 else size) * dtype.itemsize
    if nbytes >= pooled and _MAPS and not dtype.hasobject:
        try:
            loan, address = POOL.lend(nbytes)
            return np.ndarray(shape, dtype, loan), address
        except MemoryError:
            pass  # NumPy fails with its own words, or finds a hole that is large enough
    array = np.empty(shape, dtype)
    return array, address_of(array)


def require(nbytes: int) -> None:
    """Raise MemoryError if ``nbytes`` bytes of memory cannot be mapped; called before work that would end the
    process if memory runs out."""
    if _MAPS:
        try:
            mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
        except OSError:
            raise MemoryError(f"Unable to allocate {nbytes} bytes") from None


def empty(shape: Sequence[int], dtype: Any, pooled: int = POOLED) -> np.ndarray[Any, Any]:
    """Return an array as ``numpy.empty`` does, a large one from the pool."""
    return allocate(shape, dtype, pooled=pooled)[0]


def zeros(shape: Sequence[int], dtype: Any, pooled: int = POOLED) -> np.ndarray[Any, Any]:
    """Return an array as ``numpy.zeros`` does, a large one from the pool; memory that is new from the system
    is zero already and not touched."""
    made = empty(shape, dtype, pooled)
    if type(made.base) is not _Loan or made.base._block.used:
        made.fill(0)
    return made


def stats() -> dict[str, int]:
    """Return the statistics of this process's pool; see `Pool.stats`."""
    return POOL.stats()


def trim(keep: int = 0) -> None:
    """Give unused memory of the pool back to the system until at most ``keep`` bytes are kept."""
    POOL.trim(keep)
