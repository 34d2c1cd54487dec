"""Planning requests of sites: loops and runs of statements; see `dcarray.plans.requests`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, NamedTuple

from dcarray.core.errors import Untraceable
from dcarray.core.strides import c_strides
from dcarray.plans.requests import PlanInput
from dcarray.tiering import admission

from ..entry.entry_values import ListType, LoopDescription, Result, TracedLoop
from ..entry.generators import is_copied, is_input

if TYPE_CHECKING:
    from dcarray.ir.nodes import Array, Region


TOO_SHORT = "it takes less time than calling compiled code"
_MAX_STATEMENTS = 500  # of a region: the time to compile it grows faster than their number
_MAX_NODES = 16_000  # of its expressions


class LoopInterface(NamedTuple):
    """The arguments and results of a loop's plan, for `run_loop`.

    Attributes
    ----------
    arrays : tuple
        For each array argument, in order, before the undo copies: its name in the region, role, dtype, shape
        and strides (in bytes).
    inputs : tuple of str
        For each array argument whose role is not "out": the variable whose value it is.
    results : tuple of (str, Result)
        For each name that the loop binds, how its value is made from the plan's results.
    rewritten : tuple of str
        The overwritten arrays that need no undo copies, since a second run overwrites them again
        (`ir.analysis.idempotence`), unless it is interrupted.
    may_raise : bool
        Whether floating-point flags are looked at even where `numpy.errstate` ignores them, since they may
        stand for other exceptions.
    checked : bool
        Whether the region checks values, and raises the flag of an invalid operation where a check fails.
    by_value : frozenset of str
        The arrays without axes that are passed to a device as values, not as buffers.
    symbols : tuple of (str, str)
        The symbols of the region, each with the Python expression of its value: an int's name, or a length.
    guard : str
        The Python expression that says whether the plan serves given values of the symbols.
    shapes : str
        The shapes of the arrays, as a Python expression of the symbols; empty where none depends on them.
    polls : bool
        Whether a loop may end by what others than the running thread write to memory.
    frames : int
        How many frames of Python's stack calls in the statements may stand for.
    """

    arrays: tuple[tuple[str, str, str, tuple[int, ...], tuple[int, ...]], ...]
    inputs: tuple[str, ...]
    results: tuple[tuple[str, Result], ...]
    rewritten: tuple[str, ...]
    may_raise: bool
    checked: bool
    by_value: frozenset[str]
    symbols: tuple[tuple[str, str], ...] = ()
    guard: str = "True"
    shapes: str = ""
    polls: bool = False
    frames: int = 0


class LoopRequest(NamedTuple):
    """A request to plan a loop, or a run of statements, with the options that its plan depends on.

    Attributes
    ----------
    max_elements : int or None
        The number of elements above which a statement is left to distributed execution; None: no limit.
    undone : bool
        Whether memory is restored when a floating-point exception is raised.
    all_sizes : bool
        Whether the plan is to leave out rewrites that are faster for some values of the symbols only.
    pays : bool
        Whether a region is refused that Python runs faster than it can call compiled code.
    """

    loop: LoopDescription
    fastmath: bool
    threads: int
    cache_dir: str | None
    target: str = "cpu"
    max_elements: int | None = None
    undone: bool = True
    all_sizes: bool = False
    pays: bool = False

    def plan_input(self) -> PlanInput:
        """Trace the statements and return the region to plan, with what goes with it."""
        from dcarray.ir import dims
        from dcarray.ir.analysis.idempotence import idempotent_arrays
        from dcarray.ir.build import is_scalar_argument

        from ..tracing.recursion import MOST_CALLS
        from ..tracing.trace import trace

        traced = trace(self.loop)
        if _is_too_long(traced.region):
            raise Untraceable("it is too long to compile: it has too many operations", self.loop.line)
        if self.pays and _is_too_short(traced.region):
            raise Untraceable(TOO_SHORT, self.loop.line)
        if self.max_elements is not None and _largest(traced.region) > self.max_elements:
            raise Untraceable("its statements work on arrays in blocks", self.loop.line)
        apart = self.max_elements is not None or self.target not in ("cpu", "c")
        if apart and any(map(is_input, traced.inputs)):
            raise Untraceable("random numbers are drawn by one process on the processor", self.loop.line)
        arguments = [a for a in traced.region.arrays if a.role != "temp"]
        depending = {a.name for a in arguments if any(type(n) is not int for n in a.shape)}  # on symbols
        shapes = "".join(f"({''.join(dims.show(n) + ', ' for n in a.shape)}), " for a in arguments)
        arrays = tuple(
            [
                (a.name, a.role, a.dtype.str, *(((), ()) if a.name in depending else (a.shape, _strides(a))))
                for a in arguments
            ]
        )
        copied = self._copied(traced)
        rewritten = frozenset() if traced.may_raise else idempotent_arrays(traced.region) - copied
        saved = frozenset(a.name for a in arguments if a.role == "inout") - rewritten - copied
        if not self.undone:
            saved = frozenset()
        checked = is_checked(traced.region)
        by_value = frozenset(a.name for a in arguments if is_scalar_argument(a))
        interface = LoopInterface(
            arrays, traced.inputs, traced.results, tuple(sorted(rewritten)), traced.may_raise, checked,
            by_value, traced.symbols,
            " and ".join(f"({dims.show(guard)})" for guard in traced.region.guards) or "True",
            f"({shapes})" if depending else "", traced.polls, MOST_CALLS if traced.region.functions else 0,
        )  # fmt: skip
        version: Literal["", "some", "general"] = "general" if self.all_sizes else "some"
        return PlanInput(traced.region, {}, saved, interface, True, True, version if traced.symbols else "")

    def _copied(self, traced: TracedLoop) -> frozenset[str]:
        """Return the arrays that are copies of Python objects: lists' elements and the state of Python's
        random generators.  They are copied back after a successful run only."""
        given = dict(self.loop.names)
        arrays = [a.name for a in traced.region.arrays if a.role in ("in", "inout")]
        pairs = zip(arrays, traced.inputs, strict=True)
        return frozenset(
            name for name, text in pairs if isinstance(given.get(text), ListType) or is_copied(text)
        )

    def text(self) -> str:
        """Return a text of everything that the plan depends on; it is the plan's key in the cache."""
        loop = self.loop
        options = self.fastmath, self.threads, self.target, self.max_elements, self.undone, self.all_sizes
        parts = loop.source, loop.names, loop.symbols, sorted(loop.live), loop.watched, loop.resumed
        return repr((*parts, loop.flagless, *options, self.pays, loop.by_identity, loop.asked))


def _strides(array: Array) -> tuple[int, ...]:
    return tuple([array.dtype.itemsize * s for s in array.strides or c_strides(array.shape)])


def _largest(region: Region) -> int:
    """Return the largest number of elements that one execution of a statement of a region covers."""
    from dcarray.ir.analysis.effects import reads, writes
    from dcarray.ir.nodes import Branch, Loop, While
    from dcarray.ir.statements import all_statements

    sizes = {array.name: math.prod(array.shape) for array in region.arrays}
    largest = 0
    for stmt in all_statements(region.body):
        if not isinstance(stmt, Branch | Loop | While):
            for window in (*reads(stmt), *writes(stmt)):
                whole = all(type(n) is int for n in window.shape)
                largest = max(largest, math.prod(window.shape) if whole else sizes[window.array])
    return largest


def _is_too_long(region: Region) -> bool:
    """Whether a region has so many statements or operations that to compile it would take too long."""
    from dcarray.ir.nodes import Compute
    from dcarray.ir.statements import all_statements
    from dcarray.ir.windows import walk

    stmts = [*all_statements(region.body)]
    return (
        len(stmts) > _MAX_STATEMENTS
        or sum(sum(1 for _ in walk(stmt.body)) for stmt in stmts if isinstance(stmt, Compute)) > _MAX_NODES
    )


def _is_too_short(region: Region) -> bool:
    """Whether a region consists of so few operations on numbers that Python runs them faster than it can call
    compiled code."""
    from dcarray.ir.nodes import Apply, Branch, Gather, Load
    from dcarray.ir.statements import all_statements, is_point
    from dcarray.ir.windows import walk

    operations = 0
    for stmt in all_statements(region.body):
        if not (is_point(stmt) or isinstance(stmt, Branch)):
            return False
        for node in walk(stmt.cond if isinstance(stmt, Branch) else stmt.body):
            element = isinstance(node, Gather) or (isinstance(node, Load) and bool(node.window.index))
            operations += element or isinstance(node, Apply)
    return not admission.operations_may_pay(operations)


def is_checked(region: Region) -> bool:
    """Whether a statement of a region has checks of values while it runs."""
    from dcarray.ir.nodes import Apply, Branch, Compute, While
    from dcarray.ir.statements import all_statements
    from dcarray.ir.windows import walk

    expressions = [
        stmt.body if isinstance(stmt, Compute) else stmt.cond
        for stmt in all_statements(region.body)
        if isinstance(stmt, Branch | Compute | While)
    ]
    return any(isinstance(node, Apply) and node.op == "checked" for node in walk(*expressions))
