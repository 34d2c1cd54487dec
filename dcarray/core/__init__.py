"""The base of all packages: options, counters, handles, memory, devices, and the doors to packages above.

A *door* is a name by which a lower package gets a module of a higher one, imported when it is first used.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"
behind: dict[str, str] = {}
"""The module behind each door: what lower packages ask of it is imported when they first do.  `dcarray` fills
the table, so that no package names one above it."""


def open_door(name: str) -> Any:
    """Return the module of a higher package that a door's name stands for."""
    import sys

    module = sys.modules.get(behind[name])
    if module is not None and not getattr(module.__spec__, "_initializing", False):
        return module
    from importlib import import_module

    from .uncollected import uncollected

    with uncollected():
        return import_module(behind[name])
