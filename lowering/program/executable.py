"""Plans in the process that compiled them."""

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
    """A statement of a plan's region, and the step that runs it.

    Attributes
    ----------
    position : int
        The position in the region's body of this statement, or of the one that contains it.
    stmt : Stmt
    whole : Stmt
        The statement within the loops and branches that contain it and that the driver runs.
    step : int or str
        The position of the step that runs it; or, if the statements in it have steps of their own, the reason
        why it is not one kernel.
    """

    position: int
    stmt: Stmt
    whole: Stmt
    step: int | str


@record(frozen=True, slots=True)
class Plan:
    """A compiled region, which can run on any thread, and on several at the same time.

    Attributes
    ----------
    region : Region
        The region that runs: the given one, with temporaries that share memory merged.
    arrays : tuple of str
        The names of the arrays that a run needs, in order: all except the temporaries.
    program : Program
        The steps of a run, as data.
    steps : tuple
        The program's nodes that run something, in order.
    driver : str
        The Python text that runs the steps.
    things : mapping of str to object
        The objects that the text calls, by name.
    run : callable
        ``run(arrays, addresses, symbols=(), threads=0, minded=0) -> flags``: the ndarrays, the addresses of
        their first elements, the values of the region's symbols, all in order, the number of threads (0:
        the plan's default), and the floating-point flags for which a run stops at a `nodes.Stop`.  Returns
        the flags that were raised (1 divide, 2 over, 4 under, 8 invalid).  All memory is allocated before
        anything is written.
    kept : tuple of pairs of str
        The arrays with undo copies (`ir.analysis.undo_copies`), which are the last of ``arrays``, and for
        each the index of the copied elements, as text.  Set by the caller that has added the copies.
    range_check : dcarray.lowering.program.input_range_check.PlannedCheck or None
        The check that the inputs are so small that nothing but underflow can be raised; None without one.
    spared : tuple of str
        The arrays without undo copies of which a run overwrites elements it has read: because of
        ``range_check``, or, if that is None, because several arrays share their memory.
    stops : bool
        Whether a run that raises one of the flags ``minded`` stops before it overwrites inputs.
    single : bool
        Whether a run is a single native call, which no interrupt of Python can break.
    parts : tuple of Part
        The statements of the region, and the statements in those that are not a single kernel.
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
        """Return the numbers of kernels, calls and interpreted statements."""
        kinds = {
            "kernels": nodes.Launch,
            "calls": nodes.LibraryCall | nodes.Copy,
            "interpreted": nodes.HostCall,
        }
        return {name: sum(isinstance(step, kind) for step in self.steps) for name, kind in kinds.items()}

    @property
    def overwritten(self) -> tuple[str, ...]:
        """The arrays from outside that may already be changed when a library call or the interpreter fails
        (the failing step itself changes nothing), so that a second run would see other inputs."""
        last = max((step.position for step in self.steps if not isinstance(step, nodes.Launch)), default=-1)
        before = self.region.body[: max(last, 0)]
        if last >= 0 and not isinstance(self.region.body[last], Call | Compute):
            before = self.region.body[: last + 1]
        root = effects.families(self.region)
        written = {window.array for stmt in before for window in effects.writes(stmt)}
        written |= {root[name] for name in written}  # perhaps in another shape
        changed = [a.name for a in self.region.arrays if a.role == "inout" and a.name in written]
        anew = idempotent_arrays(self.region) if changed else ()
        return tuple([name for name in changed if name not in anew])
