"""The passes for a CPU, and their order."""

from dcarray.ir.passes.pipeline import Pipeline
from dcarray.ir.passes.portable.collapse import COLLAPSE
from dcarray.ir.passes.portable.copies import COPIES, PLACES
from dcarray.ir.passes.portable.dead import DEAD
from dcarray.ir.passes.portable.fuse import FUSE
from dcarray.ir.passes.portable.pipeline import PORTABLE
from dcarray.ir.passes.portable.simplify import SIMPLIFY

from .aligned_copies import aligned
from .batched_matvec import BLOCKED
from .blocked_recurrences import PANELS
from .right_looking import PUSHED
from .shared_matvec import PRODUCTS
from .shared_partial_sums import BEGUN
from .storage_coalescing import REUSE
from .strip_mining import stripped
from .time_tiling import CacheLimits, bands
from .unroll import unrolled
from .unroll_and_jam import JAM
from .wavefront import WAVEFRONT


def cpu_pipeline(limits: CacheLimits) -> Pipeline:
    """Return the pipeline for a machine with these caches and threads."""
    made = PORTABLE.with_pass(PLACES, after="copies").with_pass(PRODUCTS, after="dead")
    made = made.with_pass(REUSE, after="split")
    for one in (BLOCKED, PANELS, PUSHED, stripped(limits), unrolled(limits), bands(limits)):
        made = made.with_pass(one, before="rows")
    for one in (BEGUN, JAM, WAVEFRONT):
        made = made.with_pass(one, before="scalars")
    return made.with_pass(aligned(limits), after="scalars")


#: For a machine of which nothing is known.
CPU = cpu_pipeline(CacheLimits())

#: What makes a region smaller before it is known which rank computes what of it: passes that leave one
#: statement for one array.
DISTRIBUTED = Pipeline(PORTABLE.early, (SIMPLIFY, COLLAPSE, COPIES, DEAD, PRODUCTS, FUSE))
