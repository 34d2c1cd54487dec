"""What goes wrong between ranks."""

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
    """What one rank sends is not what the other receives, or ranks take part in different things."""


class DeadlockError(CommError):
    """Every rank that has not ended waits for another one."""


class PlanError(CommError):
    """A communication plan whose sends and receives do not fit together."""


class RankError(CommError):
    """Another rank failed; the text carries that rank's traceback."""


class LostRankError(RankError):
    """Another rank is gone, and the others can go on without it."""


class TileError(CommError):
    """A tile of a parallel loop failed; `tile` is what the function was called with."""

    def __init__(self, text: str, tile: Any) -> None:
        super().__init__(text)
        self.tile = tile


class Killed(BaseException):
    """Raised on a simulated rank, it ends that rank alone, as if its process were gone; for tests."""


class PerformanceWarning(UserWarning):
    """Something works and takes longer than it need."""
