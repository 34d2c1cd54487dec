"""The order of the passes, and how they are run: again and again until none finds anything to do."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

from dcarray.ir import dims
from dcarray.ir.nodes import Branch, Loop, Region, While
from dcarray.ir.passes.cpu.aligned_copies import aligned
from dcarray.ir.passes.cpu.batched_matvec import BLOCKED
from dcarray.ir.passes.cpu.blocked_recurrences import PANELS
from dcarray.ir.passes.cpu.right_looking import PUSHED
from dcarray.ir.passes.cpu.shared_matvec import PRODUCTS
from dcarray.ir.passes.cpu.shared_partial_sums import BEGUN
from dcarray.ir.passes.cpu.storage_coalescing import REUSE
from dcarray.ir.passes.cpu.strip_mining import stripped
from dcarray.ir.passes.cpu.time_tiling import Limits, bands
from dcarray.ir.passes.cpu.unroll import unrolled
from dcarray.ir.passes.cpu.unroll_and_jam import JAM
from dcarray.ir.passes.cpu.wavefront import WAVEFRONT
from dcarray.ir.passes.portable.collapse import COLLAPSE
from dcarray.ir.passes.portable.contract import CONTRACT
from dcarray.ir.passes.portable.copies import COPIES, PLACES
from dcarray.ir.passes.portable.copy_in import SNAPSHOTS
from dcarray.ir.passes.portable.dead import DEAD
from dcarray.ir.passes.portable.fuse import FUSE
from dcarray.ir.passes.portable.index_set_splitting import SPLIT
from dcarray.ir.passes.portable.locals import LOCALS
from dcarray.ir.passes.portable.loop_distribution import ABSORB
from dcarray.ir.passes.portable.nested import inside
from dcarray.ir.passes.portable.partial_dead_stores import BORDERS
from dcarray.ir.passes.portable.reshapes import RESHAPES
from dcarray.ir.passes.portable.row_fusion import ROWS
from dcarray.ir.passes.portable.scalar_replacement import SCALARS
from dcarray.ir.passes.portable.siblings import SIBLINGS
from dcarray.ir.passes.portable.simplify import SIMPLIFY

from .base import Log, Pass

#: These come first where there are loops: whether a loop is an axis is seen when its body is as short as it
#: gets, and before what would be part of a larger matrix product has become a small one.
EARLY: tuple[Pass, ...] = (
    SIMPLIFY, COLLAPSE, COPIES, DEAD, FUSE,
    inside(lambda region, log: _rounds(region, log, False, EARLY)), ABSORB,
)  # fmt: skip

#: Early passes shrink the region.  Fusion makes contractions, and spares those that it meets.  Siblings
#: come late, since a nest is not taken apart again; snapshots and borders last, when what can be fused is.
PASSES: tuple[Pass, ...] = (
    SIMPLIFY, COLLAPSE, RESHAPES, COPIES, PLACES, DEAD, PRODUCTS, FUSE, CONTRACT, SPLIT, REUSE, SIBLINGS,
    LOCALS, SNAPSHOTS, BORDERS, inside(lambda region, log: _rounds(region, log, False, PASSES)), ABSORB,
)  # fmt: skip


def final(limits: Limits) -> tuple[Pass, ...]:
    """What runs once, when the others find nothing more to do: they do not look inside of what these make."""
    loops = BLOCKED, PANELS, PUSHED, stripped(limits), unrolled(limits)
    return *loops, bands(limits), ROWS, BEGUN, JAM, WAVEFRONT, SCALARS, aligned(limits)


#: What a region is made smaller by before it is known which rank computes what of it: passes that leave one
#: statement for one array.
GLOBAL: tuple[Pass, ...] = (SIMPLIFY, COLLAPSE, COPIES, DEAD, PRODUCTS, FUSE)

#: For a machine of which nothing is known.
FINAL: tuple[Pass, ...] = final(Limits())

#: Every pass shrinks something, so this is never reached; a third party's pass might not.
MAX_ROUNDS = 12


def run(
    region: Region,
    log: Log | None = None,
    debug: bool = False,
    passes: Sequence[Pass] = PASSES,
    final: Sequence[Pass] = FINAL,
    early: Sequence[Pass] = EARLY,
) -> Region:
    """Run the passes on a region until nothing changes, and then the final ones.

    Parameters
    ----------
    region : Region
    log : Log, optional
        Receives what was done and what was refused.
    debug : bool
        Verify the region before the first and after every pass that changed it.
    passes : sequence of Pass
        In the order in which they run.
    final : sequence of Pass
        Run once at the end.
    early : sequence of Pass
        Run before ``passes``, as these are, if there are loops.

    Returns
    -------
    Region
        The same object if nothing changed.
    """
    log = log if log is not None else Log()
    with dims.assuming(region.guards) if region.guards else nullcontext():
        if any(isinstance(stmt, Loop | While | Branch) for stmt in region.body):
            region = _rounds(region, log, debug, early)
        return _once(_rounds(region, log, debug, passes), log, debug, final)


def _once(region: Region, log: Log, debug: bool, passes: Sequence[Pass]) -> Region:
    for one in passes:
        new = one.fn(region, log)
        if debug and new is not region:
            _verify(new, one.name)
        region = new
    return region


def _rounds(region: Region, log: Log, debug: bool, passes: Sequence[Pass]) -> Region:
    if debug:
        _verify(region, "the recorder")
    idle = 0  # how many passes in a row had nothing to do
    for _ in range(MAX_ROUNDS):
        for one in passes:
            log.forget(one.name)
            new = one.fn(region, log)
            if new is region:
                idle += 1
                if idle >= len(passes):
                    return region
                continue
            idle = 0
            region = new
            if debug:
                _verify(region, one.name)
    return region


def _verify(region: Region, author: str) -> None:
    from dcarray.ir.verify import VerifyError, verify

    try:
        verify(region)
    except VerifyError as error:
        error.add_note(f"the region was made by {author}")
        raise
