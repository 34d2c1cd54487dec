"""The pass that merges reductions over ranks: a linear combination of sums becomes one sum over ranks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from dcarray.comm.layout.layouts import Block
from dcarray.comm.layout.notation import Partial, read, write
from dcarray.comm.planning.analysis.iteration_domain import canonical_without_halo
from dcarray.ir.analysis.effects import reads, writes
from dcarray.ir.nodes import Apply, Array, Call, Compute, Const, Expr, Load, Region, Stmt
from dcarray.ir.ops import const_value
from dcarray.ir.passes.base import Log, Pass
from dcarray.ir.renaming import numbered
from dcarray.ir.windows import identity, loads, map_loads

__all__ = ["merge_reductions"]

_NAME = "reduction merging"


def merge_reductions(finite: Collection[str]) -> Pass:
    """Return the pass that merges the sums over ranks in linear combinations.

    Instead of the sums `s` and `t` in ``y = a * s + b * t``, each rank's ``a * s + b * t`` is summed over
    ranks: half as many bytes are sent.

    Parameters
    ----------
    finite : collection of str
        The names of scalars known to be finite: a factor inf would make NaN of partial sums that are zero.
    """

    def fn(region: Region, log: Log) -> Region:
        while (merged := _merge_one(region, finite, log)) is not region:
            region = merged
        return region

    return Pass(_NAME, fn)


def _merge_one(region: Region, finite: Collection[str], log: Log) -> Region:
    arrays = {array.name: array for array in region.arrays}
    sums = _mergeable_sums(region, arrays)
    for k, stmt in enumerate(region.body):
        if not isinstance(stmt, Compute) or stmt.combine is not None:
            continue
        target = arrays[stmt.target.array]
        terms = [x.window.array for x in loads(stmt.body) if isinstance(x, Load) and x.window.array in sums]
        names = set(terms)
        if len(names) < 2 or target.dtype.kind == "b" or stmt.target != identity(target):
            continue
        if not _is_linear(stmt.body, names, arrays, finite):
            continue
        parts = {name: arrays[sums[name]] for name in names}
        first, *others = (read(part.layout, part.shape) for part in parts.values())
        layout, partial = first
        assert layout is not None and partial is not None
        alike = all(
            other == layout and also is not None and also.over == partial.over for other, also in others
        )
        if not alike or any(_bare_layout(arrays[name]) != _bare_layout(target) for name in names):
            log.refused(_NAME, f"{', '.join(sorted(names))} are sums over ranks in several ways", stmt.loc)
            continue
        merged = Array(numbered(target.name, arrays), target.dtype, target.shape)
        along = tuple((-1, Block(g)) for g in partial.over)
        merged = replace(merged, layout=write(layout, Partial("add", along)))

        def of_part(load: Expr, parts: Mapping[str, Array] = parts) -> Expr:
            part = parts.get(load.window.array) if isinstance(load, Load) else None
            return load if part is None else Load(identity(part), part.dtype)

        body: list[Stmt] = [s for s in region.body[:k] if not (_is_sum(s) and names & _written(s))]
        body.append(replace(stmt, target=identity(merged), body=map_loads(stmt.body, of_part)))
        add = (("op", "add"),)
        body.append(Call("comm.reduce", (identity(merged),), (identity(target),), add, stmt.loc))
        text = f"{', '.join(sorted(names))} are added up over ranks once they are combined"
        log.done(_NAME, text, stmt.loc)
        kept = tuple(array for array in region.arrays if array.name not in names)
        return replace(region, arrays=(*kept, merged), body=(*body, *region.body[k + 1 :]))
    return region


def _mergeable_sums(region: Region, arrays: Mapping[str, Array]) -> dict[str, str]:
    """Return, for each temporary that is a sum over ranks and read once, the array of its partial sums.

    Each temporary and its array of partial sums is written once, and the latter is not read elsewhere.
    """
    written: dict[str, int] = {}
    used: dict[str, int] = {}
    for stmt in region.body:
        for window in writes(stmt):
            written[window.array] = written.get(window.array, 0) + 1
        for name in {window.array for window in reads(stmt)}:
            used[name] = used.get(name, 0) + 1
    parts: dict[str, str] = {}
    for stmt in region.body:
        if isinstance(stmt, Call) and _is_sum(stmt):
            part, whole = stmt.reads[0].array, stmt.writes[0].array
            once = all(
                written.get(name) == used.get(name) == 1
                and arrays[name].role == "temp"
                and arrays[name].base is None
                for name in (part, whole)
            )
            if once and stmt.writes[0] == identity(arrays[whole]):
                parts[whole] = part
    return parts


def _is_sum(stmt: Stmt) -> bool:
    return isinstance(stmt, Call) and stmt.op == "comm.reduce" and dict(stmt.attrs)["op"] == "add"


def _written(stmt: Stmt) -> set[str]:
    return {window.array for window in writes(stmt)}


def _is_linear(expr: Expr, names: set[str], arrays: Mapping[str, Array], finite: Collection[str]) -> bool:
    """Whether an expression is a linear combination of some arrays, each at the target's points."""
    if isinstance(expr, Load):
        name = expr.window.array
        return name in names and expr.window == identity(arrays[name])
    if not isinstance(expr, Apply):
        return False
    if expr.op in ("add", "subtract"):
        return all(_is_linear(arg, names, arrays, finite) for arg in expr.args)
    if expr.op == "negative":
        return _is_linear(expr.args[0], names, arrays, finite)
    if expr.op == "multiply":
        one, two = expr.args
        return (_is_finite_factor(one, arrays, finite) and _is_linear(two, names, arrays, finite)) or (
            _is_finite_factor(two, arrays, finite) and _is_linear(one, names, arrays, finite)
        )
    return False


def _is_finite_factor(expr: Expr, arrays: Mapping[str, Array], finite: Collection[str]) -> bool:
    """Whether an expression is a scalar constant or input that is finite and the same on all ranks."""
    if isinstance(expr, Const):
        return bool(np.isfinite(const_value(expr)))
    return (
        isinstance(expr, Load)
        and not arrays[expr.window.array].shape
        and arrays[expr.window.array].role == "in"
        and expr.window.array in finite
    )


def _bare_layout(array: Array) -> object:
    return canonical_without_halo(read(array.layout, array.shape)[0])
