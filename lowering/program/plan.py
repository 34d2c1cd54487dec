"""From a region to something that runs: a plan.

Every statement becomes a step: a kernel, a library call, or, for what cannot be compiled, the interpreter.
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
    Dim,
    Expr,
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
from dcarray.lowering.kernel.nodes import Pointer
from dcarray.lowering.kernel.specialise import FEW, fixed
from dcarray.lowering.libraries import dispatch
from dcarray.lowering.nest import expansion
from dcarray.lowering.runtime.driver_scope import function
from dcarray.lowering.runtime.library_calls import CallStep
from dcarray.lowering.target import Launch, Target, get

from . import buffers, code_cache
from .input_range_check import Planned
from .python_driver import Driver
from .steps import InterpStep, KernelStep, Step

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
    steps : tuple
        The steps in the order of the text.
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
        Does a run end before it overwrites anything if it has raised flags that are minded?
    single : bool
        Is a run one native call, which no interrupt comes into?
    parts : tuple of Part
        The statements of the region, and of those that are no single kernel the statements inside.
    """

    region: Region
    arrays: tuple[str, ...]
    steps: tuple[Step, ...]
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
    def kernels(self) -> tuple[KernelStep, ...]:
        """The kernels in order."""
        return tuple(step for step in self.steps if isinstance(step, KernelStep))

    @property
    def stats(self) -> dict[str, int]:
        """How many steps of each kind there are."""
        kinds = {"kernels": KernelStep, "calls": CallStep, "interpreted": InterpStep}
        return {name: sum(isinstance(step, kind) for step in self.steps) for name, kind in kinds.items()}

    @property
    def overwritten(self) -> tuple[str, ...]:
        """The existing arrays that may have been written when a library call or the interpreter fails, as
        either does before it changes anything itself, and that another run would find changed."""
        last = max((step.position for step in self.steps if not isinstance(step, KernelStep)), default=-1)
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
    code = code_cache.of(cache_dir)
    compiler = _Compiler(buffers.in_place(region), get(target), code, fallback, fastmath, cores, fresh)
    for position, stmt in enumerate(compiler.region.body):
        if position == stop:
            compiler.driver.line(1, "if _flags & _minded: return _flags")
        compiler.statement(stmt, 1, position)
    driver = compiler.driver
    text, things = driver.finish(cores), driver.things
    run = function(text, things)
    given, steps = tuple(driver.given), tuple(compiler.steps)
    parts = tuple(compiler.parts)
    return Plan(compiler.region, given, steps, text, things, run, single=driver.single, parts=parts)


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


class _Compiler:
    """One region on its way to a plan."""

    def __init__(
        self,
        region: Region,
        target: Target,
        code: code_cache.CodeCache,
        fallback: Fallback | None,
        fastmath: bool,
        cores: int,
        fresh: bool,
    ) -> None:
        self.region, self.target, self.code, self.fallback = region, target, code, fallback
        self.fastmath, self.cores = fastmath, cores
        self.driver = Driver(region, fresh)
        self.steps: list[Step] = []
        self.parts: list[Part] = []
        self.around: list[Callable[[Stmt], Stmt]] = []  # the loops and branches that the driver runs

    def statement(self, stmt: Stmt, depth: int, position: int) -> None:
        """Compile one statement; ``position`` is that of the top-level statement it belongs to."""
        match stmt:
            case Compute() | Nest() | Rows() | Bands():
                self.compute(stmt, depth, position)
            case Call():
                self.call(stmt, depth, position)
            case Loop() | While() | Branch():
                self.control(stmt, depth, position)

    def control(self, stmt: Loop | While | Branch, depth: int, position: int) -> None:
        """Compile a loop or branch, or have the driver do it, around kernels of its parts."""
        reason = self.launched(stmt, depth, position)
        if reason is None:
            return
        self.part(stmt, position, reason)
        driver = self.driver
        match stmt:
            case Loop(var, bounds, body):
                before = len(self.steps)
                with driver.loop(depth, var, bounds), dims.ranging(var, bounds):
                    self.block(body, depth + 1, position, lambda one: replace(stmt, body=(one,)))
                self.steps[before:] = [_over(step, var, bounds) for step in self.steps[before:]]
            case While(cond, body):
                driver.line(depth, "while True:")
                name = self.condition(cond, depth + 1, position, stmt.loc)
                driver.line(depth + 1, f"if not {driver.truth(name)}: break")
                self.block(body, depth + 1, position, lambda one: replace(stmt, body=(one,)))
            case Branch(cond, then, orelse):
                name = self.condition(cond, depth, position, stmt.loc)
                driver.line(depth, f"if {driver.truth(name)}:")
                self.block(then, depth + 1, position, lambda one: replace(stmt, then=(one,), orelse=()))
                driver.line(depth, "else:")
                self.block(orelse, depth + 1, position, lambda one: replace(stmt, then=(), orelse=(one,)))

    def block(
        self, body: tuple[Stmt, ...], depth: int, position: int, around: Callable[[Stmt], Stmt]
    ) -> None:
        """Compile the statements of a loop or branch; ``around`` is that with one of them alone."""
        self.driver.line(depth, "pass")
        self.around.append(around)
        for stmt in body:
            self.statement(stmt, depth, position)
        self.around.pop()

    def part(self, stmt: Stmt, position: int, step: int | str) -> None:
        """Note how a statement is run."""
        whole = stmt
        for around in reversed(self.around):
            whole = around(whole)
        self.parts.append(Part(position, stmt, whole, step))

    def condition(self, cond: Expr, depth: int, position: int, loc: Any) -> str:
        """Compile what decides a loop or branch: it is stored in an array of one element."""
        array = Array(f"_condition{len(self.region.arrays)}", np.dtype(bool), ())
        if getattr(cond, "dtype") != array.dtype:  # noqa: B009
            cond = Apply("cast", (cond,), array.dtype)
        self.region = _with_array(self.region, array)
        self.driver.declare(array, position)
        self.compute(Compute(Window(array.name, (), ()), cond, None, None, loc), depth, position)
        return array.name

    def call(self, stmt: Call, depth: int, position: int) -> None:
        """Find a library, or do without."""
        library = dispatch.find(stmt, self.region)
        if library is not None:
            step = dispatch.step(stmt, library, position, self.routine(stmt, library))
            self.part(stmt, position, len(self.steps))
            self.steps.append(step)
            self.driver.call(depth, step, step.names)
            return
        plain = expansion.expand(stmt, self.region)
        if plain is not None:
            self.compute(plain, depth, position)
        else:
            self.interpret(stmt, depth, position, f"no library serves {stmt.op}")

    def routine(self, stmt: Call, library: dispatch.Library) -> Launch | None:
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

    def compute(self, stmt: Compute | Nest | Rows | Bands, depth: int, position: int) -> None:
        """Compile a kernel, or leave the statement to the interpreter."""
        reason = self.launched(stmt, depth, position)
        if reason is None:
            return
        if isinstance(stmt, Nest | Rows | Bands):
            self.part(stmt, position, reason)
            for inner in stmt.body:
                self.compute(inner, depth, position)
        else:
            self.interpret(stmt, depth, position, reason)

    def launched(
        self, stmt: Compute | Nest | Rows | Bands | Loop | While | Branch, depth: int, position: int
    ) -> str | None:
        """Compile a kernel and have it launched; the reason if it cannot be."""
        try:
            kernel, binding = schedule(stmt, self.region, self.cores)
            kernel, binding = ufunc_blocks.natively(kernel, binding, not self.fastmath, self.target.own)
            # the driver launches it again and again where it is in a loop
            kernel, binding = fixed(kernel, binding, None if depth > 1 else FEW)
            launch = self.code.launch(self.target, kernel)
        except MemoryError:  # later there may be more
            raise
        except Exception as error:  # whatever the compiler does, the program has to run
            reason = str(error)
            if not isinstance(error, Unsupported):
                reason = f"{type(error).__name__}: {error}"
            if not isinstance(error, Unsupported) or isinstance(error, code_cache.CompilerFailed):
                _warn(reason)
            return reason
        names = {
            buffer.name: pointer.array
            for buffer, pointer in zip(kernel.buffers, binding.pointers, strict=True)
            if isinstance(pointer, Pointer)
        }
        self.part(stmt, position, len(self.steps))
        self.steps.append(KernelStep(kernel, binding, names, self.target.name, stmt.loc))
        self.driver.launch(depth, launch, binding, position)
        if binding.then is not None:
            self.driver.launch(depth, launch, binding.then, position)
        return None

    def interpret(self, stmt: Stmt, depth: int, position: int, reason: str) -> None:
        """Leave a statement to the interpreter."""
        if self.fallback is not None:
            self.fallback(reason, stmt.loc)
        step = InterpStep(stmt, self.region, reason, position)
        self.part(stmt, position, len(self.steps))
        self.steps.append(step)
        self.driver.call(depth, step, step.names)


def _over(step: Step, var: str, bounds: tuple[Dim, Dim, Dim]) -> Step:
    """A step in the turns of a loop: what it reads and writes, where that differs, is that of the middle one,
    so many times."""
    if not isinstance(step, KernelStep) or var not in dims.free_symbols(step.binding.bytes):
        return step
    start, stop, by = bounds
    turns = len(range(start, stop, by)) if type(start) is type(stop) is type(by) is int else 1
    middle = dims.substitute(step.binding.bytes, {var: dims.simplify(start + turns // 2 * by)})
    return replace(step, binding=replace(step.binding, bytes=dims.simplify(turns * middle)))


def _with_array(region: Region, array: Array) -> Region:
    return Region(region.symbols, (*region.arrays, array), region.body, region.guards)
