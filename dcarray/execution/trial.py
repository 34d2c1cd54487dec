"""Trials: whether NumPy does a recording sooner than its plan, by a clock.

What `dcarray.tiering.cost_model` says beforehand depends on the processor.  So a recording that comes again
and again runs some times by its plan and some times op by op, in turn, until it is clear that the plan is
sooner; the best times of both are compared.  The results are the same bits either way, or there is no trial.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, TypeVar

from dcarray.tiering.cost_model import Estimate
from dcarray.tiering.state import OP_SEQUENCE

__all__ = ["Trial"]

T = TypeVar("T")

_RUNS = 8  # of each
_FEW = 2  # of each, after which a clear difference is enough
_CLEAR = 1.5
_LONGEST = 5e7  # nanoseconds of NumPy's: to try what takes longer would be felt
# Seconds for a statement: recording one that makes an array, or writes into one; and what the interpreter
# takes more than NumPy's call.
_RECORD, _RECORD_WRITE, _INTERPRET = 3.5e-6, 8e-6, 3e-6


class Trial:
    """The runs of one log by its plan, timed against those op by op.

    Parameters
    ----------
    cost : Estimate
        The estimate of the log.
    log : sequence of tuple
        Its entries.

    Attributes
    ----------
    is_over : bool
        Whether all is known, or there is nothing to know.
    """

    __slots__ = ("_best", "_more", "_runs", "is_over")

    def __init__(self, cost: Estimate, log: Sequence[tuple[Any, ...]]) -> None:
        declared = [entry[0] for entry in log if entry[0] in ("old", "new")]
        statements = [entry for entry in log if entry[0] not in ("old", "new")]
        writes = sum(entry[0] == "map" and declared[entry[4]] == "old" for entry in statements)
        # seconds that are saved in all where NumPy does it at once
        self._more: float = (
            _RECORD * (len(statements) - writes) + _RECORD_WRITE * writes + _INTERPRET * len(statements)
        )
        self._best = [math.inf, math.inf]  # seconds: by the plan, and by NumPy
        self._runs = -OP_SEQUENCE.observations  # after which it may be an op sequence, and not come again
        self.is_over = not cost.elements or cost.rounded or cost.numpy > _LONGEST

    def is_numpys_turn(self) -> bool:
        """Whether the next run is op by op."""
        self._runs += 1
        return self._runs > 0 and self._runs % 2 == 1

    def timed(self, numpy: bool, run: Callable[[], T]) -> T:
        """Run it in one of the two ways."""
        start = perf_counter()
        found = run()
        if self._runs > 0:
            self._best[numpy] = min(self._best[numpy], perf_counter() - start)
        plan, one_by_one = self._best
        clear = self._runs >= 2 * _FEW and plan * _CLEAR < one_by_one - self._more
        self.is_over = clear or self._runs >= 2 * _RUNS
        return found

    def numpy_is_sooner(self) -> bool:
        """Whether NumPy was sooner, when it is over."""
        plan, one_by_one = self._best
        return one_by_one - self._more < plan
