"""The making of a driver's function from its text, and the names that the text can use.

This is apart from `python_driver`, which writes the text, so that a process that only runs plans need not
import that.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .array_memory import allocate

NDArray = np.ndarray[Any, Any]
_U8 = np.dtype(np.uint8)
_MIN_ITERATIONS = 8  # iterations of a loop from which on native code runs it


def _view(hold: NDArray, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray:
    """Return an array on the bytes of ``hold`` from ``offset`` on."""
    return np.ndarray(shape, dtype, hold, offset)


def _byte(address: int) -> int:
    return ctypes.c_uint8.from_address(address).value


def _repeat(iterations: range, threads: int, *launches: tuple[Any, Callable[[int], bytes]]) -> int:
    """Run launches in each iteration of a loop; see ``Launch.repeat``."""
    many = getattr(launches[0][0], "repeat", None)
    if many is not None and len(iterations) >= _MIN_ITERATIONS:
        raised: int = many(iterations, threads, launches)
        return raised
    flags = 0
    for iteration in iterations:
        for launch, arguments in launches:
            flags |= launch(arguments(iteration), threads)
    return flags


def import_object(path: str) -> Any:
    """Return the object of an import path ``package.module:NAME``."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def function(text: str, things: Mapping[str, Any]) -> Callable[..., int]:
    """Return the function of a driver's text; ``things`` has the objects that the text calls by name, of
    which the names of launches begin with ``_k``."""
    scope: dict[str, Any] = {
        "_allocate": allocate, "_u8": _U8, "_view": _view,
        "_byte": _byte, "_repeat": _repeat, "min": min, "max": max, "range": range, "_text": text,
    }  # fmt: skip
    for name, thing in things.items():
        scope[name] = thing
        if name.startswith("_k"):
            scope["_p" + name[2:]] = thing.pack
    exec(compile(text, "<dcarray driver>", "exec"), scope)  # the text is generated
    run: Callable[..., int] = scope["run"]
    return run
