"""The functions of this package that lower packages call; see `dcarray.core.backend.Backend`."""

from __future__ import annotations

from dcarray.distributed.functions import (  # noqa: F401 - an import registers implementations
    apply_along_axis,
    binning,
    convolution,
    cumulative,
    decompositions,
    fourier_transforms,
    indexed_reads,
    indexed_writes,
    linear_algebra,
    per_element,
    quantiles,
    rearranging,
    sets,
    sort_and_partition,
    ufuncs,
)
from dcarray.distributed.functions.files import load, tofile
from dcarray.distributed.functions.numpy_source import call_numpy_source, index_trick

from .array_distribution import elements_of, gather, layout_of, local_of
from .consistency import combine_flags
from .function_dispatch import is_distributed, try_call, try_call_replicated
from .jobs import shared_seed
from .layout_choice import default_layout
from .random_arrays import distributed_random
from .random_blocks import block
from .ranges import distributed_range
from .region_run import RegionOnRanks
from .reshape import split_at_reshape
from .spmd_executor import run

__all__ = [
    "RegionOnRanks",
    "block",
    "call_numpy_source",
    "combine_flags",
    "default_layout",
    "distributed_random",
    "distributed_range",
    "elements_of",
    "gather",
    "index_trick",
    "is_distributed",
    "layout_of",
    "load",
    "local_of",
    "run",
    "shared_seed",
    "split_at_reshape",
    "tofile",
    "try_call",
    "try_call_replicated",
]  # fmt: skip
