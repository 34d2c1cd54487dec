"""Statements to kernels: which loop is parallel, which is the vector loop, what is tiled.

``schedule`` never decides what is right by a guess: legality is proved, sizes only steer choices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..ir import dims, ops, windows
from ..ir.nodes import Apply, Compute, Dim, Gather, Iota, Load, Nest, Region
from ..ir.nodes import Expr as Value
from .access import Arguments, Memory, positive, total
from .body import Names, Scope
from .kernel import Affine, Binding, For, Kernel, Phase, Stmt, Term, affine
from .kernel import Expr as Scalar
from .legality import check, reduced
from .order import Guess, Loops, choose
from .target import Unsupported

FEW = 16  # a parallel loop of fewer iterations is too short for many cores
STRIP = 4096  # elements of one parallel piece when the innermost loop itself is cut
TILE = 32  # the side of a tile of a transposed access


class Job:
    """One statement on its way to a kernel: what the templates share."""

    def __init__(self, stmt: Compute | Nest, region: Region) -> None:
        self.computes = (stmt,) if isinstance(stmt, Compute) else stmt.body
        self.memory = Memory(region)
        self.guess = Guess(region)
        self.shape = self.computes[0].target.shape
        check(self.computes, self.memory)
        folds = [reduced(compute) for compute in self.computes]
        self.folds = [bool(axes) for axes in folds]
        folded = frozenset[int]().union(*folds)
        if any(axes and axes != folded for axes in folds):
            raise Unsupported("reductions over different axes in one nest")
        self.values = [self._value(c, f) for c, f in zip(self.computes, self.folds, strict=True)]
        self.arguments = Arguments(self.memory, ())
        self.loops = self._loops(folded)
        self.arguments = Arguments(self.memory, self.loops.axes, self.loops.extents)
        for access, write in self._accesses():
            self.arguments.note(access, "w" if write else "r")
        self.names = Names()
        self.variables = [Affine(0, (Term(1, None, f"i{k}"),)) for k in range(len(self.loops.axes))]
        self.nonempty = all(map(positive, self.loops.extents))
        self.phases: list[Phase] = []
        self.launches: list[tuple[Dim, Dim]] = []

    def _value(self, compute: Compute, fold: bool) -> Value:
        """What an element-wise statement stores, or a reduction folds, at one point."""
        if fold or compute.combine is None:
            return compute.body
        old = compute.init
        if old is None:
            old = Load(compute.target, self.memory.arrays[compute.target.array].dtype)
        return Apply(compute.combine, (old, compute.body), compute.body.dtype)

    def _accesses(self) -> list[tuple[Any, bool]]:
        found: dict[tuple[Any, bool], None] = {}
        for compute, value, fold in zip(self.computes, self.values, self.folds, strict=True):
            roots = [value]
            if fold:
                array = self.memory.arrays[compute.target.array]
                roots.append(compute.init or Load(compute.target, array.dtype))
            for root in roots:
                for load in windows.loads(root):
                    gather = isinstance(load, Gather)
                    access = self.arguments.gathered(load) if gather else self.arguments.access(load.window)
                    found[access, False] = None
            found[self.arguments.access(compute.target), True] = None
        return list(found)

    def _loops(self, folded: frozenset[int]) -> Loops:
        rank = len(self.shape)
        accesses = [(a, w) for a, w in self._accesses() if len(a.coefs) == rank]
        fixed = {n.axis for v in self.values for n in windows.walk(v) if isinstance(n, Iota)}
        return choose(self.shape, accesses, folded, fixed, self.guess)

    # ---- pieces of kernels -------------------------------------------------------------------------
    def scope(self, depths: Sequence[int], deepest: int, hoist: bool) -> Scope:
        """A place in the loop nest; see ``Scope``."""
        return Scope(self.arguments, self.names, self.variables, depths, deepest, hoist)

    def loop(self, number: int, kind: Any, body: tuple[Stmt, ...]) -> For:
        """A whole loop over one of the nest's loops."""
        return For(f"i{number}", affine(), (self.arguments.extent(number),), 1, kind, body)

    def blocks(self, extent: Dim, size: Dim) -> Dim:
        """How many blocks of a size cover an extent."""
        return dims.simplify((extent + size - 1) // size)

    def add(self, phase: Phase, extent: Dim, work: Dim) -> None:
        """The next phase, the Dim of its extent, and the work of one iteration."""
        self.phases.append(phase)
        self.launches.append((extent, dims.simplify(work)))

    def cost(self) -> int:
        """The work at one point of the domain, in additions."""
        every = windows.walk(*self.values)
        steps = sum(ops.OPS[n.op].cost for n in every if isinstance(n, Apply))
        return max(1, round(steps + sum(isinstance(n, Load | Gather) for n in every)))

    def finish(self) -> tuple[Kernel, Binding]:
        """The kernel and how it is called."""
        buffers, pointers = self.arguments.buffers()
        every = [n for n in windows.walk(*self.values) if isinstance(n, Apply) and n.op != "cast"]
        points = total(self.shape)
        kernel = Kernel(buffers, tuple(f"n{k}" for k in range(len(self.arguments.ints))), tuple(self.phases))
        binding = Binding(
            pointers,
            tuple(self.arguments.ints),
            tuple(extent for extent, _ in self.launches),
            tuple(work for _, work in self.launches),
            self.arguments.bytes(),
            dims.simplify((len(every) + sum(self.folds)) * points),
        )
        return kernel, binding


def schedule(stmt: Compute | Nest, region: Region) -> tuple[Kernel, Binding]:
    """The kernel of a statement, and how its arguments come from the region's arrays and symbols.

    Parameters
    ----------
    stmt : Compute or Nest
        A statement of the region.  When a nest is refused, its statements may be scheduled one by one.
    region : Region
        Where the statement is from; its arrays and symbols are looked up.

    Returns
    -------
    kernel : Kernel
        Its text has no sizes in it.
    binding : Binding
        Every number in it is a Dim over the region's symbols and loop variables.

    Raises
    ------
    Unsupported
        If it cannot be done, or cannot be proved right; the text says why.
    """
    job = Job(stmt, region)
    if any(job.folds):
        from .reduce import reduction

        reduction(job)
    else:
        _elementwise(job)
    return job.finish()


def statements(job: Job, scope: Scope, fold: Callable[[int, Scalar], None] | None) -> None:
    """Evaluate all statements at the scope; ``fold(number, value)`` takes what a reduction folds."""
    for number, compute in enumerate(job.computes):
        value = scope.evaluate(job.values[number])
        if fold is not None and job.folds[number]:
            fold(number, value)
            continue
        family = job.memory.family(compute.target.array)
        later = (load for rest in job.values[number + 1 :] for load in windows.loads(rest))
        scope.store(compute.target, value, any(job.memory.family(x.window.array) == family for x in later))


def _elementwise(job: Job) -> None:
    loops, guess, arguments = job.loops, job.guess, job.arguments
    rank = len(loops.axes)
    sizes = [guess(extent) for extent in loops.extents]
    order = list(range(rank))
    inner = rank - 1
    # what opens each level: level 1 is the phase, then (variable, lower, upper, step) for each loop
    opens: list[tuple[str, Affine, tuple[Affine, ...], int]] = []

    def whole(loop: int) -> tuple[str, Affine, tuple[Affine, ...], int]:
        return f"i{loop}", affine(), (arguments.extent(loop),), 1

    def piece(loop: int, block: str, coef: int, size: int) -> tuple[str, Affine, tuple[Affine, ...], int]:
        start = affine(0, Term(coef, None, block))
        return f"i{loop}", start, (affine(size, start), arguments.extent(loop)), 1

    across = _across(job, sizes)
    share: Dim = 1
    if rank == 0:
        phase, extent, head = "one", affine(1), 1
    elif rank == 1:
        phase, extent, head = "i0", arguments.extent(0), loops.extents[0]
    elif across is not None:
        head = job.blocks(loops.extents[across], TILE)
        phase, extent = "b0", arguments.integer(head, "blocks", across)
        others = [loop for loop in order if loop not in (across, inner)]
        opens = [*map(whole, others), ("b1", affine(), (arguments.extent(inner),), TILE)]
        opens += [piece(across, "b0", TILE, TILE), piece(inner, "b1", 1, TILE)]
        share = TILE * total(loops.extents[loop] for loop in (*others, inner))
    else:
        if sizes[0] < FEW:
            longest = max(order[:-1], key=lambda loop: sizes[loop])
            order.remove(longest)
            order.insert(0, longest)
        if sizes[order[0]] < FEW and sizes[inner] >= 2 * STRIP:
            head = job.blocks(loops.extents[inner], STRIP)
            phase, extent = "b0", arguments.integer(head, "blocks", inner)
            opens = [*map(whole, order[:-1]), piece(inner, "b0", STRIP, STRIP)]
            share = STRIP * total(loops.extents[loop] for loop in order[:-1])
        else:
            phase, extent, head = f"i{order[0]}", arguments.extent(order[0]), loops.extents[order[0]]
            opens = [whole(loop) for loop in order[1:]]
            share = total(loops.extents[loop] for loop in order[1:])
    level = {phase: 1, **{opened[0]: 2 + k for k, opened in enumerate(opens)}}
    # Without points nothing is launched: values may be computed before the loops that use them.
    scope = job.scope([level[f"i{loop}"] for loop in range(rank)], 1 + len(opens), True)
    scope.announce(job.values, [compute.target for compute in job.computes])
    statements(job, scope, None)
    body = scope.take(1 + len(opens))
    for k in reversed(range(len(opens))):
        variable, lower, upper, step = opens[k]
        kind: Any = "vector" if k == len(opens) - 1 else "serial"
        body = (*scope.take(1 + k), For(variable, lower, upper, step, kind, body))
    kind = "vector" if rank == 1 else "serial"
    job.add(Phase(phase, extent, kind, body, scope.preamble()), _unless_empty(head, job), share * job.cost())


def _unless_empty(head: Dim, job: Job) -> Dim:
    """The launched extent: nothing when the domain has no point."""
    if job.nonempty or len(job.loops.extents) < 2:
        return head
    points = total(job.loops.extents)
    if type(points) is int:
        return head if points else 0
    import sympy

    return head * sympy.Min(1, points)


def _across(job: Job, sizes: Sequence[int]) -> int | None:
    """The loop along which some access is contiguous that is not along the innermost."""
    if len(sizes) < 2:
        return None
    for access in job.arguments.accesses():
        *outer, last = (abs(job.guess(step)) for step in job.arguments.steps(access))
        if last > 1 and 1 in outer:
            loop = outer.index(1)
            if min(sizes[loop], sizes[-1]) >= 2 * TILE:
                return loop
    return None
