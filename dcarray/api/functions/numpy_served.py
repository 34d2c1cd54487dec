"""The functions whose intended implementation is NumPy's own routine.

The report lists their calls apart, and the option ``strict`` allows them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

_NAMES = """
sort argsort partition argpartition lexsort sort_complex searchsorted digitize bincount histogram
histogram2d histogramdd histogram_bin_edges median percentile quantile nanmedian nanpercentile nanquantile
argmax argmin nanargmax nanargmin unique unique_all unique_counts unique_inverse unique_values intersect1d
setdiff1d setxor1d union1d isin cumsum cumprod nancumsum nancumprod cumulative_sum cumulative_prod nonzero
flatnonzero argwhere where extract compress choose take take_along_axis put put_along_axis place putmask
copyto fill_diagonal delete insert append resize repeat unravel_index ravel_multi_index tril_indices_from
triu_indices_from diag_indices_from ix_ trim_zeros block piecewise apply_along_axis apply_over_axes dot
inner vdot tensordot einsum einsum_path kron matmul corrcoef cov convolve correlate vander polyfit roots
poly polyval polyadd polysub polymul polydiv polyder polyint interp unwrap i0 shares_memory may_share_memory
min_scalar_type real_if_close iscomplex isreal array_equiv result_type can_cast common_type array_repr
array_str array2string save savez savez_compressed savetxt packbits unpackbits is_busday busday_offset
busday_count datetime_as_string ediff1d arange linspace logspace geomspace eye identity tri frombuffer
fromfile fromfunction fromiter fromstring genfromtxt loadtxt require from_dlpack asarray asanyarray array
empty zeros ones full ascontiguousarray asfortranarray meshgrid indices
"""
_MODULES = """
numpy.linalg numpy.fft numpy.random numpy.lib.recfunctions numpy.lib.scimath numpy.lib.stride_tricks
"""


@lru_cache(maxsize=1024)
def served_by_numpy(function: Callable[..., Any]) -> bool:
    """Whether NumPy's routine is the intended implementation of a function."""
    module = getattr(function, "__module__", None)
    name = getattr(function, "__name__", None) if module == "numpy" else None
    return module in _MODULES.split() or name in _NAMES.split()
