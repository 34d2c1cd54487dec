"""The functions of this package that lower packages call, by `dcarray.core.device_backend`."""

from __future__ import annotations

from .buffer import settle
from .executor import planning_options, run
from .interchange import from_dlpack
from .placing import converted, created, moved, place

__all__ = ["converted", "created", "from_dlpack", "moved", "place", "planning_options", "run", "settle"]
