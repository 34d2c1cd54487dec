"""Planning: from a recorded log to a plan, in this process or in any other."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from .forms import Log, pattern, rewrite

if TYPE_CHECKING:
    from collections.abc import Callable

    from .ir.nodes import Region
    from .lowering.plan import Plan


class Request(NamedTuple):
    """What is to be planned, as plain values.

    Attributes
    ----------
    log, live, kinds
        As for `dcarray.ir.build`.
    old, new : tuple of int
        The integers of two logs of the form; ``new`` are those of ``log``.  Those that differ become symbols.
    fastmath : bool
    threads : int
    cache_dir : str or None
        As the options of these names.
    """

    log: Log
    live: tuple[int, ...]
    kinds: str
    old: tuple[int, ...]
    new: tuple[int, ...]
    fastmath: bool
    threads: int
    cache_dir: str | None


class Planned(NamedTuple):
    """A plan, the relations that it relies on, and how many of its kernels were compiled, found in memory,
    and found on the disk."""

    plan: Plan
    relations: list[Any]
    compiled: int
    hits: int
    disk_hits: int


def make(request: Request, fallback: Callable[[str, Any], None], debug: bool = False) -> Planned:
    """Plan a log: passes, schedules, code.

    Parameters
    ----------
    request : Request
    fallback : callable
        Called with the reason and the ``loc`` of each statement that is left to the interpreter.
    debug : bool
        Verify the region after every pass.
    """
    from .ir import dims, effects
    from .ir.passes import pipeline
    from .lowering import cache, caches
    from .lowering.plan import compile_region

    region, hints = _region(request)
    guards = dims.Guards(hints)
    code = cache.of(request.cache_dir)
    before = code.stats()
    with guards if hints else nullcontext():
        final = pipeline.run(region, debug=debug, final=pipeline.final(caches.limits(request.threads)))
        plan = compile_region(final, "cpu", request.cache_dir, fallback=fallback, fastmath=request.fastmath)
        plan = replace(plan, lost=effects.lost(region))
    after = code.stats()
    found = [after[name] - before[name] for name in ("compiled", "hits", "disk_hits")]
    return Planned(plan, guards.recorded, *found)


def _region(request: Request) -> tuple[Region, dict[str, int]]:
    """The region of a log, and the symbols' values in it."""
    from .ir.build import build

    if request.old == request.new:
        return build(request.log, request.live, request.kinds), {}
    from .ir import dims
    from .ir.nodes import Symbol

    how = pattern(request.old, request.new)
    sizes = {position: dims.symbol(f"n{k}", 2) for k, position in enumerate(how.leaders)}
    each = iter([value if at < 0 else sizes[at] + value for at, value in how.terms])
    general = rewrite(request.log, lambda n: dims.simplify(next(each)))
    hints = {f"n{k}": request.new[position] for k, position in enumerate(how.leaders)}
    symbols = tuple(Symbol(name, 2, hint) for name, hint in hints.items())
    return replace(build(general, request.live, request.kinds), symbols=symbols), hints
