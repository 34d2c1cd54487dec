"""The files of dcarray and NumPy, whose frames do not count as the user's code."""

from __future__ import annotations

import os
import sys
from functools import cache

__all__ = ["is_inside", "is_of_caller"]

_inside: dict[str, bool] = {}
_MOST_FILES = 10_000  # a program that generates code must not grow the table without bound
_LAYERS = ("dcarray.ir", "dcarray.lowering", "dcarray.comm")


def _roots() -> tuple[str, ...]:
    """Return the folders of this package with its layers, and of NumPy."""
    return _roots_with(tuple([name for name in ("numpy", *_LAYERS) if name in sys.modules]))


@cache
def _roots_with(layers: tuple[str, ...]) -> tuple[str, ...]:
    """Return the result of `_roots`, given the imported layers; a new look resolves links, which takes
    time."""
    roots = {os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}
    for layer in layers:
        for path in getattr(sys.modules[layer], "__path__", ()):
            roots.update((os.path.abspath(path), os.path.realpath(path)))
    return tuple(path + os.sep for path in sorted(roots))


def is_inside(filename: str) -> bool:
    """Whether a file belongs to this package or to NumPy."""
    known = _inside.get(filename)
    if known is None:
        # "<...>" names code without a file; NumPy's dispatchers are such, a user's console is not
        generated = filename.startswith("<__array_function__")
        known = generated or (os.path.isabs(filename) and os.path.abspath(filename).startswith(_roots()))
        if len(_inside) < _MOST_FILES:
            _inside[filename] = known
    return known


def is_of_caller(error: Exception) -> bool:
    """Whether an error is that of a function of the user, which a function here has called, or is about a
    matrix whose elements, not its form, are wrong."""
    if type(error).__name__ == "LinAlgError":
        return True
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place is not None and not is_inside(place.tb_frame.f_code.co_filename)
