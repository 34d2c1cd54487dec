"""What all packages stand on, and the doors to those above: options, counters, handles, memory, devices."""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"
behind: dict[str, str] = {}
"""The module behind each door: what lower packages ask of it is imported when they first do.  `dcarray` fills
the table, so that no package names one above it."""


def open_door(name: str) -> Any:
    """Return the module behind a door."""
    from importlib import import_module

    return import_module(behind[name])
