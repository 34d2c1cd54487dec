"""Reductions along outer axes: rows are added to a strip of results that stays in the cache.

The loop over rows is jammed: several rows are folded in registers, so that the strip is loaded
and stored less often; rows are added in their order, as NumPy does.  Where the columns are too few for many
cores, blocks of rows give partial rows of results, which are then folded in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dcarray.ir import dims, windows
from dcarray.ir.nodes import Dim, Gather
from dcarray.ir.passes.fusion_profit import OUT_OF_CACHE
from dcarray.lowering.cpu.kernel_passes.unroll_and_jam import jam_pairs
from dcarray.lowering.kernel import nodes as k
from dcarray.lowering.nest.access import equal, product, total
from dcarray.lowering.nest.body import Scope, all_of, cast_to
from dcarray.lowering.nest.fold import Folding, op, starts_of
from dcarray.lowering.nest.loop_nest import (
    MIN_PARALLEL,
    Block,
    LoopHeader,
    LoopNest,
    build_loops,
    evaluate_statements,
    variable,
    wrap_loop,
)

COLUMNS = 4096  # elements of a strip of the result
NARROW = 1024  # elements of a strip whose rows share an operand: some rows of that stay in the first cache
GROUP = 64  # rows of one partial result, at least
GROUPS = 64  # partial results, roughly, at most
PARTS, ELEMENTS = 16, 1 << 17  # of long rows: at most so many partial results, or so many elements of them
MIN_PART = 1 << 18  # elements that are folded into one partial result, at least
MIN_STRIP = 512  # elements of a strip, at least
WAYS = 8  # the largest jam factor; it divides GROUP
UNROLL = 2  # the unrolling of the inner loop of jammed rows: strips may be short
BODY = 16  # the largest cost of a jammed body
FEWER, LARGER = 4, 64  # the largest jam factor and cost where a single array comes from memory

Add = Callable[[Scope, Folding, list[k.Expr]], None]


def schedule_columns(nest: LoopNest, foldings: list[Folding], kept: list[int], folded: list[int]) -> None:
    """Add one phase to the kernel, in which each strip of columns is folded from its first row to its last.

    If the result has few rows, and these share an operand, as in a matrix product, the loop over the result's
    rows is inside the loop over the summed rows, so that each summed row is read from memory once."""
    extents, arguments = nest.loops.extents, nest.arguments
    *outer, last = kept
    shared = _shares(nest, outer, last, folded)
    strips = not nest.single_threaded and _strips_are_parallel(
        nest, outer, last, NARROW if shared else COLUMNS
    )
    shared = shared and strips
    width = NARROW if shared else COLUMNS
    if strips and not outer:  # a sum is in order, so only columns are shared among threads
        width = min(width, max(MIN_STRIP, 1 << (nest.hints(extents[last]) // MIN_PARALLEL).bit_length()))
    if not nest.single_threaded and not strips:
        outer.insert(0, outer.pop(_longest(nest, outer)))
    if strips:
        launch = nest.block_count(extents[last], width)
        phase, extent = "b0", arguments.integer(launch, "blocks")
        headers = [] if shared else [nest.whole_loop(loop) for loop in outer]
        start = variable("b0", width)
        points = width * total(n for loop, n in enumerate(extents) if loop != last)
    else:
        phase, extent, launch, points, headers = nest.parallel_header(outer)
        strip = "b2" if nest.single_threaded else "b0"  # b0 may be the variable of the enclosing row blocks
        headers.append(nest.strip_loop(last, strip, COLUMNS))
        start = variable(strip)
    base = 1 + len(headers)
    across = nest.loop_from(last, start, k.affine(width))
    within = [*map(nest.whole_loop, outer), across] if shared else [across]
    for folding in foldings:
        arguments.note(arguments.access(folding.compute.target), "r")

    def sweep(fill: Callable[[Scope, Folding], None], which: list[Folding]) -> tuple[Block, Scope]:
        """Return the loop over the strip that applies ``fill`` to reductions ``which``; and its scope."""
        scope = nest.scope_at(phase, [*headers, *within], base + len(within), False)
        for folding in which:
            fill(scope, folding)
        return (build_loops(scope, base, within, "vector") if which else ()), scope

    def begin(scope: Scope, folding: Folding) -> None:
        (value,) = starts_of(scope, nest, [folding])
        scope.store(folding.compute.target, value, False)

    def add(scope: Scope, folding: Folding, values: list[k.Expr]) -> None:
        value = _fold_values(folding.fold.name, _element(scope, folding), values)
        scope.store(folding.compute.target, value, False)

    begun, begins = sweep(begin, [f for f in foldings if f.compute.init is not None])
    inside = [*map(nest.whole_loop, folded)]
    wrap_loop(inside, 0, begun, ())
    body, main = _sweep_rows(nest, phase, [*headers, *inside], within, foldings, add)
    pre = (*main.preamble(), *begins.preamble())
    if not nest.single_threaded and not strips and len(outer) > 1:
        body = jam_pairs(nest, body, outer[-1])
    nest.add_phase(k.Phase(phase, extent, "serial", body, pre), launch, points * nest.cost())


def _longest(nest: LoopNest, outer: Sequence[int]) -> int:
    """Return the loop to parallelise: the first that is long enough, or the longest."""
    sizes = [min(nest.hints(nest.loops.extents[loop]), MIN_PARALLEL) for loop in outer]
    return sizes.index(max(sizes))


def _strips_are_parallel(nest: LoopNest, outer: Sequence[int], last: int, width: int) -> bool:
    """Whether threads share the strips of columns, rather than the rows of the result."""
    sizes = [nest.hints(extent) for extent in nest.loops.extents]
    return not outer or (sizes[last] > width and all(sizes[loop] < MIN_PARALLEL for loop in outer))


def _shares(nest: LoopNest, outer: Sequence[int], last: int, folded: list[int]) -> bool:
    """Whether all rows of the result share the operand that is read along the summed rows."""
    if len(outer) != 1:
        return False

    every = [nest.arguments.reach(load).coefs for value in nest.values for load in windows.loads(value)]
    along = [c for c in every if _moves(nest, c, last) and any(_moves(nest, c, loop) for loop in folded)]
    gathers = any(isinstance(node, Gather) for value in nest.values for node in windows.walk(value))
    return bool(along) and not gathers and not any(_moves(nest, coefs, outer[0]) for coefs in along)


def _moves(nest: LoopNest, coefs: Sequence[Dim], loop: int) -> bool:
    """Whether an access moves with a loop; ``coefs`` has its stride along each domain axis."""
    return any(not equal(coefs[axis], 0) for axis in nest.loops.axes[loop])


def rows_of_a_part(nest: LoopNest, first: int) -> Dim:
    """Return the number of rows that are folded to one partial row: a multiple of ``GROUP``, so large that
    the block is worth a thread and that there are few partial rows."""
    extents = nest.loops.extents
    points = total(n for loop, n in enumerate(extents) if loop != first)
    worth = nest.block_count(nest.block_count(MIN_PART, nest.largest(points, 1)), GROUP)
    count = min(GROUPS, max(PARTS, ELEMENTS // points)) if type(points) is int and points > 0 else GROUPS
    return dims.simplify(GROUP * nest.largest(worth, nest.block_count(extents[first], GROUP * count), 1))


def fold_parts(
    nest: LoopNest, foldings: list[Folding], places: dict[int, str], count: Dim, extent: k.Affine
) -> None:
    """Add the phase that folds partial rows of results in their order."""
    arguments, last = nest.arguments, len(nest.loops.axes) - 1
    at = k.affine(0, product(arguments.extent(last), variable("b0")), nest.variables[last])
    strips = nest.block_count(nest.loops.extents[last], COLUMNS)
    strip = nest.loop_from(last, variable("b1", COLUMNS), k.affine(COLUMNS))
    begins = nest.scope_at("b1", [strip], 2, False)
    adds = nest.scope_at("b1", [LoopHeader("b0", k.affine(), (extent,)), strip], 3, False)
    for folding in foldings:
        arguments.note(arguments.access(folding.compute.target), "r")
        if folding.compute.init is not None:
            begins.store(folding.compute.target, starts_of(begins, nest, [folding])[0], False)
        fold, old = folding.fold, _element(adds, folding)
        value = op(fold.name, cast_to(old, fold.wide), k.Elem(places[folding.number], at, fold.wide))
        adds.store(folding.compute.target, cast_to(value, fold.dtype), False)
    body = build_loops(adds, 1, [LoopHeader("b0", k.affine(), (extent,)), strip], "vector")
    if any(folding.compute.init is not None for folding in foldings):
        body = (*build_loops(begins, 1, [strip], "vector"), *body)
    phase = k.Phase("b1", arguments.integer(strips, "strips"), "serial", body, begins.preamble())
    nest.add_phase(phase, strips, COLUMNS * count * 4)


def _sweep_rows(
    nest: LoopNest,
    phase: str,
    headers: list[LoopHeader],
    within: list[LoopHeader],
    foldings: list[Folding],
    add: Add,
) -> tuple[Block, Scope]:
    """Return the loops ``headers``, the last of which is over rows, around those ``within``, the last of
    which is across the strip: first jammed over several rows, then for the remaining rows.  ``add`` receives
    the rows' values."""
    *others, rows = headers
    several, level = jam_factor(nest), 1 + len(others)
    heads = [(1, rows)]
    extent = nest.loops.extents[int(rows.var[1:])]
    if several > 1 and nest.enclosing is not None and nest.enclosing.varies(extent):
        # the number of remaining rows depends on enclosing loops
        first, full = variable("b3"), _whole_group(rows, several)
        others.append(replace(rows, var="b3", step=several))
        level += 1
        rows = replace(rows, lower=first, before=(), after=())
        heads = [(several, replace(rows, upper=(k.affine(1, first),), step=several, cond=full))]
        heads += [(1, replace(rows, cond=k.Op("logical_not", (full,), full.dtype)))]
    elif several > 1:
        whole = nest.arguments.integer(dims.simplify(extent // several * several), "whole", rows.var)
        heads = [(several, replace(rows, upper=(*rows.upper[:-1], whole), step=several, after=()))]
        heads += [(1, replace(rows, lower=whole, before=()))]
    main: Scope | None = None
    body: list[k.Stmt] = []
    for count, head in heads:
        scope = _row(nest, phase, [*others, head, *within], rows.var, foldings, count, add)
        body += build_loops(scope, level, [head, *within], "vector", UNROLL if count > 1 else 0)
        if main is None:
            main = scope
        else:
            main.absorb(scope)
    assert main is not None
    main.put(level, body)
    return build_loops(main, 1, others, "serial"), main


def _whole_group(rows: LoopHeader, several: int) -> k.Expr:
    """Return the kernel expression that tests whether ``several`` rows remain from row ``b3`` on."""
    last, boolean = k.Index(k.affine(several - 1, variable("b3"))), np.dtype(bool)
    tests = [k.Op("less", (last, k.Index(stop)), boolean) for stop in rows.upper]
    return all_of(tests)


def _row(
    nest: LoopNest,
    phase: str,
    headers: list[LoopHeader],
    var: str,
    foldings: list[Folding],
    count: int,
    add: Add,
) -> Scope:
    """Return a scope that folds ``count`` rows at one column; ``var`` is the row loop's variable."""
    terms: dict[int, list[k.Expr]] = {folding.number: [] for folding in foldings}
    by_number = {folding.number: folding for folding in foldings}
    places = [
        nest.scope_at(phase, headers, 1 + len(headers), nest.nonempty, offset, var) for offset in range(count)
    ]
    for scope in places:
        scope.announce(nest.values, [compute.target for compute in nest.computes])

        def fold(number: int, value: k.Expr, scope: Scope = scope) -> None:
            wide = cast_to(value, by_number[number].fold.dtype)
            # A later statement may write what this one reads.
            terms[number].append(
                wide if count == 1 or isinstance(wide, k.Local | k.Lit) else scope.name(wide)
            )
            if count == 1:
                add(scope, by_number[number], [wide])

        evaluate_statements(nest, scope, fold)
    main, *more = places
    main.absorb(*more)
    if count > 1:
        for folding in foldings:
            add(main, folding, terms[folding.number])
    return main


def jam_factor(nest: LoopNest) -> int:
    """Return the jam factor of the loop over rows: smaller if a row costs much, unless it is memory-bound."""
    count, waits = WAYS, _from_memory(nest) == 1
    body = BODY * max(2, sum(nest.folds)) // 2  # sums of one nest share loads
    while count > 1 and count * nest.cost() > (LARGER if waits and count <= FEWER else body):
        count //= 2
    return count


def _from_memory(nest: LoopNest) -> int:
    """Return the number of memory streams that a loop along rows reads; 0 if the caches hold the data."""
    if nest.single_threaded or nest.hints(total(nest.loops.extents)) < OUT_OF_CACHE:
        return 0
    own = {compute.target.array for compute in nest.computes}
    *others, last = range(len(nest.loops.axes))
    reached = {
        nest.arguments.reach(load)
        for value in nest.values
        for load in windows.loads(value)
        if isinstance(load, Gather) or load.window.array not in own
    }
    along = [at.coefs for at in reached if _moves(nest, at.coefs, last)]
    return sum(any(_moves(nest, coefs, k) for k in others) for coefs in along)


def _fold_values(name: str, old: k.Expr, values: list[k.Expr]) -> k.Expr:
    """Return the old value folded with further ones, in their order."""
    for value in values:
        old = op(name, old, value)
    return old


def _element(scope: Scope, folding: Folding) -> k.Elem:
    """Return the load of the current element of a reduction's target."""
    buffer, at = scope.address(folding.compute.target)
    return k.Elem(buffer, at, folding.fold.dtype)
