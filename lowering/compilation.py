"""The compilation of a region to a program, and of the program to a plan that runs.

Every statement becomes a kernel, a library call, or, if it cannot be compiled, a call of the interpreter.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dcarray.ir import dims
from dcarray.ir.analysis import effects
from dcarray.ir.nodes import (
    Apply,
    Array,
    Branch,
    Call,
    Compute,
    Loop,
    Nest,
    Region,
    Rows,
    Stmt,
    TimeTiles,
    While,
    Window,
)
from dcarray.lowering.kernel.nodes import Kernel
from dcarray.lowering.program.executable import Part, Plan
from dcarray.lowering.runtime.driver_scope import function
from dcarray.lowering.runtime.library_calls import Interpreted

from .errors import Unsupported
from .libraries import dispatch
from .nest import expansion
from .program import code_cache, nodes, small_statements, storage
from .target import Target
from .targets import get

Fallback = Callable[[str, Any], None]


def compile_region(
    region: Region,
    target: str | Target = "cpu",
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
    target : str or Target, optional
        A target, its name or its import path.
    cache_dir : str, optional
        The folder in which compiled code is cached; with None or an empty string it is not stored.
    threads : int, optional
        The default number of threads of a run; 0: as many as this process may use cores.
    fallback : callable, optional
        Called with the reason and the ``loc`` of each statement that is left to the interpreter.
    fastmath : bool, optional
        Take functions like ``exp`` from the target's own libraries where they are faster than NumPy's
        loops: within a few units in the last place, not to the bit.
    stop : int, optional
        The position of a statement; a run that has raised a floating-point flag which counts ends before it.
    fresh : bool, optional
        Whether arrays of the role ``out`` are new memory in C order, which temporaries may use beforehand.

    Returns
    -------
    Plan

    Raises
    ------
    ValueError
        If there is no target of this name.
    MemoryError
        If too little memory is free for compilation.
    """
    cores = threads or _cores()
    target = get(target)
    program, parts = _lowered(region, target, cache_dir, cores, fallback, fastmath, stop)
    driver = target.printer(program, cores, fresh)
    run = function(driver.text, driver.things)
    return Plan(
        program.region, program.given, program, program.steps(), driver.text, driver.things, run,
        single=driver.single, parts=parts,
    )  # fmt: skip


def program_of(region: Region, target: Target, threads: int = 1) -> nodes.Program:
    """Return the program of a region for a target whose code does not run in this process.

    Parameters
    ----------
    region : Region
        A verified region.
    target : Target
    threads : int, optional
        The number of threads for which the code is made.

    Returns
    -------
    Program
        The program, in which `HostCall` nodes stand for statements that the target cannot do, with reasons.
    """
    return _lowered(region, target, None, threads, None, False, None)[0]


def _lowered(
    region: Region,
    target: Target,
    cache_dir: str | None,
    cores: int,
    fallback: Fallback | None,
    fastmath: bool,
    stop: int | None,
) -> tuple[nodes.Program, tuple[Part, ...]]:
    if target.shares_arrays:
        region, stop = small_statements.joined(storage.in_place(region), stop)
    lowering = _Lowering(region, target, code_cache.of(cache_dir), fallback, fastmath, cores)
    return lowering.program(stop), tuple(lowering.parts)


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


_warned: set[str] = set()


def _warn(reason: str) -> None:
    """Warn, once for each reason, that a defect of this package keeps a part of the program uncompiled."""
    if reason not in _warned:
        _warned.add(reason)
        warnings.warn(f"some of the program is not compiled: {reason}", RuntimeWarning, stacklevel=2)


class _Lowering:
    """The state of lowering one region to a program."""

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
        """Return the program; ``stop`` is that of `compile_region`."""
        life = storage.lifetimes(self.region)
        for position, stmt in enumerate(self.region.body):
            self.position = position
            if position == stop:
                self.body.append(nodes.Stop(position))
            self.body += [self.alloc(array) for array, first, _ in life if first == position]
            self.statement(stmt, False)
            self.body += [nodes.Free(array, position) for array, _, last in life if last == position]
        return nodes.Program(self.region, tuple(self.body))

    def statement(self, stmt: Stmt, inside: bool) -> None:
        """Lower one statement; ``inside``: it is in a loop or branch."""
        match stmt:
            case Compute() | Nest() | Rows() | TimeTiles():
                self.compute(stmt, inside)
            case Call():
                self.call(stmt, inside)
            case Loop() | While() | Branch():
                self.control(stmt, inside)

    def alloc(self, array: Array) -> nodes.Alloc:
        """Return the node that allocates a temporary in the target's memory."""
        return nodes.Alloc(replace(array, place=self.target.memory_space), self.position)

    def control(self, stmt: Loop | While | Branch, inside: bool) -> None:
        """Lower a loop or branch to one kernel, or to a node around the nodes of its parts."""
        reason = self.launched(stmt, inside)
        if reason is None:
            return
        self.part(stmt, reason)
        node: nodes.Node
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
        self.body.append(self.alloc(array))
        if isinstance(stmt, While):
            head = self.block((decide,))
            body = self.block(stmt.body, lambda one: replace(stmt, body=(one,)))
            node = nodes.While(array.name, head, body, self.position)
        else:
            self.compute(decide, inside)
            then = self.block(stmt.then, lambda one: replace(stmt, then=(one,), orelse=()))
            orelse = self.block(stmt.orelse, lambda one: replace(stmt, then=(), orelse=(one,)))
            node = nodes.Branch(array.name, then, orelse, self.position)
        self.body += [node, nodes.Free(array, self.position)]

    def block(
        self, body: tuple[Stmt, ...], around: Callable[[Stmt], Stmt] | None = None
    ) -> tuple[nodes.Node, ...]:
        """Return the nodes of the statements of a body; ``around`` puts one statement into that body's loop
        or branch, for explanations."""
        outer, self.body = self.body, []
        if around is not None:
            self.around.append(around)
        for stmt in body:
            self.statement(stmt, True)
        if around is not None:
            self.around.pop()
        block, self.body = tuple(self.body), outer
        return block

    def part(self, stmt: Stmt, reason: str) -> None:
        """Record a loop or branch that is no kernel, for ``reason``: nodes of the statements in it run."""
        self.parts.append(Part(self.position, stmt, self.whole(stmt), reason))

    def step(self, node: nodes.Step) -> None:
        """Add the node that runs a statement."""
        self.parts.append(Part(self.position, node.stmt, self.whole(node.stmt), self.steps))
        self.body.append(node)
        self.steps += 1

    def whole(self, stmt: Stmt) -> Stmt:
        """Return a statement within the loops and branches that contain it."""
        for around in reversed(self.around):
            stmt = around(stmt)
        return stmt

    def call(self, stmt: Call, inside: bool) -> None:
        """Lower a library call to the call of a library, or to statements that compute the same."""
        library = dispatch.find(stmt, self.region, self.target.libraries)
        if library is not None:
            call = dispatch.step(stmt, library, self.routine(stmt, library))
            self.step(nodes.LibraryCall(stmt, call, self.position))
            return
        plain = expansion.expand(stmt, self.region)
        if plain is not None:
            self.compute(plain, inside)
            return
        reason: str | None = f"no library serves {stmt.op}"
        if stmt.op in ("random.draw", "function.call"):
            reason = self.launched(stmt, inside)
        if reason is not None:
            self.interpret(stmt, reason)

    def routine(self, stmt: Call, library: dispatch.Library) -> Any:
        """Return the compiled routine of a library that generates code for a call; None if there is none."""
        compiler = library.routine and library.routine(stmt, self.region, self.cores)
        if compiler is None:
            return None
        try:
            return self.code.loaded(compiler, Kernel((), (), ()))
        except Unsupported:
            return None

    def compute(self, stmt: Compute | Nest | Rows | TimeTiles, inside: bool) -> None:
        """Lower a statement to a kernel, or leave it to the interpreter."""
        if self.target.copies and isinstance(stmt, Compute) and dispatch.is_copy(stmt):
            self.step(nodes.Copy(stmt, dispatch.copy_step(stmt), self.position))
            return
        reason = self.launched(stmt, inside)
        if reason is None:
            return
        if isinstance(stmt, Nest | Rows | TimeTiles):
            self.part(stmt, reason)
            for inner in stmt.body:
                self.compute(inner, inside)
        else:
            self.interpret(stmt, reason)

    def launched(
        self, stmt: Compute | Nest | Rows | TimeTiles | Loop | While | Branch | Call, inside: bool
    ) -> str | None:
        """Lower a statement to a kernel and its launch; return None, or why that is impossible."""
        try:
            exact = None if self.fastmath else self.target.is_exact
            kernel, binding = self.target.schedule(
                stmt, self.region, cores=self.cores, repeated=inside, exact=exact
            )
            loaded = self.code.loaded(self.target, kernel)
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
        used = effects.touched_arrays(stmt)
        arrays = tuple(replace(a, role="inout", base=None) for a in self.region.arrays if a.name in used)
        call = Interpreted(replace(self.region, arrays=arrays, body=(stmt,)))
        names = tuple([array.name for array in arrays])
        self.step(nodes.HostCall(stmt, call, names, reason, self.position))
