"""The functions of this package that lower packages call; see `dcarray.core.backend.Backend`."""

from __future__ import annotations

from dcarray.distributed.functions.files import load, tofile
from dcarray.distributed.functions.numpy_source import call_numpy_source, index_trick

from .consistency import combine_flags
from .dispatch import is_distributed, try_call, try_call_replicated
from .executor import default_layout, run
from .jobs import shared_seed
from .layouts import elements_of, gather, layout_of, local_of
from .linspace import distributed_range
from .random_arrays import distributed_random
from .reshape import split_at_reshape

__all__ = [
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
