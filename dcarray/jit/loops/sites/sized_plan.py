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

__all__ = ["SizedPlan"]


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
        self._loaded, self._symbols = loaded, symbols
        self.place = place = {name: k for k, name in enumerate(names)}
        inputs = iter(interface.inputs)
        self._parameters: list[tuple[str, Any, Any, tuple[int, ...], tuple[int, ...], int]] = []
        for _, role, char, shape, strides in interface.arrays:
            fetch = None if role == "out" else fetcher(next(inputs), place)
            self._parameters.append((role, fetch, np.dtype(char), shape, strides, math.prod(shape)))
        self.at_of = {name: k for k, (name, *_) in enumerate(interface.arrays)}
        self._shapes = _expression(interface.symbols, interface.shapes) if interface.shapes else None
        serves = _expression(interface.symbols, interface.guard) if interface.symbols else None
        self._serves = (serves, loaded.guard)
        self._bytes = 0

    def _bind_symbols(self, symbols: tuple[int, ...]) -> None:
        """Compute the shapes and strides for these values of the symbols."""
        self._symbols = symbols
        self._bytes = int(self._loaded.bytes(*symbols))
        if self._shapes is not None:
            for k, shape in enumerate(self._shapes(*symbols)):
                role, fetch, dtype, _, _, _ = self._parameters[k]
                strides = tuple([dtype.itemsize * n for n in c_strides(shape)])
                self._parameters[k] = role, fetch, dtype, shape, strides, math.prod(shape)

    def holds(self, symbols: tuple[int, ...]) -> bool:
        """Whether the plan's guard is true for these values of its symbols."""
        holds, guard = self._serves
        return (
            all(abs(n) <= LARGEST for n in symbols)
            and (holds is None or bool(holds(*symbols)))
            and (guard is None or bool(guard(*symbols)))
        )

    def serves(self, symbols: tuple[int, ...]) -> bool:
        """Whether the plan may run with these values of its symbols; if so the next run uses them.  The
        caller must hold `LOCK` until that run."""
        if symbols == self._symbols:
            return True
        if not self.holds(symbols):
            return False
        self._bind_symbols(symbols)
        return True

    @property
    def symbols(self) -> tuple[int, ...]:
        """The values of the region's symbols for which the shapes are computed."""
        return self._symbols

    def shapes(self, symbols: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of the parameters for these values of the symbols; () if they do not depend on
        them."""
        found: tuple[tuple[int, ...], ...] = () if self._shapes is None else self._shapes(*symbols)
        return found


def _expression(symbols: Sequence[tuple[str, str]], text: str) -> Callable[..., Any]:
    """Return a function of the symbols' values that evaluates an expression in the notation of `dims.show`:
    names, integers and operators only."""
    names = ", ".join(symbol for symbol, _ in symbols)
    found: Callable[..., Any] = eval(f"lambda {names}: {text}", {"max": max, "min": min})
    return found
