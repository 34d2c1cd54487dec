"""Which loops NumPy has for some dtypes."""

import numpy as np

from dcarray.ir.ops import loop_dtype


def test_longlong_has_the_loops_of_int64() -> None:
    wide, usual = np.dtype("q"), np.dtype("l")
    loop_dtype.cache_clear()
    assert loop_dtype("logical_and", (wide, usual)) == np.bool_  # asked first, it answers for both
    assert loop_dtype("logical_and", (usual, usual)) == np.bool_
