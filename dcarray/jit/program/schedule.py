"""``dc.schedule``: a region that is changed step by step, by hand, and can be run as it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dcarray.core import config
from dcarray.core.errors import ScheduleError
from dcarray.ir import dims, interp
from dcarray.ir.nodes import Loop, Region, Stmt
from dcarray.ir.numpy_views import NDArray
from dcarray.ir.passes.base import Log, Note, Pass
from dcarray.ir.passes.nested import NESTED
from dcarray.ir.passes.pass_manager import Pipeline
from dcarray.ir.statements import all_statements, around, bodies, loop_variables, with_statement
from dcarray.ir.text import show_stmt
from dcarray.ir.verify import VerifyError, verify

from .region_arguments import arguments_of

if TYPE_CHECKING:
    from dcarray.ir.analysis.effects import Reason
    from dcarray.lowering.program.executable import Plan

__all__ = ["Change", "Schedule", "repeated", "schedule"]


class Change(NamedTuple):
    """A call of a method of `Schedule`."""

    method: str
    arguments: tuple[Any, ...]

    def __str__(self) -> str:
        if self.method == "apply":
            (what,) = self.arguments
            return what if isinstance(what, str) else str(what.name)
        return f"{self.method}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True)
class Schedule:
    """A region and the changes that have been made to it.  Each change gives a new schedule.

    Statements are called by their positions in ``statements``, which ``print`` shows.  Each change is
    verified; one that is not legal, or not proved to be, raises `ScheduleError` with the reason.

    Attributes
    ----------
    region : Region
    options : config.Options
        The options in force when it was made; target, threads and ``fastmath`` matter.
    notes : tuple of Note
        What the last pass did, and what it refused with the reason: each has ``kind`` ("done" or "refused"),
        ``text``, ``pass_name`` and ``loc``.
    changes : tuple of Change
        The changes made so far; ``steps`` has them as text.
    known : tuple of (str, number)
        Arrays without axes whose values are known: constants of the program, such as ``inf``.
    """

    region: Region
    options: config.Options
    notes: tuple[Note, ...] = ()
    changes: tuple[Change, ...] = ()
    known: tuple[tuple[str, Any], ...] = ()

    # ---- what there is ------------------------------------------------------------------------------
    @property
    def statements(self) -> tuple[Stmt, ...]:
        """The statements of the region, each loop or branch before those in it."""
        return tuple(all_statements(self.region.body))

    @property
    def steps(self) -> tuple[str, ...]:
        """The changes so far."""
        return tuple(map(str, self.changes))

    @property
    def passes(self) -> tuple[str, ...]:
        """The names of the passes of the target."""
        return tuple(name for name in self._pipeline.names if name != NESTED.name)

    def __str__(self) -> str:
        return "\n".join(_lines(self.region.body, self.region, count(), 0))

    @property
    def _pipeline(self) -> Pipeline:
        from dcarray.lowering.targets import get

        return get(self.options.target).pipeline(self.options.threads)

    # ---- passes -------------------------------------------------------------------------------------
    def apply(self, what: str | Any) -> Schedule:
        """Run one pass.

        Parameters
        ----------
        what : str or Pass
            A name of ``passes``: it runs on the region and, where it does so in the target's pipeline, in
            loops and branches, until it finds nothing more to do.  Or a pass of one's own: anything with
            ``name`` and ``fn(region, log)``, which returns the new region, or the same; it runs once.

        Returns
        -------
        Schedule
            Its ``notes`` say what was done and what was refused; the region is the same if nothing was done.

        Raises
        ------
        ValueError
            If there is no pass of the name.
        TypeError
            If ``what`` is no pass, or does not return a region.
        ScheduleError
            If the new region is not valid.
        """
        log = Log()
        name: Any = what
        if isinstance(what, str):
            run = self._named(what)
        else:
            name, fn = getattr(what, "name", None), getattr(what, "fn", None)
            if not isinstance(name, str) or not callable(fn):
                raise TypeError(f"a pass is a name, or has a name and fn(region, log), not {what!r}")
            run = Pipeline(final=(Pass(name, fn),))
        after = run.run(self.region, log)
        if not isinstance(after, Region):
            raise TypeError(f"the pass {name} returns a region, not {type(after).__name__}")
        if after is self.region and not log.notes:
            log.refused(name, "it finds nothing to change")
        return self._changed(after, Change("apply", (what,)), tuple(log.notes))

    def _named(self, name: str) -> Pipeline:
        """The pipeline of one pass."""
        pipeline = self._pipeline
        for sequence in (pipeline.passes, pipeline.early, pipeline.final):
            for one in sequence:
                if one.name == name and one is not NESTED:
                    passes = (one, NESTED) if NESTED in sequence else (one,)
                    return Pipeline(final=passes) if sequence is pipeline.final else Pipeline(passes=passes)
        raise ValueError(f"no pass is called {name!r}; the passes are {', '.join(self.passes)}")

    # ---- statements ---------------------------------------------------------------------------------
    def tile(self, position: int, sizes: Sequence[int | None]) -> Schedule:
        """Run a statement block by block of its domain.

        Parameters
        ----------
        position : int
            The position of a statement over a domain.
        sizes : sequence of int or None
            The length of blocks along each axis; the last block may be shorter.  None: the axis is not
            divided.  With 1 an axis becomes a loop.

        Returns
        -------
        Schedule
            The schedule with one loop for each divided axis.  The first is outermost, and parallel if that is
            proved.

        Raises
        ------
        ScheduleError
            If an axis is folded or accumulated, or it is no such statement.
        """
        from dcarray.ir.passes import by_hand
        from dcarray.ir.renaming import unused_names

        stmt = self._at(position)
        for size in sizes:
            if size is not None and (type(size) is not int or size < 1):
                raise ValueError(f"the size of a block is a positive int or None, not {size!r}")
        step = Change("tile", (position, tuple(sizes)))
        self._need(by_hand.can_tile(stmt, sizes), step, stmt)
        if all(size is None for size in sizes):
            raise ScheduleError(f"{step}: no axis is divided")
        taken = {a.name for a in self.region.arrays} | {s.name for s in self.region.symbols}
        names = unused_names("b", taken | loop_variables(self.region.body))
        used = [next(names) for size in sizes if size is not None]
        loop = by_hand.tile(stmt, sizes, used)  # type: ignore[arg-type]  # it is legal for one kind
        return self._changed(self._parallel(position, (loop,)), step)

    def interchange(self, position: int, order: Sequence[int]) -> Schedule:
        """Put the loops of a perfect nest in another order.

        Parameters
        ----------
        position : int
            The position of the outermost loop.  The body of each outer loop is only the next loop.
        order : sequence of int
            The old places of the loops in their new order, 0 being the outermost: (1, 0) exchanges two.

        Raises
        ------
        ScheduleError
            If an iteration needs another one of the same loop, or a range depends on another loop's variable.
            The axes of one statement have no order: it is chosen by the target, for the strides; see `tile`.
        """
        from dcarray.ir.passes import by_hand

        stmt, places = self._at(position), list(order)
        step = Change("interchange", (position, tuple(order)))
        loops = by_hand.perfect_nest(stmt)
        if sorted(places) != list(range(len(places))):
            raise ValueError(f"an order has each of 0, 1, ... once, not {tuple(order)}")
        if not loops:
            raise ScheduleError(
                f"{step}: {by_hand.kind_of(stmt)} is not a loop; the axes of a statement have no order of "
                "their own, tile() makes loops of them"
            )
        if len(places) > len(loops):
            raise ScheduleError(f"{step}: {len(places)} nested loops are needed, and there are {len(loops)}")
        latest = self
        current = list(range(len(places)))
        for k, place in enumerate(places):  # neighbours are exchanged until each is in its place
            for j in range(current.index(place), k, -1):
                latest = latest._exchanged(position + j - 1, step)
                current[j - 1], current[j] = current[j], current[j - 1]
        return self._changed(latest._parallel(position, (latest._at(position),)), step)

    def _exchanged(self, position: int, step: Change) -> Schedule:
        from dcarray.ir.passes import by_hand

        loop = self._at(position)
        assert isinstance(loop, Loop)
        with self._inside(position, self.region):
            reason = by_hand.can_swap(loop, self.region)
        self._need(reason, step, loop)
        return replace(self, region=self._with(position, (by_hand.swap(loop),)))

    def unroll(self, position: int, factor: int) -> Schedule:
        """Write several iterations of a loop one after the other.

        Parameters
        ----------
        position : int
            The position of a loop whose number of iterations is known.
        factor : int
            How many iterations are joined; the remaining ones become a second loop.

        Raises
        ------
        ScheduleError
            If the number of iterations is not known, or it is less than ``factor``.
        """
        from dcarray.ir.passes import by_hand

        if type(factor) is not int or factor < 2:
            raise ValueError(f"the factor is an int from 2 on, not {factor!r}")
        stmt, step = self._at(position), Change("unroll", (position, factor))
        self._need(by_hand.can_unroll(stmt, factor), step, stmt)
        assert isinstance(stmt, Loop)
        return self._changed(self._parallel(position, by_hand.unroll(stmt, factor)), step)

    # ---- steps --------------------------------------------------------------------------------------
    def _at(self, position: int) -> Stmt:
        there = self.statements
        if type(position) is not int or not 0 <= position < len(there):
            raise ValueError(f"there is no statement {position!r}: there are {len(there)}, counted from 0")
        return there[position]

    def _with(self, position: int, new: Sequence[Stmt]) -> Region:
        return replace(self.region, body=with_statement(self.region.body, position, new))

    def _parallel(self, position: int, new: Sequence[Stmt]) -> Region:
        """The region with other statements, the first of them a parallel loop if that is proved."""
        from dcarray.ir.analysis.independence import iteration_conflict

        region, (first, *rest) = self._with(position, new), new
        with self._inside(position, region):
            if isinstance(first, Loop) and not first.parallel and iteration_conflict(first, region) is None:
                return self._with(position, (replace(first, parallel=True), *rest))
        return region

    def _need(self, reason: Reason | None, step: Change, stmt: Stmt) -> None:
        if reason is not None:
            raise ScheduleError(f"{step}: {reason.text}, in: {show_stmt(stmt, self.region)}")

    def _changed(self, region: Region, step: Change, notes: tuple[Note, ...] = ()) -> Schedule:
        """The schedule after a step, whose region is verified."""
        if region is not self.region:
            try:
                verify(region)
            except VerifyError as error:
                raise ScheduleError(f"{step}: {error}") from error
        return replace(self, region=region, notes=notes, changes=(*self.changes, step))

    @contextmanager
    def _inside(self, position: int, region: Region) -> Iterator[None]:
        """A context in which proofs know the sizes, and the loops around a statement."""
        with ExitStack() as known:
            known.enter_context(dims.assuming(region.guards))
            for loop in around(region.body, position):
                known.enter_context(dims.ranging(loop.var, loop.bounds))
            yield

    # ---- runs ---------------------------------------------------------------------------------------
    def run(self, **values: Any) -> dict[str, NDArray]:
        """Compile the region as it is, without further passes, and run it.

        Parameters
        ----------
        **values
            The region's arrays with the roles ``in`` and ``inout`` by name, contiguous in C order; scalars
            are numbers.  Symbols that are not the size of an array are given, too.  Arrays ``inout`` are
            written.  Floating-point exceptions are not reported.

        Returns
        -------
        dict of str to ndarray
            Every array with the role ``out`` or ``inout``.

        Raises
        ------
        TypeError
            If a value lacks or is of another dtype or rank, or an unknown one is given.
        ValueError
            If sizes contradict each other or a guard of the region, or an array that is written is read-only,
            not contiguous, or shares memory with another.
        """
        from dcarray.lowering.runtime.array_memory import address_of

        given = arguments_of(self.region, {**dict(self.known), **values})
        arrays = given.with_results(self.region)
        ordered = [arrays[name] for name in self.plan.arrays]
        sizes = [given.sizes[symbol.name] for symbol in self.plan.region.symbols]
        self.plan.run(ordered, [address_of(x) for x in ordered], sizes, self.options.threads)
        return {a.name: arrays[a.name] for a in self.region.arrays if a.role in ("out", "inout")}

    def interpret(self, **values: Any) -> dict[str, NDArray]:
        """Run the region by the interpreter, which defines what it means; as `run`."""
        given = arguments_of(self.region, {**dict(self.known), **values})
        with np.errstate(all="ignore"):
            return interp.run(self.region, given.memory, given.sizes)

    @cached_property
    def plan(self) -> Plan:
        """The compiled region: its ``kernels``, ``stats`` and ``driver``."""
        from dcarray.lowering.compilation import compile_region

        options = self.options
        return compile_region(
            self.region, options.target, options.cache_dir, options.threads, fastmath=options.fastmath
        )


def _lines(body: Sequence[Stmt], region: Region, positions: Iterator[int], depth: int) -> Iterator[str]:
    """The lines of statements with their positions."""
    for stmt in body:
        head, *others = show_stmt(stmt, region).split("\n")
        yield f"{next(positions):>4}  {'  ' * depth}{head}"
        inner = bodies(stmt)
        for k, part in enumerate(inner):
            if k and part:
                yield f"{'':>4}  {'  ' * depth}}} else {{"
            yield from _lines(part, region, positions, depth + 1)
        if not inner:
            yield from (f"{'':>4}  {'  ' * depth}{line}" for line in others)


def schedule(region: Region) -> Schedule:
    """Return a region as a schedule, which is changed by hand.

    Parameters
    ----------
    region : Region
        As ``f.region()`` of a program ``f``; ``f.schedule()`` is the same.

    Raises
    ------
    TypeError
        If it is none.
    VerifyError
        If it is not valid; a `ValueError`.
    """
    if not isinstance(region, Region):
        raise TypeError(f"schedule() takes a region, not {type(region).__name__}: f.region() of a program f")
    verify(region)
    return Schedule(region, config.current())


def repeated(changes: Sequence[Change], region: Region, options: config.Options) -> Schedule:
    """Return a region's schedule after a list of changes, which are made and checked one by one.

    Raises
    ------
    ScheduleError
        If a change is not legal there, or is a user's own pass, which has no name to find it by.
    """
    verify(region)
    latest = Schedule(region, options)
    for change in changes:
        if change.method == "apply" and not isinstance(change.arguments[0], str):
            raise ScheduleError(
                f"{change}: a pass of one's own is part of a target, for programs that are compiled with it"
            )
        try:
            latest = getattr(latest, change.method)(*change.arguments)
        except ScheduleError:
            raise
        except ValueError as error:  # no such pass, or no such statement
            raise ScheduleError(f"{change}: {error}") from error
    return latest
