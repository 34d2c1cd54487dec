"""Requests for plans as plain values, and the compiler driver `make_plan`, which runs in any process."""

from __future__ import annotations

from contextlib import nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from dcarray.ir.records import replaced

if TYPE_CHECKING:
    from collections.abc import Callable

    from dcarray.ir.nodes import Region
    from dcarray.ir.passes import Log as Notes
    from dcarray.ir.passes.pass_manager import Observer
    from dcarray.lowering.program.executable import Plan
    from dcarray.lowering.program.input_range_check import PlannedCheck
    from dcarray.lowering.target import Target


class PlanInput(NamedTuple):
    """The region of a request, and the conditions that its plan has to meet.

    Attributes
    ----------
    region : Region
    hints : dict
        The current values of its symbols.
    saved : collection of str
        The arrays that another run needs unchanged: copies of their overwritten elements are kept.
    payload : object
        Plain values that travel with the plan to the caller that runs it.
    discarded : bool
        Whether a run that raises floating-point exceptions is discarded: it then ends before it overwrites
        more.
    fresh : bool
        Whether the arrays of the role ``out`` are new memory in C order.
    version : str
        For a region with symbolic sizes: "some" allows rewrites that are faster for some sizes only, which
        become the plan's guard; "general" does not; see `dcarray.ir.analysis.versions`.
    steered : bool
        Whether the region is compiled as it is, without passes.
    """

    region: Region
    hints: dict[str, int]
    saved: frozenset[str]
    payload: Any = None
    discarded: bool = False
    fresh: bool = False
    version: Literal["", "some", "general"] = ""
    steered: bool = False


class Request(Protocol):
    """A description of a plan as plain values, with the options that the plan depends on."""

    @property
    def fastmath(self) -> bool: ...
    @property
    def threads(self) -> int: ...
    @property
    def cache_dir(self) -> str | None: ...
    @property
    def target(self) -> str: ...

    def plan_input(self) -> PlanInput:
        """Return the region, and the conditions that its plan has to meet."""

    def text(self) -> str:
        """Return all that the plan depends on as text, the same in every process: its key on disk."""


class RegionRequest(NamedTuple):
    """A request for the plan of a given region.

    Attributes
    ----------
    region : Region
        The region, of known sizes.
    fastmath : bool
    threads : int
    cache_dir : str or None
    target : str
        As the options of these names.
    """

    region: Region
    fastmath: bool
    threads: int
    cache_dir: str | None
    target: str = "cpu"

    def plan_input(self) -> PlanInput:
        """Return the region, which has no symbols."""
        return PlanInput(self.region, {}, frozenset())

    def text(self) -> str:
        """Return all that the plan depends on as text."""
        from dcarray.ir.text import dump

        return repr((dump(self.region), self.fastmath, self.threads, self.target))


class RoutineRequest(NamedTuple):
    """A request for the code of a routine, which is no region.

    Attributes
    ----------
    module, name : str
        The name of the function that makes the routine, and of its module in
        `dcarray.lowering.cpu.llvm.routines`.
    argument : object
        The argument of the function, a plain value.
    cache_dir : str or None
        As the option of this name.
    """

    module: str
    name: str
    argument: Any
    cache_dir: str | None

    def code(self) -> tuple[Any, ...]:
        """Compile the routine; returns the arguments of `llvm.launches.linked`.

        Raises
        ------
        Unsupported, MemoryError
        """
        from dcarray.lowering.cpu.llvm.routines.routine import NO_KERNEL
        from dcarray.lowering.program import code_cache

        make = getattr(import_module(f"dcarray.lowering.cpu.llvm.routines.{self.module}"), self.name)
        launch: Any = code_cache.of(self.cache_dir).loaded(make(self.argument), NO_KERNEL)
        return tuple(launch.parts)

    def text(self) -> str:
        """Return all that the code depends on as text."""
        return repr((self.module, self.name, self.argument))


class PlanResult(NamedTuple):
    """A plan, its guards, the values for the caller that runs it, and the numbers of its kernels that were
    compiled, found in memory, and found on disk."""

    plan: Plan
    relations: list[Any]
    payload: Any
    compiled: int
    hits: int
    disk_hits: int


def make_plan(
    request: Request,
    fallback: Callable[[str, Any], None],
    debug: int = 0,
    log: Notes | None = None,
    on_change: Observer | None = None,
) -> PlanResult:
    """Make the plan of a request: passes, schedules, code.

    Parameters
    ----------
    request : Request
    fallback : callable
        Called with the reason and the ``loc`` of each statement that is left to the interpreter.
    debug : int
        Other than 0: verify the region after every pass, and the program.
    log : ir.passes.Log, optional
        Receives the notes of the passes.
    on_change : callable, optional
        Receives the region as requested and after each step that changed it; see
        `ir.passes.pass_manager.Observer`.

    Raises
    ------
    Untraceable
        If the request has no region.
    """
    from dcarray.ir import dims
    from dcarray.ir.analysis import effects, undo_copies, value_ranges, versions
    from dcarray.ir.passes.pass_manager import Pipeline
    from dcarray.lowering.compilation import compile_region
    from dcarray.lowering.program import code_cache
    from dcarray.lowering.program import input_range_check as range_checks
    from dcarray.lowering.program.verify import verify
    from dcarray.lowering.targets import get

    requested, hints, saved, payload, discarded, fresh, which, steered = request.plan_input()
    # a loop that runs once more may end early, before it overwrites arrays that it does not read first
    names = (
        [a.name for a in requested.arrays if a.role == "inout"]
        if discarded
        else effects.overwritten_inputs(requested)
    )
    names = [name for name in names if name in saved]
    # memory with several geometries is copied once, by the caller that runs the plan
    several = () if discarded else undo_copies.aliased_arrays(requested, names)
    region, kept = undo_copies.with_undo_copies(requested, [name for name in names if name not in several])
    target, guards = get(request.target), dims.Guards(hints)
    version = versions.Version(region, which == "general") if which else None
    code = code_cache.of(request.cache_dir)
    before = code.stats()
    if on_change is not None:
        on_change("recorded", requested, ())
        if region is not requested:
            on_change("undo copies", region, ())
    pipeline = Pipeline() if steered else target.pipeline(request.threads)
    with guards if hints else nullcontext():
        with version or nullcontext():
            optimised = pipeline.run(region, log, debug, on_change)
        final, kept, aside = undo_copies.caller_copies(optimised, kept)
        stop, range_check, spared = None, None, (*several, *aside)
        if discarded:
            final, kept, stop = undo_copies.end_before_overwrites(final, kept)
        elif not spared:
            final, kept, stop = undo_copies.compute_aside(final, kept)
        least = range_checks.MIN_COPIED if discarded else range_checks.MIN_COPIED_BESIDE
        if (
            not spared
            and stop is None
            and value_ranges.worth_checking(requested, [one.window for one in kept], least, hints)
            and (left := undo_copies.without_copies(final, kept, beside=True)) is not final
            and (range_check := _range_check(requested, left, target, request.cache_dir))
        ):
            spared = tuple([one.array for one in kept])
            final, kept = left, ()
        if on_change is not None and final is not optimised:
            on_change("undo copies", final, ())
        plan = compile_region(
            final, target, request.cache_dir, fallback=fallback, fastmath=request.fastmath, stop=stop,
            fresh=fresh,
        )  # fmt: skip
        if debug:
            verify(plan.program)
        plan = replaced(plan, kept=tuple([(k.array, k.slices) for k in kept]))
        plan = replaced(plan, range_check=range_check, spared=spared, stops=stop is not None)
    after = code.stats()
    counts = [after[name] - before[name] for name in ("compiled", "hits", "disk_hits")]
    relations = [*guards.recorded, *(version.relations(final) if version is not None else ())]
    return PlanResult(plan, relations, payload, *counts)


def _range_check(region: Region, final: Region, target: Target, cache_dir: str | None) -> PlannedCheck | None:
    """Return the check whether a region's inputs are too small to raise floating-point exceptions, or
    None."""
    from dcarray.ir.analysis import value_ranges
    from dcarray.lowering.compilation import compile_region
    from dcarray.lowering.program import input_range_check

    # in the final region conditions are expressions
    limits = value_ranges.safe_limits(region) or value_ranges.safe_limits(final)
    if limits is None:
        return None
    names = value_ranges.checked_inputs(region)
    arrays = [array for array in region.arrays if array.name in names]
    plan = compile_region(
        target.pipeline(0).run(value_ranges.magnitude_region(arrays, region.symbols)), target, cache_dir
    )
    if len(plan.kernels) < len(plan.steps):
        return None
    given = [array.name for array in region.arrays if array.role != "temp"]
    plain = tuple([value_ranges.is_scalar(array) for array in arrays])
    return input_range_check.PlannedCheck(plan, tuple([given.index(name) for name in names]), plain, *limits)
