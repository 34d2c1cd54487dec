"""Undo copies: a run saves the inputs that it overwrites, in case it has to be repeated.

The copies are statements of the region, so that fusion puts each in the loop that overwrites its input: this
writes one more array, but reads none more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dcarray.ir import dims
from dcarray.ir.nodes import Array, Call, Compute, Gather, Load, Nest, Region, Rows, Stmt, Window
from dcarray.ir.ops import may_fail
from dcarray.ir.records import record
from dcarray.ir.statements import all_statements
from dcarray.ir.windows import covers, identity, loads, same

from .effects import families, sharing, touched_arrays, writes


@record(frozen=True, slots=True)
class UndoCopy:
    """An undo copy: the array ``copy`` holds the elements that ``array`` had under ``window`` before the
    run."""

    array: str
    copy: str
    window: Window

    @property
    def slices(self) -> str:
        """The NumPy index of these elements in either array, as a Python expression over the region's
        symbols."""
        parts = []
        for ix in self.window.index:
            count = 1 if ix.axis is None else self.window.shape[ix.axis]
            stop = ix.offset + (count - 1) * ix.stride + 1
            parts.append(f"slice({', '.join(map(dims.show, (ix.offset, stop, max(ix.stride, 1))))})")
        return f"({''.join(f'{part}, ' for part in parts)})"


def with_undo_copies(region: Region, names: Sequence[str]) -> tuple[Region, tuple[UndoCopy, ...]]:
    """Return the region with undo copies of the arrays ``names`` added, and a description of each copy.

    The new arrays are the region's last ones and have C order. The region must have no loops or branches;
    ``names`` come from `effects.overwritten_inputs`. Without names the region is the same object.
    """
    if not names:
        return region, ()
    arrays = {array.name: array for array in region.arrays}
    with dims.Guards(facts=region.guards):
        windows = [_window(arrays[name], region) for name in names]
    undo = tuple([UndoCopy(name, f"kept_{name}", w) for name, w in zip(names, windows, strict=True)])
    copies = tuple([replace(arrays[k.array], name=k.copy, role="out", strides=None, base=None) for k in undo])
    saves = [Compute(replace(k.window, array=k.copy), Load(k.window, arrays[k.array].dtype)) for k in undo]
    return replace(region, arrays=(*region.arrays, *copies), body=(*saves, *region.body)), undo


def aliased_arrays(region: Region, names: Sequence[str]) -> tuple[str, ...]:
    """Return those of ``names`` whose arrays share their memory with another array of the region."""
    shared = sharing(region)
    return tuple([name for name in names if name in shared])


def caller_copies(
    region: Region, undo: Sequence[UndoCopy]
) -> tuple[Region, tuple[UndoCopy, ...], tuple[str, ...]]:
    """Return the region without the undo copies of arrays that are overwritten before a library call that may
    fail, the undo copies that remain, and the names of the arrays whose copies were removed.

    The caller copies those arrays before each run, for a failed call as well as for a repeated run. The
    region is the same object if no copy is removed, or if one is made in a nest together with other results.
    """
    last = max((k for k, stmt in enumerate(region.body) if _calls(stmt)), default=-1)
    alone = last >= 0 and isinstance(region.body[last], Call)
    before = region.body[: last if alone else last + 1]
    written = {window.array for stmt in before for window in writes(stmt)}
    callers = [one for one in undo if one.array in written]
    left = without_copies(region, callers)
    if left is region:
        return region, tuple(undo), ()
    return left, tuple([one for one in undo if one not in callers]), tuple([one.array for one in callers])


def end_before_overwrites(
    region: Region, undo: Sequence[UndoCopy]
) -> tuple[Region, tuple[UndoCopy, ...], int | None]:
    """Drop the undo copies of arrays that only the region's final statements overwrite, if these only copy
    elements.  Returns the region, the copies that remain, and the position of the first final statement;
    None instead of the position if all copies are needed.

    A run that has to be repeated stops before the final statements, and so leaves those arrays unchanged.
    """
    end = len(region.body)
    types = {array.name: array.dtype for array in region.arrays}
    while end and all(_copies(part, types) for part in _parts(region.body[end - 1])):
        end -= 1
    root = families(region)
    saves = {one.copy: stmt for one in undo for stmt in region.body if _saves(stmt, one)}
    before = {root[w.array] for stmt in region.body[:end] for w in writes(stmt)}
    uses = [touched_arrays(stmt) for stmt in region.body[:end]]
    copies = [one.copy for one in undo if one.copy in saves and root[one.array] not in before]
    copies = [name for name in copies if sum(name in used for used in uses) == 1]  # no other uses
    if not copies:
        return region, tuple(undo), None
    gone = [saves[name] for name in copies]
    body = tuple([stmt for stmt in region.body if not any(stmt is other for other in gone)])
    arrays = tuple([array for array in region.arrays if array.name not in copies])
    left = tuple([one for one in undo if one.copy not in copies])
    return replace(region, arrays=arrays, body=body), left, end - len(gone)


def compute_aside(
    region: Region, undo: Sequence[UndoCopy]
) -> tuple[Region, tuple[UndoCopy, ...], int | None]:
    """Make the last statement write to temporaries, and append a statement that copies them to its targets.
    Returns the region, the undo copies that remain (none, or all if nothing changed), and the position of
    the copying statement, or None.

    A run that has to be repeated stops before that statement. This is only done where the temporary can have
    the memory of another one of the same shape that is dead after the last statement.
    """
    last = _parts(region.body[-1]) if region.body else ()
    computes = [part for part in last if isinstance(part, Compute) and part.combine is None]
    saves = [part for part in computes if any(_saves(part, one) for one in undo)]
    rest = [part for part in computes if not any(part is save for save in saves)]
    makers = [part for part in rest if any(part.target.array == one.array for one in undo)]
    alone = not any(one.copy in touched_arrays(stmt) for stmt in (*region.body[:-1], *rest) for one in undo)
    before = {window.array for stmt in region.body[:-1] for window in writes(stmt)}
    shared = sharing(region)
    if not undo or not alone or not len(undo) == len(saves) == len(makers) or len(computes) < len(last):
        return region, tuple(undo), None
    arrays = {array.name: array for array in region.arrays}
    for one in undo:
        arrays.pop(one.copy)
    copies: list[Stmt] = []
    for maker in makers:
        name = maker.target.array
        aside = Array(f"late_{name}", arrays[name].dtype, maker.target.shape)
        place = identity(aside)
        later = rest[rest.index(maker) + 1 :]
        if name in before or name in shared or any(name in touched_arrays(part) for part in later):
            return region, tuple(undo), None
        if not any(_dies(load, place, aside, arrays) for load in loads(maker.body)):
            return region, tuple(undo), None
        arrays[aside.name] = aside
        rest[rest.index(maker)] = replace(maker, target=place)
        copies.append(Compute(maker.target, Load(place, aside.dtype), loc=maker.loc))
    main: Stmt = rest[0] if len(rest) == 1 else Nest(tuple(rest), region.body[-1].loc)
    body = (*region.body[:-1], main, *copies)
    return replace(region, arrays=tuple(arrays.values()), body=body), (), len(body) - len(copies)


def _dies(load: Load | Gather, place: Window, aside: Array, arrays: Mapping[str, Array]) -> bool:
    """Return whether a load of the last statement reads a temporary whose memory the array ``aside`` can
    take: a plain one of the same dtype, at the elements that ``place`` writes."""
    old = arrays[load.window.array]
    plain = old.role == "temp" and old.base is None and old.strides is None and old.dtype == aside.dtype
    return plain and isinstance(load, Load) and same(replace(load.window, array=aside.name), place)


def without_copies(region: Region, undo: Sequence[UndoCopy], beside: bool = False) -> Region:
    """Return the region without the undo copies ``undo``; the same object if they cannot be removed.

    With ``beside``, copies that are made in one nest with other results can be removed, too.
    """
    copies = {one.copy for one in undo}
    if beside:
        left = [_left(stmt, copies) for stmt in region.body]
    else:
        left = [None if all(_target_name(p) in copies for p in _parts(s)) else s for s in region.body]
    body = tuple([stmt for stmt in left if stmt is not None])
    if not undo or any(copies & touched_arrays(stmt) for stmt in body):
        return region
    return replace(region, arrays=tuple([a for a in region.arrays if a.name not in copies]), body=body)


def _left(stmt: Stmt, copies: set[str]) -> Stmt | None:
    """Return the statement without the parts that make undo copies; None if all parts do."""
    if not isinstance(stmt, Nest | Rows):
        return None if _target_name(stmt) in copies else stmt
    rest: list[Any] = [new for part in stmt.body if (new := _left(part, copies)) is not None]
    if all(new is part for new, part in zip(rest, stmt.body, strict=False)) and len(rest) == len(stmt.body):
        return stmt
    return replace(stmt, body=tuple(rest)) if len(rest) > 1 else rest[0] if rest else None


def _calls(stmt: Stmt) -> bool:
    """Return whether a statement contains a library call that may fail."""
    return any(isinstance(one, Call) and may_fail(one.op) for one in all_statements((stmt,)))


def _target_name(stmt: Stmt) -> str | None:
    return stmt.target.array if isinstance(stmt, Compute) else None


def _parts(stmt: Stmt) -> tuple[Stmt, ...]:
    return stmt.body if isinstance(stmt, Nest) else (stmt,)


def _copies(stmt: Stmt, types: Mapping[str, np.dtype[Any]]) -> bool:
    """Whether a statement copies elements as they are, so that it raises no floating-point exception."""
    match stmt:
        case Compute(target=target, body=Load() as load, combine=None, scan=None):
            return load.dtype == types[target.array] == types[load.window.array]
    return False


def _saves(stmt: Stmt, undo: UndoCopy) -> bool:
    return isinstance(stmt, Compute) and stmt.target.array == undo.copy


def _window(array: Array, region: Region) -> Window:
    """Return a window of all elements of ``array`` that the region writes; the whole array if no window has
    exactly these."""
    written = [w for stmt in region.body for w in writes(stmt) if w.array == array.name]
    first = written[0] if written else identity(array)
    axes = [ix.axis for ix in first.index if ix.axis is not None]
    simple = (
        len(first.index) == len(array.shape)
        and sorted(axes) == list(range(len(first.shape)))
        and all(type(ix.stride) is int and ix.stride > 0 for ix in first.index if ix.axis is not None)
    )
    alone = array.base is None and not any(other.base == array.name for other in region.arrays)
    if not (simple and alone and all(covers(first, w) is True for w in written)):
        return identity(array)
    # its axes in the order of the array's
    shape = tuple(first.shape[axis] for axis in axes)
    along = [ix if ix.axis is None else replace(ix, axis=axes.index(ix.axis)) for ix in first.index]
    window = Window(first.array, shape, tuple(along))
    # iterations that a condition excludes may be outside of the array
    return window if covers(identity(array), window) is True else identity(array)
