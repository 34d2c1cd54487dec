"""Copies of what a run overwrites, made by the run itself, in case it has to be made again.

As statements of the region they are fused with what overwrites: one more array written, and nothing read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dcarray.ir import dims
from dcarray.ir.nodes import Array, Call, Compute, Gather, Index, Load, Nest, Region, Rows, Stmt, Window
from dcarray.ir.windows import covers, identity, loads, same

from .effects import families, sharing, touched, writes
from .independence import all_statements


@dataclass(frozen=True, slots=True)
class Kept:
    """The array ``copy`` holds what ``array`` held under ``window`` before the run."""

    array: str
    copy: str
    window: Window

    @property
    def slices(self) -> str:
        """Where that is in both, as a Python expression over the region's symbols: an index."""
        parts = []
        for ix in self.window.index:
            count = 1 if ix.axis is None else self.window.shape[ix.axis]
            stop = ix.offset + (count - 1) * ix.stride + 1
            parts.append(f"slice({', '.join(map(dims.show, (ix.offset, stop, max(ix.stride, 1))))})")
        return f"({''.join(f'{part}, ' for part in parts)})"


def keeping(region: Region, names: Sequence[str]) -> tuple[Region, tuple[Kept, ...]]:
    """The region with copies of these arrays, which come last among its arrays and have C order.

    Parameters
    ----------
    region : Region
        Of statements that are no loops or branches.
    names : sequence of str
        Existing arrays, from `ir.effects.overwritten_inputs`.

    Returns
    -------
    Region
        The same object if there are no names.
    tuple of Kept
        One for each name.
    """
    if not names:
        return region, ()
    arrays = {array.name: array for array in region.arrays}
    windows = [_window(arrays[name], region) for name in names]
    kept = tuple([Kept(name, f"kept_{name}", w) for name, w in zip(names, windows, strict=True)])
    copies = tuple([replace(arrays[k.array], name=k.copy, role="out", strides=None, base=None) for k in kept])
    saves = tuple(
        [Compute(replace(k.window, array=k.copy), Load(k.window, arrays[k.array].dtype)) for k in kept]
    )
    return replace(region, arrays=(*region.arrays, *copies), body=(*saves, *region.body)), kept


def several(region: Region, names: Sequence[str]) -> tuple[str, ...]:
    """Those of these arrays that share their memory with others."""
    shared = sharing(region)
    return tuple([name for name in names if name in shared])


def called(region: Region, kept: Sequence[Kept]) -> tuple[Region, tuple[Kept, ...], tuple[str, ...]]:
    """The region without copies of what may be overwritten when a library call fails: whoever runs it has to
    copy these before it begins, and one copy serves both.

    Parameters
    ----------
    region : Region
        As passes have made it of the result of `keeping`.
    kept : sequence of Kept

    Returns
    -------
    Region
        The same object where there are none, or where they are made beside something else.
    tuple of Kept
        Those that are still needed.
    tuple of str
        The arrays of the others.
    """
    last = max((k for k, stmt in enumerate(region.body) if _calls(stmt)), default=-1)
    alone = last >= 0 and isinstance(region.body[last], Call)
    before = region.body[: last if alone else last + 1]
    written = {window.array for stmt in before for window in writes(stmt)}
    found = [one for one in kept if one.array in written]
    left = without(region, found)
    if left is region:
        return region, tuple(kept), ()
    return left, tuple([one for one in kept if one not in found]), tuple([one.array for one in found])


def spare(region: Region, kept: Sequence[Kept]) -> tuple[Region, tuple[Kept, ...], int | None]:
    """The region without copies of what only its last statements overwrite, if these do nothing but copy,
    too: a run that has to be made again ends before them, and finds those arrays as they were.

    Parameters
    ----------
    region : Region
        As passes have made it of the result of `keeping`.
    kept : sequence of Kept

    Returns
    -------
    Region
    tuple of Kept
        Those that are still needed.
    int or None
        The position of the first of the last statements; None if all copies are needed.
    """
    end = len(region.body)
    types = {array.name: array.dtype for array in region.arrays}
    while end and all(_copies(part, types) for part in _parts(region.body[end - 1])):
        end -= 1
    root = families(region)
    saves = {one.copy: stmt for one in kept for stmt in region.body if _saves(stmt, one)}
    before = {root[w.array] for stmt in region.body[:end] for w in writes(stmt)}
    uses = [touched(stmt) for stmt in region.body[:end]]
    copies = [one.copy for one in kept if one.copy in saves and root[one.array] not in before]
    copies = [name for name in copies if sum(name in used for used in uses) == 1]  # nobody else uses it
    if not copies:
        return region, tuple(kept), None
    gone = [saves[name] for name in copies]
    body = tuple([stmt for stmt in region.body if not any(stmt is other for other in gone)])
    arrays = tuple([array for array in region.arrays if array.name not in copies])
    left = tuple([one for one in kept if one.copy not in copies])
    return replace(region, arrays=arrays, body=body), left, end - len(gone)


def late(region: Region, kept: Sequence[Kept]) -> tuple[Region, tuple[Kept, ...], int | None]:
    """The region with what its last statement computes made aside and copied to its place by one more, so
    that a run which has to be made again ends before that one, and nothing need be kept.

    That is done where a temporary of the same shape dies in that statement: its memory serves.

    Parameters
    ----------
    region : Region
        As passes have made it of the result of `keeping`.
    kept : sequence of Kept

    Returns
    -------
    Region
        The same object if all copies are needed.
    tuple of Kept
        Those that are needed: none, or all.
    int or None
        The position of the statement that copies.
    """
    last = _parts(region.body[-1]) if region.body else ()
    computes = [part for part in last if isinstance(part, Compute) and part.combine is None]
    saves = [part for part in computes if any(_saves(part, one) for one in kept)]
    rest = [part for part in computes if not any(part is save for save in saves)]
    makers = [part for part in rest if any(part.target.array == one.array for one in kept)]
    alone = not any(one.copy in touched(stmt) for stmt in (*region.body[:-1], *rest) for one in kept)
    before = {window.array for stmt in region.body[:-1] for window in writes(stmt)}
    shared = sharing(region)
    if not kept or not alone or not len(kept) == len(saves) == len(makers) or len(computes) < len(last):
        return region, tuple(kept), None
    arrays = {array.name: array for array in region.arrays}
    for one in kept:
        arrays.pop(one.copy)
    copies: list[Stmt] = []
    for maker in makers:
        name = maker.target.array
        aside = Array(f"late_{name}", arrays[name].dtype, maker.target.shape)
        place = identity(aside)
        later = rest[rest.index(maker) + 1 :]
        if name in before or name in shared or any(name in touched(part) for part in later):
            return region, tuple(kept), None
        if not any(_dies(load, place, aside, arrays) for load in loads(maker.body)):
            return region, tuple(kept), None
        arrays[aside.name] = aside
        rest[rest.index(maker)] = replace(maker, target=place)
        copies.append(Compute(maker.target, Load(place, aside.dtype), loc=maker.loc))
    main: Stmt = rest[0] if len(rest) == 1 else Nest(tuple(rest), region.body[-1].loc)
    body = (*region.body[:-1], main, *copies)
    return replace(region, arrays=tuple(arrays.values()), body=body), (), len(body) - len(copies)


def _dies(load: Load | Gather, place: Window, aside: Array, arrays: Mapping[str, Array]) -> bool:
    """Is what the last statement reads here a temporary of which another array can take the place?"""
    old = arrays[load.window.array]
    plain = old.role == "temp" and old.base is None and old.strides is None and old.dtype == aside.dtype
    return plain and isinstance(load, Load) and same(replace(load.window, array=aside.name), place)


def without(region: Region, kept: Sequence[Kept], beside: bool = False) -> Region:
    """The region without these copies; the same object where they cannot be left out.

    Parameters
    ----------
    region : Region
        As passes have made it of the result of `keeping`.
    kept : sequence of Kept
    beside : bool, optional
        Are those left out, too, that are made beside something else?
    """
    copies = {one.copy for one in kept}
    if beside:
        left = [_left(stmt, copies) for stmt in region.body]
    else:
        left = [None if all(_written(p) in copies for p in _parts(s)) else s for s in region.body]
    body = tuple([stmt for stmt in left if stmt is not None])
    if not kept or any(copies & touched(stmt) for stmt in body):
        return region
    return replace(region, arrays=tuple([a for a in region.arrays if a.name not in copies]), body=body)


def _left(stmt: Stmt, copies: set[str]) -> Stmt | None:
    """A statement, or of several those that make no copies; None if all do."""
    if not isinstance(stmt, Nest | Rows):
        return None if _written(stmt) in copies else stmt
    rest: list[Any] = [made for part in stmt.body if (made := _left(part, copies)) is not None]
    if all(made is part for made, part in zip(rest, stmt.body, strict=False)) and len(rest) == len(stmt.body):
        return stmt
    return replace(stmt, body=tuple(rest)) if len(rest) > 1 else rest[0] if rest else None


def _calls(stmt: Stmt) -> bool:
    """Is there a library call in a statement?"""
    return any(isinstance(one, Call) for one in all_statements((stmt,)))


def _written(stmt: Stmt) -> str | None:
    return stmt.target.array if isinstance(stmt, Compute) else None


def _parts(stmt: Stmt) -> tuple[Stmt, ...]:
    return stmt.body if isinstance(stmt, Nest) else (stmt,)


def _copies(stmt: Stmt, types: Mapping[str, np.dtype[Any]]) -> bool:
    """Does a statement copy elements as they are, so that nothing can be said of it?"""
    match stmt:
        case Compute(target=target, body=Load() as load, combine=None, scan=None):
            return load.dtype == types[target.array] == types[load.window.array]
    return False


def _saves(stmt: Stmt, kept: Kept) -> bool:
    return isinstance(stmt, Compute) and stmt.target.array == kept.copy


def _window(array: Array, region: Region) -> Window:
    """All of the array that is written, as one window; the whole array if there is none so simple."""
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
    # its axes as they run along the array, wherever those of loops were
    shape = tuple(first.shape[axis] for axis in axes)
    found = Window(first.array, shape, tuple(_along(ix, axes) for ix in first.index))
    # a loop whose conditions leave turns out may go past the array in these
    return found if covers(identity(array), found) is True else identity(array)


def _along(ix: Index, axes: Sequence[int]) -> Index:
    return ix if ix.axis is None else replace(ix, axis=axes.index(ix.axis))
