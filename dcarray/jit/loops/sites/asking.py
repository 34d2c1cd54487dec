"""The functions by which the program's code asks sites, one for each number of values."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from dcarray.core.interrupts import hold
from dcarray.core.when_imported import when_imported

__all__ = ["asking_for", "has_numpy", "note_source"]


_own_imports: list[str] = []  # a word of each module of the program that may import NumPy itself


def note_source(source: str | bytes) -> None:
    """Note the source of a module.  If it mentions NumPy, or the environment, which NumPy reads as it begins,
    the program is to import NumPy before sites do."""
    text = source if isinstance(source, str) else source.decode("latin-1")
    _own_imports.extend([word for word in ("numpy", "environ", "putenv") if word in text][:1])


def has_numpy(later: Callable[[], object]) -> bool:
    """Whether there is NumPy, which plans need.  It is imported here, where neither the stack is deep nor the
    program could see an error; or, if the program is to do that, ``later`` is called then."""
    if _own_imports and "numpy" not in sys.modules:
        when_imported("numpy", later)
        return False
    try:
        import numpy  # noqa: F401
    except Exception:
        return False
    return True


@cache
def asking_for(step: str, count: int) -> Callable[..., tuple[Any, ...]]:
    """Return a method of sites that asks for a step, ``enter`` or ``resume``, with so many values.  It takes
    these one by one: to make a tuple of them could start a collection, and finalizers could change the
    variables that have been read."""
    first, values = "start, items, " * (step == "resume"), "".join([f"v{k}, " for k in range(count)])
    text = f"""def asking(self, {first}{values}):
    held = hold(True)
    try:
        return self._guarded({step!r}, ({first}({values}),))
    finally:
        del held"""
    names: dict[str, Any] = {"hold": hold}
    exec(compile(text, __file__, "exec"), names)
    function: Callable[..., tuple[Any, ...]] = names["asking"]
    return function
