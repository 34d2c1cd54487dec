"""What is known of a loop that is being traced, and of the names that pass from one turn to the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dcarray.core.errors import Untraceable
from dcarray.ir.nodes import Stmt, Window

from .bindings import Names
from .entry_values import DType
from .expressions import Frame
from .values import Value


class Permuted(Exception):
    """The names of arrays are back only after a number of turns."""

    def __init__(self, period: int, reason: Untraceable) -> None:
        self.period, self.reason = period, reason


class Guess:
    """Of the value of a name where a turn begins, when it is no scalar."""


KEPT = Guess()  # what it was before the loop
COPIED = Guess()  # a copy of what the last turn left
TURNED = Guess()  # that, where NumPy's may lie in another order than the copy


@dataclass
class Home:
    """Where the value of a name is when a turn begins."""

    window: Window
    dtype: DType
    kind: Any  # as of `kind_of`, or a guess
    natural: bool = False  # an int that is never below 0


@dataclass
class Turn:
    """A body that has been traced."""

    block: list[Stmt]
    names: dict[str, Value]
    homes: dict[str, Home]
    outer: frozenset[str]  # arrays that are older


@dataclass
class Carrying:
    """A loop that is being traced: what its body does, and the names that pass from turn to turn."""

    body: Callable[[], None]
    frame: Frame
    before: dict[str, Value]
    carried: list[str]
    later: Names  # read in the next turn, or after the loop
    after: Names  # read after the loop
    runs: bool | None
    count: int  # of turns, or 0 where it is not known
    natural: frozenset[str] = frozenset()  # ints that begin at 0 or above, and may stay there
