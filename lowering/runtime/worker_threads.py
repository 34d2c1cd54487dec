"""The threads that run kernels: they run nothing of the program's."""

from __future__ import annotations

import threading

__all__ = ["WORKER", "has_other_threads"]

WORKER = "dcarray-worker"
"""How their names begin."""


def has_other_threads() -> bool:
    """Whether the program has threads besides this one."""
    return threading.active_count() > 1 and any(
        one is not threading.current_thread() and not one.name.startswith(WORKER)
        for one in threading.enumerate()
    )
