"""Logs without their integers: templates of logs that differ only in sizes, strides and offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dcarray.core.native import BUILT
from dcarray.ir.log_entries import Declaration, Statement, read

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

    def changed(raw: tuple[Any, ...]) -> tuple[Any, ...]:
        entry = read(raw)
        if isinstance(entry, Declaration):
            return entry._replace(shape=shape(entry.shape), strides=shape(entry.strides)).entry()
        domain, where = shape(entry.shape), index(entry.index)  # in the order of the entry's fields
        return entry._replace(shape=domain, index=where, args=tuple(map(argument, entry.args))).entry()

    return tuple(map(changed, log))


def split(log: Log) -> tuple[Log, tuple[int, ...]]:
    """Return the template of a log, without its integers, and the integers in order."""
    values: list[int] = []

    def take(n: int) -> None:
        values.append(n)

    return rewrite(log, take), tuple(values)


if BUILT:  # the same in C
    from dcarray._native.extension import split


def integers(statements: Iterable[Statement]) -> tuple[int, ...]:
    """Return the sizes, strides and offsets of statements in order."""
    return split(tuple([entry.entry() for entry in statements]))[1]
