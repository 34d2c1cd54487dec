"""The Fourier transform of a distributed vector: transforms of a matrix's columns and rows (four-step FFT).

See Bailey, "FFTs in external or hierarchical memory" (1990).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.exchange.window_copies import sliced
from dcarray.comm.layout.layouts import Layout

from .along_axis import apply_along_axis
from .joining import concatenate, pad_with_zeros

__all__ = ["transform_line"]


def transform_line(
    x: DistArray, kind: str, n: int | None = None, norm: str | None = None
) -> DistArray | None:
    """Return the Fourier transform of a vector that is cut over ranks.

    Parameters
    ----------
    x : DistArray
        The vector.
    kind : {"fft", "ifft", "rfft", "irfft"}
        The function of ``numpy.fft``.
    n, norm
        NumPy's parameters.

    Returns
    -------
    DistArray or None
        The transform; None if the length is a prime number, or if NumPy rejects the arguments.
    """
    extent = x.shape[0]
    length = (2 * (extent - 1) if kind == "irfft" else extent) if n is None else n
    factor = next((d for d in range(int(max(length, 0) ** 0.5), 1, -1) if length % d == 0), 0)
    if (
        norm not in (None, "backward", "ortho", "forward")
        or not factor
        or (kind == "rfft" and x.dtype.kind == "c")
    ):
        return None
    dtype = np.fft.fft(np.zeros(1, x.dtype)).dtype
    x = _resize(
        DistArray(x.comm, x.layout.without_halo(), x.local.astype(dtype)),
        length // 2 + 1 if kind == "irfft" else length,
    )
    if kind == "irfft":
        # NumPy leaves the imaginary parts alone that must be zero
        middle = sliced(x, [slice(1, (length + 1) // 2)])
        mirrored = sliced(middle, [slice(None, None, -1)])
        mirrored = DistArray(x.comm, mirrored.layout, mirrored.block.conj())
        x = concatenate([x, mirrored], 0)
    inverse = kind[0] == "i"
    line = _transform_as_matrix(x, factor, inverse)
    scale = {"ortho": length**-0.5, "forward": 1.0 if inverse else 1 / length}.get(
        norm or "backward", 1 / length if inverse else 1.0
    )
    if scale != 1:
        np.multiply(line.block, dtype.type(scale), out=line.block)
    if kind == "rfft":
        return sliced(line, [slice(0, length // 2 + 1)])
    return DistArray(line.comm, line.layout, line.block.real.copy()) if kind == "irfft" else line


def _resize(x: DistArray, n: int) -> DistArray:
    """Return the line cut or padded with zeros to `n` elements."""
    return pad_with_zeros(x, [(0, n - x.shape[0])]) if n > x.shape[0] else sliced(x, [slice(0, n)])


def _transform_as_matrix(x: DistArray, rows: int, inverse: bool) -> DistArray:
    """Return the unscaled transform of a vector by transforms of a matrix with `rows` rows."""
    n = x.shape[0]
    function, sign = (np.fft.ifft, 2j) if inverse else (np.fft.fft, -2j)
    table = apply_along_axis(
        x.reshape((rows, n // rows)), 0, lambda v: function(v, axis=0, norm=_UNSCALED[inverse])
    )
    first, second = (
        np.arange(part.extent)[_interval(part, place)]
        for part, place in zip(table.layout.parts, table.layout.part_indices(x.comm.rank), strict=True)
    )
    twiddles = np.exp(sign * np.pi / n * (first[:, None] * second % n)).astype(x.dtype)
    table = DistArray(x.comm, table.layout.without_halo(), table.local * twiddles)
    table = apply_along_axis(table, 1, lambda v: function(v, axis=1, norm=_UNSCALED[inverse]))
    flipped = Layout(table.shape[::-1], table.layout.grid, table.layout.without_halo().axes[::-1])
    return DistArray(x.comm, flipped, np.ascontiguousarray(table.local.T)).ravel()


_UNSCALED: dict[bool, Any] = {False: "backward", True: "forward"}  # the norms that do not scale


def _interval(part: Any, place: int) -> slice:
    return slice(part.low(place), part.high(place))
