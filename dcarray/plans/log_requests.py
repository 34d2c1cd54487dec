"""Requests for the plans of recordings."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from dcarray.recording.log_format import Log, rewrite

from .requests import PlanInput
from .templates import pattern

__all__ = ["LogRequest"]


class LogRequest(NamedTuple):
    """The request for the plan of one recording, as it is sent to the planning process.

    Attributes
    ----------
    log, live, kinds
        The log, its live slots and the kinds of these, as for `dcarray.ir.build.build`.
    old, new : tuple of int
        The integers of two logs of one template; ``new`` are those of ``log``.  Those that differ become
        symbols.
    saved : tuple of int
        The slots that another run needs unchanged: copies of their overwritten elements are kept.
    fastmath : bool
    threads : int
    cache_dir : str or None
    target : str
        As the options of these names.
    """

    log: Log
    live: tuple[int, ...]
    kinds: str
    old: tuple[int, ...]
    new: tuple[int, ...]
    saved: tuple[int, ...]
    fastmath: bool
    threads: int
    cache_dir: str | None
    target: str = "cpu"

    def plan_input(self) -> PlanInput:
        """Return the region of the log, with symbols for the integers that differ."""
        from dcarray.ir.build import build

        saved = frozenset(f"a{slot}" for slot in self.saved)
        if self.old == self.new:
            return PlanInput(build(self.log, self.live, self.kinds), {}, saved, fresh=True)
        from dcarray.ir import dims
        from dcarray.ir.nodes import Symbol

        how = pattern(self.old, self.new)
        sizes = {position: dims.symbol(f"n{k}", 2) for k, position in enumerate(how.leaders)}
        each = iter([value if at < 0 else sizes[at] + value for at, value in how.terms])
        general = rewrite(self.log, lambda n: dims.simplify(next(each)))
        hints = {f"n{k}": self.new[position] for k, position in enumerate(how.leaders)}
        symbols = tuple(Symbol(name, 2, hint) for name, hint in hints.items())
        region = replace(build(general, self.live, self.kinds), symbols=symbols)
        return PlanInput(region, hints, saved, fresh=True)

    def text(self) -> str:
        """Return all that the plan depends on as text."""
        return repr(self._replace(cache_dir=None))
