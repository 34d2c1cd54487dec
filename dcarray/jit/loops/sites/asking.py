"""The functions by which the program's code asks sites, one for each number of values."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import cache
from typing import Any

__all__ = ["asking_for", "has_numpy"]


def has_numpy() -> bool:
    """Whether there is NumPy, which plans need.  It is imported here, where neither the stack is deep nor the
    program could see an error."""
    try:
        import numpy  # noqa: F401
    except Exception:
        return False
    return True


@cache
def asking_for(step: str, count: int) -> Callable[..., tuple[Any, ...]]:
    """Return a method of sites that asks for a step with so many values: ``enter``, ``foresee``, or
    ``resume``, which has the loop variable and the range first.  It takes the values one by one: to make a
    tuple of them could start a collection, and finalizers could change the variables that have been read."""
    first, values = "start, items, " * (step == "resume"), "".join([f"v{k}, " for k in range(count)])
    text = f"""def asking(self, {first}{values}):
    collects = isenabled()
    disable()
    return self._guarded({step!r}, ({first}({values}),), collects)"""
    names: dict[str, Any] = {"isenabled": gc.isenabled, "disable": gc.disable}
    exec(compile(text, __file__, "exec"), names)
    function: Callable[..., tuple[Any, ...]] = names["asking"]
    return function
