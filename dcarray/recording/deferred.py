"""Deferred op sequences: operations that are pending without having been recorded.

See `dcarray.execution.op_sequences`; without the C extension there are none.
"""

from __future__ import annotations

from typing import Any

from dcarray.core.native import BUILT

__all__ = ["flush_deferred", "note_recorder"]


def flush_deferred() -> None:
    """Run all deferred op sequences of this thread."""


def note_recorder(lock: Any) -> None:
    """Note that this thread records or runs recordings, for which it holds this lock.

    While another thread does, no operator is deferred: it would be pending on memory that is being looked at.
    """


if BUILT:
    from dcarray._native.extension import note_recorder
    from dcarray._native.extension import run_pending as flush_deferred
