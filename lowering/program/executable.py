"""Executable plans in the process that made them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dcarray.ir.analysis import effects
from dcarray.ir.analysis.idempotence import idempotent_arrays
from dcarray.ir.nodes import Call, Compute, Region, Stmt
from dcarray.ir.records import record

from . import nodes
from .input_range_check import PlannedCheck


@record(frozen=True, slots=True)
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


@record(frozen=True, slots=True)
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
        (`ir.analysis.undo_copies`).  Whoever added the copies says so.
    range_check : dcarray.lowering.program.input_range_check.PlannedCheck or None
        What finds whether the inputs are so small that nothing but underflow can be raised.
    spared : tuple of str
        The arrays of which a run keeps nothing though it overwrites what it has read: for that reason, or,
        if there is no ``range_check``, since they are one memory in several geometries.
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
    range_check: PlannedCheck | None = None
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
        """The existing arrays that may have changed when a library call or the interpreter fails.  Either
        fails before it changes anything itself.  Another run would find these arrays changed."""
        last = max((step.position for step in self.steps if not isinstance(step, nodes.Launch)), default=-1)
        before = self.region.body[: max(last, 0)]
        if last >= 0 and not isinstance(self.region.body[last], Call | Compute):
            before = self.region.body[: last + 1]
        root = effects.families(self.region)
        written = {window.array for stmt in before for window in effects.writes(stmt)}
        written |= {root[name] for name in written}  # perhaps in another shape
        found = [a.name for a in self.region.arrays if a.role == "inout" and a.name in written]
        anew = idempotent_arrays(self.region) if found else ()
        return tuple([name for name in found if name not in anew])
