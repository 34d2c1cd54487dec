"""The format of a log's entries: their integers, and the slots that they read and write.

``("old" or "new", dtype, shape, [strides,] head)`` declares an array; ``("map", ...)``, ``("fold", ...)`` and
``("call", ...)`` are statements.  `dcarray.ir.build` gives them their meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dcarray.core.native import BUILT

Log = tuple[tuple[Any, ...], ...]


def rewrite(log: Log, f: Callable[[int], Any]) -> Log:
    """Return the log with ``f`` applied to every size, stride and offset above 1."""

    def shape(dims: Any) -> Any:
        return None if dims is None else tuple([f(d) if d > 1 else d for d in dims])

    def index(parts: Any) -> Any:
        if parts is None:
            return None
        return tuple([(f(o) if o > 1 else o, f(s) if s > 1 else s, a) for o, s, a in parts])

    def argument(arg: Any) -> Any:
        return arg if type(arg) is int else (arg[0], index(arg[1]), shape(arg[2]))

    out: list[tuple[Any, ...]] = []
    for entry in log:
        kind = entry[0]
        if kind == "map":
            _, op, loop, domain, slot, where, *args = entry
            out.append((kind, op, loop, shape(domain), slot, index(where), *map(argument, args)))
        elif kind == "old":
            _, char, dims, strides, head = entry
            out.append((kind, char, shape(dims), shape(strides), head))
        elif kind == "new":
            _, char, dims, head = entry
            out.append((kind, char, shape(dims), head))
        elif kind == "fold":
            _, op, loop, domain, axes, keepdims, slot, arg = entry
            out.append((kind, op, loop, shape(domain), axes, keepdims, slot, argument(arg)))
        else:
            _, op, outs, args, attrs = entry
            out.append((kind, op, outs, tuple(map(argument, args)), attrs))
    return tuple(out)


def split(log: Log) -> tuple[Log, tuple[int, ...]]:
    """Return the template of a log, without its integers, and the integers in order."""
    values: list[int] = []

    def take(n: int) -> None:
        values.append(n)

    return rewrite(log, take), tuple(values)


if BUILT:  # the same in C
    from dcarray._native.extension import split  # noqa: F401


def reads(entry: tuple[Any, ...]) -> list[Any]:
    """Return the arguments of a statement: ``(slot, index, shape)``, or the number of a scalar."""
    kind = entry[0]
    return list(entry[3] if kind == "call" else entry[6:] if kind == "map" else entry[7:])


def writes(entry: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the slots that a statement writes."""
    kind = entry[0]
    outs: tuple[int, ...] = entry[2] if kind == "call" else (entry[4],) if kind == "map" else (entry[6],)
    return outs


def effects(statements: list[tuple[Any, ...]]) -> tuple[set[int], set[int]]:
    """Return the slots that statements write and read."""
    written = {slot for entry in statements for slot in writes(entry)}
    read = {arg[0] for entry in statements for arg in reads(entry) if type(arg) is tuple}
    return written, read
