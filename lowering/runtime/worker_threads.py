"""A test for threads of the program, as opposed to worker threads, which only run kernels."""

from __future__ import annotations

import threading

__all__ = ["WORKER", "has_other_threads"]

WORKER = "dcarray-worker"
"""How their names begin."""


def has_other_threads() -> bool:
    """Whether the program has threads besides the current one and the worker threads."""
    return threading.active_count() > 1 and any(
        one is not threading.current_thread() and not one.name.startswith(WORKER)
        for one in threading.enumerate()
    )
