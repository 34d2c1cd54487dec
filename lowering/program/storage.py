"""The storage of temporaries: which of them share memory, and the place of each in one block of memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from dcarray.ir import windows
from dcarray.ir.analysis.effects import families, reads, touched_arrays, writes
from dcarray.ir.nodes import Array, Compute, Dim, Gather, Nest, Region, Rows, Stmt
from dcarray.ir.records import record
from dcarray.ir.renaming import rename
from dcarray.lowering.nest.access import equal, total

from . import nodes


# ---- in place ---------------------------------------------------------------------------------------
def in_place(region: Region) -> Region:
    """Return the region in which a temporary and the result that its last reader computes from it are one
    array.

    In ``t = a @ b; out = t + c`` the last reader of ``t`` reads the same elements of ``t`` as it writes of
    ``out``, and nothing has accessed ``out`` before: the two become one array, ``out``.
    """
    arrays = {array.name: array for array in region.arrays}
    based = {array.base for array in region.arrays}
    body: list[Stmt] = []
    rows: list[tuple[int, int]] = []  # of each statement: the first one of its rows, and their axes
    for stmt in region.body:
        inner, axes = (stmt.body, stmt.axes) if isinstance(stmt, Rows) else ((stmt,), 0)
        rows += [(len(body), axes)] * len(inner)
        body += inner
    uses = [set(touched_arrays(stmt)) for stmt in body]
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for position, used in enumerate(uses):
        for name in used:
            first.setdefault(name, position)
            last[name] = position
    for position in range(len(body)):
        while (pair := _pair(body[position], position, arrays, based, first, last)) is not None:
            old, new = pair
            start, axes = rows[position]
            if axes and not _in_rows(body[start : position + 1], old, new, axes):
                break
            for earlier in range(first[old], position + 1):
                body[earlier] = rename(body[earlier], old, new)
            first[new] = first.pop(old)
            del arrays[old], last[old]
    if len(arrays) == len(region.arrays):
        return region
    rest: Iterator[Any] = iter(body)
    whole = tuple(
        replace(stmt, body=tuple(islice(rest, len(stmt.body)))) if isinstance(stmt, Rows) else next(rest)
        for stmt in region.body
    )
    return replace(region, arrays=tuple(arrays.values()), body=whole)


def _in_rows(body: Sequence[Stmt], old: str, new: str, axes: int) -> bool:
    """Whether the last of several statements that run row by row may write ``new`` to the memory of ``old``,
    because all of them use only their own row of ``old``."""
    (target,) = (window for window in writes(body[-1]) if window.array == new)
    used = (window for stmt in body for window in (*reads(stmt), *writes(stmt)) if window.array == old)
    return all(windows.disjoint_rows(replace(window, array=new), target, axes) for window in used)


def _pair(
    stmt: Stmt,
    position: int,
    arrays: dict[str, Array],
    based: set[str | None],
    first: dict[str, int],
    last: dict[str, int],
) -> tuple[str, str] | None:
    """Return a temporary, and the array that the statement at ``position`` computes from it and whose memory
    it can use from the start; None if there is no such pair."""
    if not isinstance(stmt, Compute | Nest):
        return None

    def alone(array: Array) -> bool:
        return array.base is None and array.name not in based and array.strides is None

    computes = (stmt,) if isinstance(stmt, Compute) else stmt.body
    for number, compute in enumerate(computes):
        new = arrays[compute.target.array]
        fresh = new.role in ("temp", "out") and first[new.name] == position and alone(new)
        if not fresh or compute.combine is not None:
            continue
        if any(new.name in touched_arrays(other) for k, other in enumerate(computes) if k != number):
            continue
        for name in sorted(touched_arrays(compute)):
            old = arrays[name]
            dying = old.role == "temp" and first[name] < position == last[name] and alone(old)
            alike = old.dtype == new.dtype and len(old.shape) == len(new.shape)
            if not dying or not alike or not all(map(equal, old.shape, new.shape)):
                continue
            if _only_there(name, computes, number):
                return name, new.name
    return None


def _only_there(name: str, computes: Sequence[Compute], number: int) -> bool:
    """Whether statements read ``name`` only where statement ``number`` writes it, and not later."""
    window = computes[number].target
    for position, compute in enumerate(computes):
        if compute.target.array == name:
            return False
        for load in (load for expr in compute.exprs for load in windows.loads(expr)):
            if load.window.array != name:
                continue
            there = replace(load.window, array=window.array)
            if isinstance(load, Gather) or position > number or not windows.same(there, window):
                return False
    return True


# ---- guests -----------------------------------------------------------------------------------------
HOST = 1 << 20
"""Bytes of a new array that is worth to be used before it is made; it begins where a cache line does."""


def hosts(region: Region, temporaries: Sequence[Need]) -> dict[str, str]:
    """Return temporaries that are dead before a new array is first used, each with such an array, at least as
    large, whose memory it can use until then.
    """
    root = families(region)
    arrays = {array.name: array for array in region.arrays}
    begun: dict[str, int] = {}
    for position, stmt in enumerate(region.body):
        for name in touched_arrays(stmt):
            begun.setdefault(root[name], position)
    rooms = {
        name: total((*arrays[name].shape, arrays[name].dtype.itemsize))
        for name in begun
        if arrays[name].role == "out" and arrays[name].strides is None
    }
    host_of: dict[str, str] = {}
    busy: dict[str, int] = {}  # the last statement that needs a guest there
    for need in sorted(temporaries, key=lambda need: need.first):
        size = need.size
        if type(size) is not int or size < HOST:
            continue
        free = [
            (room, name)
            for name, room in rooms.items()
            if type(room) is int
            and room >= size
            and need.last < begun[name]
            and busy.get(name, -1) < need.first
        ]
        if free:
            host_of[need.name] = name = min(free)[1]
            busy[name] = need.last
    return host_of


# ---- layout -----------------------------------------------------------------------------------------
@record(frozen=True, slots=True)
class Need:
    """A need of ``size`` bytes (a Dim) of memory from statement ``first`` to statement ``last``."""

    name: str
    size: Dim
    first: int
    last: int


@record(frozen=True, slots=True)
class Layout:
    """The division of a block of memory into pieces: their sizes in bytes, and the piece of each array."""

    sizes: tuple[Dim, ...]
    piece: dict[str, int]


def lifetimes(region: Region) -> list[tuple[Array, int, int]]:
    """Return the temporaries that have their own memory, each with the first and last statement of the
    region's body that uses it.  One used in a loop or branch is needed during all of it."""
    root = families(region)
    life: dict[str, tuple[int, int]] = {}
    for position, stmt in enumerate(region.body):
        for name in touched_arrays(stmt):
            first, _ = life.get(root[name], (position, position))
            life[root[name]] = first, position
    return [
        (array, *life[array.name])
        for array in region.arrays
        if array.role == "temp" and array.base is None and array.name in life
    ]


def needs(body: tuple[nodes.Node, ...]) -> list[Need]:
    """Return the memory needs of the arrays that a body allocates, in order."""
    last = {node.array.name: node.position for node in body if isinstance(node, nodes.Free)}
    return [
        Need(array.name, total((*array.shape, array.dtype.itemsize)), node.position, last[array.name])
        for node in body
        if isinstance(node, nodes.Alloc)
        for array in (node.array,)
    ]


def layout(needed: Sequence[Need]) -> Layout:
    """Return a layout of memory in which arrays that are never needed at the same time share pieces."""
    sizes: list[Dim] = []  # of the pieces
    busy: list[int] = []  # the last statement that needs the piece
    place: dict[str, int] = {}
    for need in sorted(needed, key=lambda need: need.first):
        free = [piece for piece, last in enumerate(busy) if last < need.first]
        piece = _fitting(need.size, free, sizes)
        if piece is None:
            piece = len(sizes)
            sizes.append(need.size)
            busy.append(need.last)
        elif type(need.size) is int:
            sizes[piece] = max(sizes[piece], need.size)
        busy[piece] = need.last
        place[need.name] = piece
    return Layout(tuple(sizes), place)


def _fitting(size: Dim, free: list[int], sizes: list[Dim]) -> int | None:
    """Return the free piece to use: of equal size, else the nearest known size; None if neither."""
    for piece in free:
        if sizes[piece] == size:  # written alike: to ask whether they are equal may restrict the plan
            return piece
    known = [piece for piece in free if type(sizes[piece]) is int]
    if type(size) is not int or not known:
        return None
    return min(known, key=lambda piece: abs(sizes[piece] - size))
