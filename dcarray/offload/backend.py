"""The functions of this package that lower packages call, by `dcarray.core.device_backend`."""

from __future__ import annotations

from .buffer import settle
from .executor import run
from .placing import converted, created, moved, place

__all__ = ["converted", "created", "moved", "place", "run", "settle"]
