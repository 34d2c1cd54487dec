"""Exceptions and warnings of communication."""

from __future__ import annotations

from typing import Any

__all__ = [
    "CommError", "DeadlockError", "GridError", "Killed", "LayoutError", "LostRankError", "MismatchError",
    "PerformanceWarning", "PlanError", "RankError", "TileError",
]  # fmt: skip


class GridError(ValueError):
    """Raised for a process grid that is invalid or does not fit the number of ranks."""


class LayoutError(ValueError):
    """Raised for an invalid layout, or for an array whose shape is not that of its layout."""


class CommError(RuntimeError):
    """Raised when communication fails."""


class MismatchError(CommError):
    """Raised when the two ends of a message differ, or ranks call different collective operations."""


class DeadlockError(CommError):
    """Raised when every rank that has not ended waits for another one."""


class PlanError(CommError):
    """Raised for a region that cannot be planned, or a plan whose sends and receives do not match."""


class RankError(CommError):
    """Raised when another rank has failed; the message has that rank's traceback."""


class LostRankError(RankError):
    """Raised when another rank has died and the remaining ones can go on."""


class TileError(CommError):
    """Raised when a tile of a parallel loop has failed; `tile` is the argument of the failed call."""

    def __init__(self, text: str, tile: Any) -> None:
        super().__init__(text)
        self.tile = tile


class Killed(BaseException):
    """Raised by tests on a simulated rank to end that rank alone, as if its process had died."""


class PerformanceWarning(UserWarning):
    """A warning about an operation that works but takes longer than necessary."""
