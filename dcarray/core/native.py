"""Whether the C module may be used, and the error message if it exists but cannot be loaded."""

from __future__ import annotations

import sys

from .when_imported import when_imported

__all__ = ["BUILT", "LOCKED", "NOT_LOADED", "REVISION"]

NOT_LOADED = ""
"""What Python says of a C module that is there, but cannot be loaded."""

try:
    from dcarray._native import extension
    from dcarray._native.extension import REVISION
except ImportError as error:
    REVISION = 0  # there is none
    NOT_LOADED = "" if isinstance(error, ModuleNotFoundError) else str(error)

LOCKED = bool(getattr(sys, "_is_gil_enabled", lambda: True)())
"""Whether threads take turns by the interpreter's lock.  A free-threaded Python takes it when the C module is
loaded, unless it was told not to."""

# Raised, here and in `extension.c`, with every change of the interface between the two, so that a module that
# was built before an update of the checkout is not used.
BUILT = REVISION == 79 and LOCKED
"""Whether `dcarray._native.extension` may be used."""


def _connect() -> None:
    """Have the C module know NumPy's arrays, and compiled code its threads and the word that stops a run."""
    from dcarray.lowering.runtime import stopping, threads

    extension.know_arrays()
    extension.set_stop(stopping.symbols["dc_stop"])
    threads.connect(extension)


if BUILT:
    when_imported("numpy", _connect)
