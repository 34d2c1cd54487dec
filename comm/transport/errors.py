"""Exceptions and warnings of communication."""

from __future__ import annotations

from typing import Any

__all__ = [
    "CommError", "DeadlockError", "GridError", "Killed", "LayoutError", "LostRankError", "MismatchError",
    "PerformanceWarning", "PlanError", "RankError", "TileError",
]  # fmt: skip


class GridError(ValueError):
    """A process grid that does not exist or does not fit the number of ranks."""


class LayoutError(ValueError):
    """A layout that does not exist, or an array that does not have it."""


class CommError(RuntimeError):
    """Communication that failed."""


class MismatchError(CommError):
    """Two ends of a message differ, or ranks take part in different operations."""


class DeadlockError(CommError):
    """Every rank that has not ended waits for another one."""


class PlanError(CommError):
    """A communication plan whose sends and receives do not fit together."""


class RankError(CommError):
    """Another rank has failed; the text carries that rank's traceback."""


class LostRankError(RankError):
    """Another rank is lost, and the others can go on without it."""


class TileError(CommError):
    """A tile of a parallel loop has failed; `tile` is the argument that the function was called with."""

    def __init__(self, text: str, tile: Any) -> None:
        super().__init__(text)
        self.tile = tile


class Killed(BaseException):
    """Raised on a simulated rank, it ends that rank alone, like the death of a process; for tests."""


class PerformanceWarning(UserWarning):
    """An operation works but takes longer than necessary."""
