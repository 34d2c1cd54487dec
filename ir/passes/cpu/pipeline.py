"""The passes for a CPU, and their order."""

from dcarray.ir.passes.pass_manager import Pipeline
from dcarray.ir.passes.portable.collapse import COLLAPSE
from dcarray.ir.passes.portable.copies import COPIES
from dcarray.ir.passes.portable.dead import DEAD
from dcarray.ir.passes.portable.fuse import FUSE
from dcarray.ir.passes.portable.pipeline import PORTABLE
from dcarray.ir.passes.portable.simplify import SIMPLIFY

from .in_place_results import IN_PLACE_RESULTS
from .shared_matvec import SHARED_MATVEC
from .shared_partial_sums import SHARED_PARTIAL_SUMS
from .storage_coalescing import STORAGE_COALESCING
from .strip_mining import strip_mining
from .time_tiling import CacheLimits, time_tiling
from .triangular_jam import TRIANGULAR_JAM
from .unroll import unroll
from .wavefront import WAVEFRONT


def cpu_pipeline(limits: CacheLimits) -> Pipeline:
    """Return the pipeline for a machine with these caches and threads."""
    pipeline = PORTABLE.with_pass(IN_PLACE_RESULTS, after="copies").with_pass(SHARED_MATVEC, after="dead")
    pipeline = pipeline.with_pass(STORAGE_COALESCING, after="index_set_splitting")
    for one in (strip_mining(limits), unroll(limits), time_tiling(limits)):
        pipeline = pipeline.with_pass(one, before="row_fusion")
    for one in (SHARED_PARTIAL_SUMS, TRIANGULAR_JAM, WAVEFRONT):
        pipeline = pipeline.with_pass(one, before="scalar_replacement")
    return pipeline


#: The pipeline for an unknown machine.
CPU = cpu_pipeline(CacheLimits())

#: Passes that run before statements are placed on ranks: they keep one statement for one array.
DISTRIBUTED = Pipeline(PORTABLE.early, (SIMPLIFY, COLLAPSE, COPIES, DEAD, SHARED_MATVEC, FUSE))
