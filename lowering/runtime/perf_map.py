"""Names of loaded code for profilers: the file ``/tmp/perf-PID.map``, which perf and others read.

It is written where the environment variable ``DCARRAY_PERF_MAP`` says so.  Each line is an address, a number
of bytes, both in hexadecimal digits, and a name: to the end of the line.  CPython's own ``-X perf`` appends
to the same file.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from typing import NamedTuple

__all__ = ["Function", "named", "note"]

_VARIABLE = "DCARRAY_PERF_MAP"
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class Function(NamedTuple):
    """A function in loaded code."""

    name: str
    address: int
    size: int


class _Owner(NamedTuple):
    """What code is loaded for: a function of the program, its place, and the numbers of its kernels."""

    function: str
    place: str
    kernels: Iterator[int]


_owner: ContextVar[_Owner | None] = ContextVar("dcarray_perf_map", default=None)
_lines: list[str] = []  # that this process has written: a child of a fork has the code, and a file of its own


@contextmanager
def named(owner: Callable[[], tuple[str, str]]) -> Iterator[None]:
    """Note what is loaded in a block.

    Parameters
    ----------
    owner : callable
        Gives the name of the function that the code is of, and its place as ``file:line``.
    """
    if os.environ.get(_VARIABLE, "0") in ("", "0"):
        yield
        return
    token = _owner.set(_Owner(*owner(), count(1)))
    try:
        yield
    finally:
        _owner.reset(token)


def note(functions: Sequence[Function]) -> None:
    """Write the functions of loaded code, if it is known what they are for: the planning process, which runs
    nothing, writes none."""
    owner = _owner.get()
    if owner is None or not functions:
        return
    kernel = next(owner.kernels) if any(one.name.startswith("phase") for one in functions) else 0
    added = []
    for one in functions:
        name = f"dcarray::{owner.function}.kernel{kernel}.{one.name}:{owner.place}"
        if not kernel:  # of the thread pool
            name = f"dcarray::pool.{one.name}"
        name = name.replace("\n", "?")
        added.append(f"{one.address:x} {one.size:x} {name}\n")
    if not _lines and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: _write(_lines))
    _lines.extend(added)
    _write(added)


def _write(lines: Sequence[str]) -> None:
    """Append lines to the file of this process, by one call: others write there, too."""
    path = f"/tmp/perf-{os.getpid()}.map"
    try:
        file = os.open(path, _FLAGS, 0o600)
        try:
            os.write(file, "".join(lines).encode(errors="surrogateescape"))
        finally:
            os.close(file)
    except OSError as error:
        warnings.warn(f"no names for profilers: {error}", RuntimeWarning, stacklevel=2)
