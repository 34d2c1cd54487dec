"""A context for this package's own work without garbage collection.

Imports and syntax trees make many objects that live long, which start collections.  A full one visits all
objects of the program: for lists of millions of objects that takes a second.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["uncollected"]


@contextmanager
def uncollected() -> Iterator[None]:
    """A context in which no garbage is collected, unless the program starts a collection itself."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
