"""A stand-in for the package numba, whose decorators return Python functions unchanged.

`standing_in` replaces the package by it while a program is loaded, and collects the functions and classes
that the program decorates, which Numba would have compiled.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

__all__ = ["Ufunc", "standing_in"]

_TYPES = (
    "bool_", "int8", "int16", "int32", "int64", "intp", "uint8", "uint16", "uint32", "uint64", "uintp",
    "float32", "float64", "complex64", "complex128",
)  # fmt: skip


class Ufunc:
    """The Python replacement of the result of `numba.vectorize` and `numba.guvectorize`.

    Attributes
    ----------
    function : callable
        The function that is called: with whole arrays, or, if there is a signature such as ``"(n),()->(n)"``,
        with the sub-arrays of each loop index.  It may be replaced by an accelerated one.
    """

    def __init__(self, function: Callable[..., Any], signature: str = "") -> None:
        self.function = function
        self.__name__ = function.__name__
        taken, _, given = signature.partition("->")
        self._taken, self._given = _dimensions(taken), _dimensions(given)

    def __call__(self, *args: Any) -> Any:
        """Call the function; arguments beyond its parameters are arrays for the results."""
        if self._given:
            return self._by_places(*args)
        count = self.function.__code__.co_argcount
        found = self.function(*args[:count])
        for out in args[count:]:
            out[...] = found
        return found

    def _by_places(self, *args: Any) -> Any:
        arrays = [_inner(np.asarray(one), names) for one, names in zip(args, self._taken, strict=False)]
        sizes: dict[str, int] = {}
        outer = []
        for array, names in zip(arrays, self._taken, strict=True):
            sizes |= dict(zip(names, array.shape[array.ndim - len(names) :], strict=True))
            outer.append(array.shape[: array.ndim - len(names)] if names else array.shape[:-1])
        shape = np.broadcast_shapes(*outer)
        kind = np.result_type(*arrays)
        made = [np.empty(shape + tuple(sizes[name] for name in names), kind) for names in self._given]
        outs = list(args[len(arrays) :]) or made
        arrays = [
            np.broadcast_to(array, shape + array.shape[len(before) :])
            for array, before in zip(arrays, outer, strict=True)
        ]
        arrays += [_inner(out, names) for out, names in zip(outs, self._given, strict=True)]
        for place in itertools.product(*map(range, shape)):
            self.function(*[array[place] for array in arrays])
        return outs[0] if len(outs) == 1 else tuple(outs)


def _dimensions(part: str) -> list[tuple[str, ...]]:
    """Return the names of the dimensions of each array of one side of a signature."""
    arrays = re.findall(r"\(([^)]*)\)", part.replace(" ", ""))
    return [tuple(filter(None, names.split(","))) for names in arrays]


def _inner(array: Any, names: tuple[str, ...]) -> Any:
    """Return an array, with one more axis of length one if the signature says that it is a scalar."""
    return array if names else array[..., None]


class _Type:
    """A type of Numba: an argument of its decorators, or a call that converts."""

    def __init__(self, name: str) -> None:
        self._kind = getattr(np, name)

    def __call__(self, *args: Any) -> Any:
        return self if not args or isinstance(args[0], _Type) else self._kind(*args)

    def __getitem__(self, place: Any) -> _Type:
        return self


@contextmanager
def standing_in(decorated: list[Any]) -> Iterator[None]:
    """A context in which the stand-in replaces numba; what is decorated there is appended to a list."""

    def jit(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and callable(args[0]) and not isinstance(args[0], _Type):
            decorated.append(args[0])
            return args[0]
        return jit

    def ufunc(*args: Any, **kwargs: Any) -> Any:
        signature = next((one for one in args[1:] if isinstance(one, str)), "")

        def decorate(function: Any) -> Ufunc:
            made = Ufunc(function, signature)
            decorated.append(made)
            return made

        return decorate(args[0]) if args and callable(args[0]) else decorate

    package, experimental = ModuleType("numba"), ModuleType("numba.experimental")
    names: dict[str, Any] = dict.fromkeys(("jit", "njit", "generated_jit", "cfunc", "jitclass"), jit)
    names |= {name.rstrip("_"): _Type(name) for name in _TYPES} | {"boolean": _Type("bool_")}
    vars(package).update(
        names, vectorize=ufunc, guvectorize=ufunc, prange=range, experimental=experimental, __path__=[]
    )
    vars(experimental)["jitclass"] = jit
    standing = {"numba": package, "numba.experimental": experimental}
    before = {name: sys.modules.get(name) for name in standing}
    sys.modules.update(standing)
    try:
        yield
    finally:
        for name, module in before.items():
            del sys.modules[name]
            if module is not None:
                sys.modules[name] = module
