"""From a region to a program, and from that to a plan that runs.

Every statement becomes a kernel, a library call, or, for what cannot be compiled, a call of the interpreter.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dcarray.ir import dims
from dcarray.ir.analysis import effects
from dcarray.ir.analysis.idempotence import idempotent
from dcarray.ir.nodes import (
    Apply,
    Array,
    Bands,
    Branch,
    Call,
    Compute,
    Loop,
    Nest,
    Region,
    Rows,
    Stmt,
    While,
    Window,
)
from dcarray.lowering.cpu.kernel_passes import ufunc_blocks
from dcarray.lowering.cpu.schedules.scheduler import schedule
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel.specialise import SMALL, specialise
from dcarray.lowering.libraries import dispatch
from dcarray.lowering.nest import expansion
from dcarray.lowering.runtime.driver_scope import function
from dcarray.lowering.runtime.library_calls import Interpreted
from dcarray.lowering.target import Launch as LoadedKernel
from dcarray.lowering.target import Target, get

from . import code_cache, nodes, storage
from .input_range_check import Planned
from .python_driver import printed

Fallback = Callable[[str, Any], None]


@dataclass(frozen=True, slots=True)
class Part:
    """A statement as a plan runs it.

    Attributes
    ----------
    position : int
        The position in the region of the statement that it is, or is part of.
    stmt : Stmt
    whole : Stmt
        The statement inside of the loops and branches that the driver runs around it.
    step : int or str
        The position of the step that runs it; or, where the statements inside of it have parts of their own,
        the reason why it is not one kernel.
    """

    position: int
    stmt: Stmt
    whole: Stmt
    step: int | str


@dataclass(frozen=True, slots=True)
class Plan:
    """A region that is ready to run, from any thread and in several at once.

    Attributes
    ----------
    region : Region
        What is run: the region as given, with temporaries merged.
    arrays : tuple of str
        The names of the arrays that a run is given, in order: all but the temporaries.
    program : Program
        What a run does, as data.
    steps : tuple
        The nodes of the program that do something, in the order of the text.
    driver : str
        The Python text that runs them.
    things : mapping of str to object
        What the text calls by name.
    run : callable
        ``run(arrays, addresses, symbols=(), threads=0, minded=0) -> flags``: the ndarrays, the addresses of
        their first elements, the values of the region's symbols, all in order, the number of threads (0:
        the plan's own), and the flags for which a run ends where it was compiled to stop.  Gives the
        floating-point flags that were raised (1 divide, 2 over, 4 under, 8 invalid).  All memory is
        allocated before anything is written.
    kept : tuple of pairs of str
        The arrays of which a run keeps what it overwrites, in the last of ``arrays``, and where that is
        (`ir.keep`).  Whoever added the copies says so.
    look : dcarray.lowering.program.input_range_check.Planned or None
        What finds whether the inputs are so small that nothing but underflow can be raised.
    spared : tuple of str
        The arrays of which a run keeps nothing though it overwrites what it has read: for that reason, or,
        if there is no ``look``, since they are one memory in several geometries.
    stops : bool
        Whether a run ends before it overwrites anything if it has raised flags that are minded.
    single : bool
        Whether a run is one native call, which no interrupt comes into.
    parts : tuple of Part
        The statements of the region, and of those that are no single kernel the statements inside.
    """

    region: Region
    arrays: tuple[str, ...]
    program: nodes.Program
    steps: tuple[nodes.Step, ...]
    driver: str
    things: Mapping[str, Any]
    run: Callable[..., int]
    kept: tuple[tuple[str, str], ...] = ()
    look: Planned | None = None
    spared: tuple[str, ...] = ()
    stops: bool = False
    single: bool = False
    parts: tuple[Part, ...] = ()

    @property
    def kernels(self) -> tuple[nodes.Launch, ...]:
        """The launches of kernels in order."""
        return tuple(step for step in self.steps if isinstance(step, nodes.Launch))

    @property
    def stats(self) -> dict[str, int]:
        """How many steps of each kind there are."""
        kinds = {
            "kernels": nodes.Launch,
            "calls": nodes.LibraryCall | nodes.Copy,
            "interpreted": nodes.HostCall,
        }
        return {name: sum(isinstance(step, kind) for step in self.steps) for name, kind in kinds.items()}

    @property
    def overwritten(self) -> tuple[str, ...]:
        """The existing arrays that may have been written when a library call or the interpreter fails, as
        either does before it changes anything itself, and that another run would find changed."""
        last = max((step.position for step in self.steps if not isinstance(step, nodes.Launch)), default=-1)
        before = self.region.body[: max(last, 0)]
        if last >= 0 and not isinstance(self.region.body[last], Call | Compute):
            before = self.region.body[: last + 1]
        root = effects.families(self.region)
        written = {window.array for stmt in before for window in effects.writes(stmt)}
        written |= {root[name] for name in written}  # perhaps in another shape
        found = [a.name for a in self.region.arrays if a.role == "inout" and a.name in written]
        anew = idempotent(self.region) if found else ()
        return tuple([name for name in found if name not in anew])


def compile_region(
    region: Region,
    target: str = "cpu",
    cache_dir: str | None = None,
    threads: int = 0,
    fallback: Fallback | None = None,
    fastmath: bool = False,
    stop: int | None = None,
    fresh: bool = False,
) -> Plan:
    """Compile a region.

    Parameters
    ----------
    region : Region
        A verified region.
    target : str, optional
        The name of a target.
    cache_dir : str, optional
        Where code outlives the process; empty or None for nowhere.
    threads : int, optional
        Threads that a run uses if it does not say; 0: the cores this process may use.
    fallback : callable, optional
        Called with the reason and the ``loc`` of each statement that is left to the interpreter.
    fastmath : bool, optional
        Take functions like ``exp`` from the target's own libraries where they are faster than NumPy's
        loops: within a few units in the last place, not to the bit.
    stop : int, optional
        The position of the statement before which a run ends if it has raised flags that are minded.
    fresh : bool, optional
        Are arrays of the role ``out`` new memory in C order, which temporaries may use before?

    Returns
    -------
    Plan

    Raises
    ------
    ValueError
        If there is no such target.
    MemoryError
        If there is little memory left.
    """
    cores = threads or _cores()
    lowering = _Lowering(
        storage.in_place(region), get(target), code_cache.of(cache_dir), fallback, fastmath, cores
    )
    program = lowering.program(stop)
    driver = printed(program, cores, fresh)
    run = function(driver.text, driver.things)
    return Plan(
        program.region, program.given, program, program.steps(), driver.text, driver.things, run,
        single=driver.single, parts=tuple(lowering.parts),
    )  # fmt: skip


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


_warned: set[str] = set()


def _warn(reason: str) -> None:
    """Say, once for each reason, that something is wrong here and not with the user's program."""
    if reason not in _warned:
        _warned.add(reason)
        warnings.warn(f"some of the program is not compiled: {reason}", RuntimeWarning, stacklevel=2)


class _Lowering:
    """One region on its way to a program."""

    def __init__(
        self,
        region: Region,
        target: Target,
        code: code_cache.CodeCache,
        fallback: Fallback | None,
        fastmath: bool,
        cores: int,
    ) -> None:
        self.region, self.target, self.code, self.fallback = region, target, code, fallback
        self.fastmath, self.cores = fastmath, cores
        self.position = 0  # of the top-level statement that is lowered
        self.body: list[nodes.Node] = []  # of the node that is made
        self.steps = 0  # that are made
        self.parts: list[Part] = []
        self.around: list[Callable[[Stmt], Stmt]] = []  # the loops and branches around what is lowered

    def program(self, stop: int | None) -> nodes.Program:
        """The program; see `compile_region`."""
        life = storage.lifetimes(self.region)
        for position, stmt in enumerate(self.region.body):
            self.position = position
            if position == stop:
                self.body.append(nodes.Stop(position))
            self.body += [nodes.Alloc(array, position) for array, first, _ in life if first == position]
            self.statement(stmt, False)
            self.body += [nodes.Free(array, position) for array, _, last in life if last == position]
        return nodes.Program(self.region, tuple(self.body))

    def statement(self, stmt: Stmt, inside: bool) -> None:
        """Lower one statement; is it inside of a loop or branch?"""
        match stmt:
            case Compute() | Nest() | Rows() | Bands():
                self.compute(stmt, inside)
            case Call():
                self.call(stmt, inside)
            case Loop() | While() | Branch():
                self.control(stmt, inside)

    def control(self, stmt: Loop | While | Branch, inside: bool) -> None:
        """Lower a loop or branch to one kernel, or to a node around the nodes of its parts."""
        reason = self.launched(stmt, inside)
        if reason is None:
            return
        self.part(stmt, reason)
        made: nodes.Node
        if isinstance(stmt, Loop):
            with dims.ranging(stmt.var, stmt.bounds):
                body = self.block(stmt.body, lambda one: replace(stmt, body=(one,)))
            self.body.append(nodes.Loop(stmt.var, stmt.bounds, body, self.position))
            return
        # What decides it is stored in an array of one element.
        array = Array(f"_condition{len(self.region.arrays)}", np.dtype(bool), ())
        self.region = replace(self.region, arrays=(*self.region.arrays, array))
        cond: Any = stmt.cond
        if cond.dtype != array.dtype:
            cond = Apply("cast", (cond,), array.dtype)
        decide = Compute(Window(array.name, (), ()), cond, None, None, stmt.loc)
        self.body.append(nodes.Alloc(array, self.position))
        if isinstance(stmt, While):
            head = self.block((decide,))
            body = self.block(stmt.body, lambda one: replace(stmt, body=(one,)))
            made = nodes.While(array.name, head, body, self.position)
        else:
            self.compute(decide, inside)
            then = self.block(stmt.then, lambda one: replace(stmt, then=(one,), orelse=()))
            orelse = self.block(stmt.orelse, lambda one: replace(stmt, then=(), orelse=(one,)))
            made = nodes.Branch(array.name, then, orelse, self.position)
        self.body += [made, nodes.Free(array, self.position)]

    def block(
        self, body: tuple[Stmt, ...], around: Callable[[Stmt], Stmt] | None = None
    ) -> tuple[nodes.Node, ...]:
        """The nodes of the statements of a loop or branch; ``around`` is that with one of them alone."""
        outer, self.body = self.body, []
        if around is not None:
            self.around.append(around)
        for stmt in body:
            self.statement(stmt, True)
        if around is not None:
            self.around.pop()
        made, self.body = tuple(self.body), outer
        return made

    def part(self, stmt: Stmt, reason: str) -> None:
        """Note a statement that is run by the nodes of those inside of it, for ``reason``."""
        self.parts.append(Part(self.position, stmt, self.whole(stmt), reason))

    def step(self, node: nodes.Step) -> None:
        """Add a node that does a statement."""
        self.parts.append(Part(self.position, node.stmt, self.whole(node.stmt), self.steps))
        self.body.append(node)
        self.steps += 1

    def whole(self, stmt: Stmt) -> Stmt:
        """A statement inside of the loops and branches around it."""
        for around in reversed(self.around):
            stmt = around(stmt)
        return stmt

    def call(self, stmt: Call, inside: bool) -> None:
        """Lower a library call: to the call of a library, or to a statement in its place."""
        library = dispatch.find(stmt, self.region)
        if library is not None:
            call = dispatch.step(stmt, library, self.routine(stmt, library))
            self.step(nodes.LibraryCall(stmt, call, self.position))
            return
        plain = expansion.expand(stmt, self.region)
        if plain is not None:
            self.compute(plain, inside)
        else:
            self.interpret(stmt, f"no library serves {stmt.op}")

    def routine(self, stmt: Call, library: dispatch.Library) -> LoadedKernel | None:
        """The code of a library that has its own, where that serves."""
        if library.routine is None or self.target.name != "cpu":
            return None
        found: Any = library.routine(stmt, self.region, self.cores)
        if found is None:
            return None
        from dcarray.lowering.cpu.llvm.routines.routine import NO_KERNEL

        try:
            return self.code.launch(found, NO_KERNEL)
        except Unsupported:
            return None

    def compute(self, stmt: Compute | Nest | Rows | Bands, inside: bool) -> None:
        """Lower a statement to a kernel, or leave it to the interpreter."""
        reason = self.launched(stmt, inside)
        if reason is None:
            return
        if isinstance(stmt, Nest | Rows | Bands):
            self.part(stmt, reason)
            for inner in stmt.body:
                self.compute(inner, inside)
        else:
            self.interpret(stmt, reason)

    def launched(
        self, stmt: Compute | Nest | Rows | Bands | Loop | While | Branch, inside: bool
    ) -> str | None:
        """Lower a statement to the launch of a kernel; return the reason if that cannot be done."""
        try:
            kernel, binding = schedule(stmt, self.region, self.cores)
            kernel, binding = ufunc_blocks.call_numpy_loops(
                kernel, binding, not self.fastmath, self.target.is_exact
            )
            # the driver launches it again and again where it is in a loop
            kernel, binding = specialise(kernel, binding, None if inside else SMALL)
            loaded = self.code.launch(self.target, kernel)
        except MemoryError:  # later there may be more
            raise
        except Exception as error:  # whatever the compiler does, the program has to run
            reason = str(error)
            if not isinstance(error, Unsupported):
                reason = f"{type(error).__name__}: {error}"
            if not isinstance(error, Unsupported) or isinstance(error, code_cache.CompilerFailed):
                _warn(reason)
            return reason
        self.step(nodes.Launch(stmt, kernel, binding, self.position, loaded))
        return None

    def interpret(self, stmt: Stmt, reason: str) -> None:
        """Leave a statement to the interpreter."""
        if self.fallback is not None:
            self.fallback(reason, stmt.loc)
        used = effects.touched(stmt)
        arrays = tuple(replace(a, role="inout", base=None) for a in self.region.arrays if a.name in used)
        call = Interpreted(replace(self.region, arrays=arrays, body=(stmt,)))
        names = tuple([array.name for array in arrays])
        self.step(nodes.HostCall(stmt, call, names, reason, self.position))
