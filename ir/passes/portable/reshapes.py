"""Reshapes: statements over two shapes of one memory are rewritten to the finer of the two shapes.

A reshape merges or splits axes: both arrays have the same memory, in C order.  In statements that use
the shape with fewer axes, the axes of the domain are split, so that they can use the other one.  Writes and
reads are then windows of one array, and other passes can compare them.  Kernels merge contiguous axes again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dcarray.ir import dims, windows
from dcarray.ir.analysis.effects import Reason, touched_arrays
from dcarray.ir.nodes import Array, Compute, Dim, Expr, Gather, Index, Iota, Load, Region, Window
from dcarray.ir.passes.base import Log, Pass
from dcarray.ir.passes.flow import Block, Facts, each_block
from dcarray.ir.renaming import numbered

#: For each axis of an array, or of a domain, the extents of the axes that it is split into.
_Parts = dict[int, tuple[Dim, ...]]


# ---- shapes -------------------------------------------------------------------------------------------
def axis_groups(fine: Sequence[Dim], coarse: Sequence[Dim]) -> tuple[tuple[int, ...], ...] | None:
    """Return for each axis of ``coarse`` the axes of ``fine`` whose product it is, without axes of length
    one; None if that cannot be proved."""
    groups: list[tuple[int, ...]] = []
    k = 0
    for extent in coarse:
        own: list[int] = []
        size: Dim = 1
        while dims.prove_eq(size, extent) is not True:
            if k == len(fine):
                return None
            if not dims.is_number(fine[k], 1):
                own.append(k)
                size = dims.simplify(size * fine[k])
            k += 1
        groups.append(tuple(own))
    return tuple(groups) if all(dims.is_number(extent, 1) for extent in fine[k:]) else None


# ---- legality -----------------------------------------------------------------------------------------
def can_take_apart(
    stmt: object, coarse: Array, fine: Array, groups: tuple[tuple[int, ...], ...], arrays: dict[str, Array]
) -> _Parts | Reason:
    """Return the extents into which axes of a statement's domain are split so that it uses ``fine`` instead
    of ``coarse``, or why that is impossible."""
    if not isinstance(stmt, Compute) or any(
        isinstance(node, Gather) and node.window.array == coarse.name for node in windows.walk(stmt.body)
    ):
        return Reason(f"{coarse.name} is used by more than a computation")
    if stmt.scan is not None:
        return Reason("a scan keeps its axes", (stmt.target,))
    parts: _Parts = {}
    used = _windows(stmt)
    for window in used:
        if window.array == coarse.name:
            for axis, ix in enumerate(window.index):
                extents = tuple([fine.shape[k] for k in groups[axis]])
                if ix.axis is None and len(extents) > 1:
                    return Reason(f"a part of {coarse.name} is used", (window,))
                if ix.axis is not None and parts.setdefault(ix.axis, extents) != extents:
                    return Reason(f"{coarse.name} is used in two ways", (window,))
    parts = {axis: extents for axis, extents in parts.items() if len(extents) > 1}
    for window in used:
        array = arrays[window.array]
        for axis, ix in enumerate(window.index):
            if ix.axis not in parts or dims.is_number(ix.stride, 0):
                continue
            if array.strides is not None or not _whole(ix, window, array.shape[axis]):
                return Reason(f"a part of {array.name} is used", (window,))
    kept = {ix.axis for ix in stmt.target.index}
    if any(axis not in kept for axis in parts):
        return Reason("the order of a fold is kept", (stmt.target,))
    coordinates = {node.axis for node in windows.walk(stmt.body) if isinstance(node, Iota)}
    if not coordinates.isdisjoint(parts):
        return Reason("coordinates are used", (stmt.target,))
    return parts


def _windows(stmt: Compute) -> list[Window]:
    used = [stmt.target]
    for expr in (stmt.body, stmt.init):
        if expr is not None:
            used += [node.window for node in windows.loads(expr) if isinstance(node, Load)]
    return used


def _whole(ix: Index, window: Window, extent: Dim) -> bool:
    """Whether an index covers all of an array's axis, in order."""
    return (
        ix.axis is not None
        and dims.is_number(ix.offset, 0)
        and type(ix.stride) is int
        and ix.stride == 1
        and dims.prove_eq(window.shape[ix.axis], extent) is True
    )


# ---- action -------------------------------------------------------------------------------------------
class _Geometries:
    """The arrays of a region, and those added for other shapes of their memory."""

    def __init__(self) -> None:
        self.added: list[Array] = []

    def of(self, array: Array, shape: tuple[Dim, ...], facts: Facts) -> Array:
        """Return an array of the shape ``shape`` on the memory of ``array``, added to the region if
        needed."""
        for other in self.added:
            if other.base == array.name and other.shape == shape:
                return other
        name = numbered(array.name, {*facts.arrays, *(other.name for other in self.added)})
        new = Array(name, array.dtype, shape, "temp", base=array.name)
        facts.arrays[name] = new
        facts.roots[name] = facts.roots[array.name]
        facts.shared.add(facts.roots[array.name])
        self.added.append(new)
        return new


def take_apart(
    stmt: Compute, coarse: Array, fine: Array, groups: tuple[tuple[int, ...], ...], parts: _Parts,
    facts: Facts, geometries: _Geometries,
) -> Compute:  # fmt: skip
    """Return the statement with ``fine`` instead of ``coarse``; ``parts`` are those of `can_take_apart`."""
    domain: list[Dim] = []
    places: list[int] = []
    for axis, extent in enumerate(stmt.target.shape):
        places.append(len(domain))
        domain += parts.get(axis, (extent,))
    shape = tuple(domain)

    def axes(ix: Index) -> list[Index]:
        """Return the indices that one index is split into."""
        if ix.axis is None or (ix.axis in parts and dims.is_number(ix.stride, 0)):
            return [Index(ix.offset)]
        if ix.axis in parts:
            return [Index(0, 1, places[ix.axis] + k) for k in range(len(parts[ix.axis]))]
        return [replace(ix, axis=places[ix.axis])]

    def moved(window: Window) -> Window:
        indices = [axes(ix) for ix in window.index]
        if window.array == coarse.name:
            index = [Index(0)] * len(fine.shape)
            for own, new in zip(groups, indices, strict=True):
                index = [new[own.index(k)] if k in own else ix for k, ix in enumerate(index)]
            return Window(fine.name, shape, tuple(index))
        array = facts.arrays[window.array]
        if any(len(new) > 1 for new in indices):
            extents: list[Dim] = []
            for ix, new, extent in zip(window.index, indices, array.shape, strict=True):
                extents += [extent] if len(new) == 1 or ix.axis is None else parts[ix.axis]
            array = geometries.of(array, tuple(extents), facts)
        return Window(array.name, shape, tuple([ix for new in indices for ix in new]))

    def node(expr: Expr) -> Expr:
        if isinstance(expr, Load):
            return Load(moved(expr.window), expr.dtype)
        if isinstance(expr, Gather):
            return Gather(replace(expr.window, shape=shape), expr.index, expr.dtype)
        return Iota(places[expr.axis], expr.dtype) if isinstance(expr, Iota) else expr

    init = None if stmt.init is None else windows.rewrite(stmt.init, node)
    return replace(stmt, target=moved(stmt.target), body=windows.rewrite(stmt.body, node), init=init)


def _unify(block: Block, members: list[Array], geometries: _Geometries, log: Log) -> bool:
    """Make a block's statements use the finest of several arrays on one memory; return whether any
    changed."""
    for fine in sorted(members, key=lambda array: -len(array.shape)):
        groups = {array.name: axis_groups(fine.shape, array.shape) for array in members}
        if None not in groups.values():
            break
    else:
        return False
    names = {array.name for array in members}
    if (
        sum(isinstance(stmt, Compute) and not names.isdisjoint(touched_arrays(stmt)) for stmt in block.stmts)
        < 2
    ):
        return False  # nothing to fuse
    todo: list[tuple[int, Array, _Parts]] = []
    for pos, stmt in enumerate(block.stmts):
        used = [] if stmt is None else [array for array in members if array.name in touched_arrays(stmt)]
        for coarse in used:
            if coarse is fine:
                continue
            own = groups[coarse.name]
            assert own is not None
            parts = can_take_apart(stmt, coarse, fine, own, block.facts.arrays)
            if len(used) > 1:
                parts = Reason(f"it is also used as {(used[0] if used[0] is not coarse else used[1]).name}")
            if isinstance(parts, Reason):
                text = f"{coarse.name} is not gone over as {fine.name}: {parts.text}"
                log.refused("reshapes", text, getattr(stmt, "loc", None))
                return False
            todo.append((pos, coarse, parts))
    for pos, coarse, parts in todo:
        stmt, own = block.stmts[pos], groups[coarse.name]
        assert isinstance(stmt, Compute) and own is not None
        block.replace(pos, take_apart(stmt, coarse, fine, own, parts, block.facts, geometries))
        log.done("reshapes", f"{coarse.name} is gone over as {fine.name}", stmt.loc)
    return bool(todo)


def _visit(block: Block, geometries: _Geometries, log: Log) -> bool:
    facts = block.facts
    families: dict[str, dict[str, None]] = {}
    for stmt in block.stmts:
        for name in sorted(touched_arrays(stmt)) if stmt is not None else ():
            families.setdefault(facts.roots[name], {})[name] = None
    changed = False
    for root, names in families.items():
        # the offset of given memory in that of another array is unknown
        if len(names) > 1 and facts.arrays[root].role in ("temp", "out"):
            members = [facts.arrays[name] for name in names]
            if all(a.strides is None and a.dtype == members[0].dtype for a in members):
                changed |= _unify(block, members, geometries, log)
    return changed


def _own_memory(region: Region) -> Region:
    """Return the region in which temporaries that no longer share their memory have no base."""
    used = {name for stmt in region.body for name in touched_arrays(stmt)}
    facts = Facts(region)
    families: dict[str, list[Array]] = {}
    for array in region.arrays:
        families.setdefault(facts.roots[array.name], []).append(array)
    gone: set[str] = set()
    free: set[str] = set()
    for root, members in families.items():
        named = [array for array in members if array.name in used]
        if len(members) > 1 and len(named) == 1 and facts.arrays[root].role == "temp":
            free.add(named[0].name)
            gone.update(array.name for array in members if array is not named[0])
    arrays = [replace(a, base=None) if a.name in free else a for a in region.arrays if a.name not in gone]
    return replace(region, arrays=tuple(arrays)) if gone else region


def _run(region: Region, log: Log) -> Region:
    if not any(array.base is not None for array in region.arrays):
        return region
    geometries = _Geometries()
    new = each_block(region, lambda block: _visit(block, geometries, log))
    if geometries.added:
        new = replace(new, arrays=(*region.arrays, *geometries.added))
    return _own_memory(new)


RESHAPES = Pass("reshapes", _run)
