"""Planning requests of programs; see `dcarray.plans.requests`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, NamedTuple

from dcarray.core import config
from dcarray.core.strides import c_strides
from dcarray.plans.requests import PlanInput

from ..loops.entry.entry_values import Result
from ..loops.sites.loop_requests import LoopInterface, is_checked
from .annotations import ArrayAnnotation
from .description import Description

__all__ = ["ProgramInterface", "ProgramRequest"]


class ProgramInterface(NamedTuple):
    """The arguments and results of a program's plan for all sizes.

    Attributes
    ----------
    arrays : tuple
        For each array argument, in order: its name in the region, role and dtype.
    symbols : tuple of str
        The names of the region's symbols.
    shapes : str
        The shapes of the arrays, as a Python expression of the symbols.
    guard : str
        The Python expression that says whether the plan serves given values of the symbols.
    integers : tuple of (str, str)
        The arguments that are Python ints, with the symbols that they are.
    inputs, results, rewritten, may_raise, checked, by_value
        As in `LoopInterface`.
    returns : str
        As in `dcarray.jit.program.region.TracedProgram`.
    """

    arrays: tuple[tuple[str, str, str], ...]
    symbols: tuple[str, ...]
    shapes: str
    guard: str
    integers: tuple[tuple[str, str], ...]
    inputs: tuple[str, ...]
    results: tuple[tuple[str, Result], ...]
    rewritten: tuple[str, ...]
    may_raise: bool
    checked: bool
    by_value: frozenset[str]
    returns: str

    def for_shapes(self, shapes: tuple[tuple[int, ...], ...]) -> LoopInterface:
        """Return the interface with sizes in place of symbols."""
        import numpy as np

        arrays = []
        for (name, role, char), shape in zip(self.arrays, shapes, strict=True):
            strides = tuple([np.dtype(char).itemsize * s for s in c_strides(shape)])
            arrays.append((name, role, char, shape, strides))
        rest = self.inputs, self.results, self.rewritten, self.may_raise, self.checked, self.by_value
        return LoopInterface(tuple(arrays), *rest)

    def written(self) -> frozenset[str]:
        """Return the arguments whose elements are written."""
        roles = [role for _, role, _ in self.arrays if role != "out"]
        return frozenset(name for role, name in zip(roles, self.inputs, strict=True) if role == "inout")


class ProgramRequest(NamedTuple):
    """A program to be planned for all sizes, with the options that its plan depends on.

    Attributes
    ----------
    version : str
        As in `dcarray.plans.requests.PlanInput`.
    changes : tuple of (str, tuple) or None
        The changes of the region that replace the passes, each as a `dcarray.jit.program.schedule.Change`.
    undone : bool
        Whether memory is restored where a floating-point exception is raised.
    flagless : bool
        As in `LoopDescription`.
    """

    program: Description
    fastmath: bool
    threads: int
    cache_dir: str | None
    target: str = "cpu"
    version: Literal["some", "general"] = "some"
    changes: tuple[tuple[str, tuple[Any, ...]], ...] | None = None
    undone: bool = True
    flagless: bool = False

    def plan_input(self) -> PlanInput:
        """Return the region of the program."""
        from dcarray.ir import dims
        from dcarray.ir.analysis.idempotence import idempotent_arrays
        from dcarray.ir.build import is_scalar_argument

        from .region import trace_program

        traced = trace_program(self.program, self.flagless)
        region = traced.region
        if self.changes is not None:
            from .schedule import Change, repeated

            options = replace(config.current(), target=self.target, threads=self.threads)
            region = repeated([Change(*change) for change in self.changes], region, options).region
        arguments = [a for a in region.arrays if a.role != "temp"]
        # lists are unchanged where a run fails
        given = {name for name, a in self.program.parameters if isinstance(a, ArrayAnnotation) and a.as_list}
        lists = frozenset(p.symbol for p in traced.parameters if p.name in given)
        rewritten = frozenset() if traced.may_raise else idempotent_arrays(region) - lists
        saved = frozenset(a.name for a in arguments if a.role == "inout") - rewritten - lists
        if not self.undone:
            saved = frozenset()
        shapes = "".join(f"({''.join(dims.show(n) + ', ' for n in a.shape)}), " for a in arguments)
        interface = ProgramInterface(
            tuple([(a.name, a.role, a.dtype.str) for a in arguments]),
            tuple([symbol.name for symbol in region.symbols]), f"({shapes})",
            " and ".join(f"({dims.show(guard)})" for guard in region.guards) or "True",
            tuple([(p.name, p.symbol) for p in traced.parameters if p.kind == "size"]), traced.inputs,
            tuple([(f"r{k}", result) for k, result in enumerate(traced.results)]),
            tuple(sorted(rewritten)), traced.may_raise, is_checked(region),
            frozenset(a.name for a in arguments if is_scalar_argument(a)), traced.returns,
        )  # fmt: skip
        if self.changes is not None:
            return PlanInput(region, {}, saved, interface, True, True, steered=True)
        return PlanInput(region, {}, saved, interface, True, True, self.version)

    def text(self) -> str:
        """Return the text of everything that the plan depends on, as its key."""
        options = (
            self.fastmath, self.threads, self.target, self.version, self.changes, self.undone,
            self.flagless,
        )  # fmt: skip
        return repr((self.program, *options))
