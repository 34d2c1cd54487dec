"""The kinds of lines that random programs consist of, and the frequency of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import lines_memory as memory
from . import lines_values as values

__all__ = ["LONG", "TABLE"]

TABLE: tuple[tuple[Callable[[Any], bool], int], ...] = (
    (values.binary, 22),
    (values.rough_binary, 3),
    (values.unary, 9),
    (values.several, 2),
    (values.output, 8),
    (values.update, 12),
    (memory.view, 16),
    (memory.turned, 7),
    (memory.reshaped, 4),
    (memory.fancy, 7),
    (memory.assign, 14),
    (memory.put, 6),
    (values.fold, 12),
    (values.method, 6),
    (values.join, 8),
    (values.choose, 7),
    (values.product, 5),
    (memory.cast, 6),
    (memory.owned, 5),
    (memory.target, 4),
    (memory.exported, 3),
    (memory.through, 4),
    (values.states, 4),
    (memory.threads, 2),
    (memory.loop, 6),
    (memory.windows, 6),
    (memory.values, 6),
    (memory.forget, 4),
    (memory.rebound, 4),
)

# Lines that nothing has to be known for: many of them in a row are one region.
LONG: tuple[tuple[Callable[[Any], bool], int], ...] = (
    (values.binary, 24),
    (values.unary, 8),
    (values.output, 8),
    (values.update, 14),
    (memory.view, 18),
    (memory.turned, 5),
    (memory.assign, 16),
    (values.plain_fold, 8),
    (values.join, 2),
    (memory.plain_cast, 3),
    (memory.owned, 1),
    (memory.loop, 2),
    (memory.windows, 4),
    (memory.forget, 5),
    (memory.rebound, 8),
)
