"""Names of loaded code for profilers: the file ``/tmp/perf-PID.map``, which perf and others read.

The file is written if the environment variable ``DCARRAY_PERF_MAP`` is set and not 0.  Each line has an
address and a number of bytes, both in hexadecimal, and then a name.  CPython's ``-X perf`` appends to the
same file.
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
    """A function in loaded code: its name, address and size in bytes."""

    name: str
    address: int
    size: int


class _Owner(NamedTuple):
    """The owner of loaded code: a function of the user's program, its place, and the next kernel numbers."""

    function: str
    place: str
    kernels: Iterator[int]


_owner: ContextVar[_Owner | None] = ContextVar("dcarray_perf_map", default=None)
_lines: list[str] = []  # that this process has written: a child of a fork has the code, and a file of its own


@contextmanager
def named(owner: Callable[[], tuple[str, str]]) -> Iterator[None]:
    """A context in which loaded code is recorded as belonging to a function of the user's program.

    Parameters
    ----------
    owner : callable
        Returns the name of that function, and its place as ``file:line``.
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
    """Write the functions of loaded code to the file, if `named` has given their owner; the planning process,
    which runs no code, has none."""
    owner = _owner.get()
    if owner is None or not functions:
        return
    kernel = next(owner.kernels)
    added = []
    for one in functions:
        name = f"dcarray::{owner.function}.kernel{kernel}.{one.name}:{owner.place}"
        name = name.replace("\n", "?")
        added.append(f"{one.address:x} {one.size:x} {name}\n")
    if not _lines and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: _write(_lines))
    _lines.extend(added)
    _write(added)


def _write(lines: Sequence[str]) -> None:
    """Append lines to the file of this process, in a single write, since other code writes there, too."""
    path = f"/tmp/perf-{os.getpid()}.map"
    try:
        file = os.open(path, _FLAGS, 0o600)
        try:
            os.write(file, "".join(lines).encode(errors="surrogateescape"))
        finally:
            os.close(file)
    except OSError as error:
        warnings.warn(f"no names for profilers: {error}", RuntimeWarning, stacklevel=2)
