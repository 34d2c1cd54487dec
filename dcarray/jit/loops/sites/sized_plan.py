"""The parameters of a serialised plan, bound to its site's names, with shapes by its symbols."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.core.strides import c_strides

from ..entry.sizes import LARGEST
from .loop_requests import LoopInterface
from .plan_values import fetcher

if TYPE_CHECKING:
    from dcarray.lowering.program.loaded_plan import LoadedPlan

__all__ = ["SizedPlan", "Sizes"]

Parameter = tuple[str, Any, Any, tuple[int, ...], tuple[int, ...], int]


class Sizes:
    """The shapes of a plan's parameters for given values of its symbols.  A run has its own: a signal handler
    or a destructor may run the same plan with others meanwhile.

    Attributes
    ----------
    symbols : tuple of int
    parameters : list of tuple
        Role, position or function that gets the value, dtype, shape, strides in bytes, number of elements.
    bytes : int
        Bytes that a run reads and writes.
    windows : list of tuple
        The parameters of which windows are copied to undo a run, each with its window.
    kept : list or None
        Memory for these copies, between runs.
    """

    __slots__ = ("bytes", "kept", "parameters", "symbols", "windows")

    def __init__(self, symbols: tuple[int, ...], parameters: list[Parameter], nbytes: int = 0) -> None:
        self.symbols, self.parameters, self.bytes = symbols, parameters, nbytes
        self.windows: list[tuple[int, Any]] = []
        self.kept: list[tuple[Any, int]] | None = None


class SizedPlan:
    """A serialised plan and its parameters.

    Parameters
    ----------
    loaded : LoadedPlan
    names : sequence of str
        The names of the values that a run gets.
    interface : LoopInterface
    symbols : tuple of int
        The values of the region's symbols.

    Raises
    ------
    PlanMismatch
        If a parameter's value is not known when the loop begins.
    """

    def __init__(
        self, loaded: LoadedPlan, names: Sequence[str], interface: LoopInterface, symbols: tuple[int, ...]
    ) -> None:
        self._loaded, self.polls, self.frames = loaded, interface.polls, interface.frames
        self.place = place = {name: k for k, name in enumerate(names)}
        inputs = iter(interface.inputs)
        parameters: list[Parameter] = []
        for _, role, char, shape, strides in interface.arrays:
            fetch = None if role == "out" else fetcher(next(inputs), place)
            parameters.append((role, fetch, np.dtype(char), shape, strides, math.prod(shape)))
        self._sizes = Sizes(symbols, parameters)  # of the last run
        self.at_of = {name: k for k, (name, *_) in enumerate(interface.arrays)}
        self._shapes = _expression(interface.symbols, interface.shapes) if interface.shapes else None
        serves = _expression(interface.symbols, interface.guard) if interface.symbols else None
        self._serves = (serves, loaded.guard)

    def _sizes_for(self, symbols: tuple[int, ...]) -> Sizes:
        """Return the shapes and strides for these values of the symbols."""
        parameters = list(self._sizes.parameters)
        for k, shape in enumerate(self.shapes(symbols)):
            role, fetch, dtype, _, _, _ = parameters[k]
            strides = tuple([dtype.itemsize * n for n in c_strides(shape)])
            parameters[k] = role, fetch, dtype, shape, strides, math.prod(shape)
        return Sizes(symbols, parameters, int(self._loaded.bytes(*symbols)))

    def holds(self, symbols: tuple[int, ...]) -> bool:
        """Whether the plan's guard is true for these values of its symbols."""
        holds, guard = self._serves
        return (
            all(abs(n) <= LARGEST for n in symbols)
            and (holds is None or bool(holds(*symbols)))
            and (guard is None or bool(guard(*symbols)))
        )

    def sizes(self, symbols: tuple[int, ...]) -> Sizes | None:
        """Return what a run with these values of the symbols needs; None if the plan does not serve them."""
        sizes = self._sizes
        if symbols != sizes.symbols:
            if not self.holds(symbols):
                return None
            self._sizes = sizes = self._sizes_for(symbols)
        return sizes

    @property
    def symbols(self) -> tuple[int, ...]:
        """The values of the region's symbols in the last run."""
        return self._sizes.symbols

    def shapes(self, symbols: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of the parameters for these values of the symbols; () if they do not depend on
        them."""
        shapes: tuple[tuple[int, ...], ...] = () if self._shapes is None else self._shapes(*symbols)
        return shapes


def _expression(symbols: Sequence[tuple[str, str]], text: str) -> Callable[..., Any]:
    """Return a function of the symbols' values that evaluates an expression in the notation of `dims.show`:
    names, integers and operators only."""
    names = ", ".join(symbol for symbol, _ in symbols)
    function: Callable[..., Any] = eval(f"lambda {names}: {text}", {"max": max, "min": min})
    return function
