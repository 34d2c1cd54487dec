"""Work of our own without garbage collections.

What is imported, and the syntax trees of functions, are many objects that live on.  Python then looks for
garbage, and a full collection goes through all that the program has: a second where that are lists of
millions.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["uncollected"]


@contextmanager
def uncollected() -> Iterator[None]:
    """Collect no garbage in a block, unless the program does so by itself."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
