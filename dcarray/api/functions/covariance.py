"""Covariances and correlations as recorded operations, which are fused around the matrix product."""

from __future__ import annotations

from typing import Any

import numpy as np

from .common import is_wrapped
from .registry import Unserved, implements, prefer_numpy


def _covariances(m: Any, rowvar: bool, lost: int) -> Any:
    """Return the covariances of rows or columns: sums divided by the number of observations minus
    ``lost``."""
    if not is_wrapped(m) or m.ndim != 2 or m.dtype.kind not in "iuf" or m.dtype.itemsize > 8:
        raise Unserved
    x = m if rowvar else m.transpose()
    if x.shape[0] < 2 or x.shape[1] <= lost:
        raise Unserved  # NumPy drops axes of one element, and warns of variables without variance
    prefer_numpy([m])
    if x.dtype != np.float64:
        x = x.astype(np.float64)
    x = x - x.mean(axis=1)[:, None]
    products: Any = np.dot(x, x.transpose())
    return np.multiply(products, 1 / (x.shape[1] - lost))


@implements(np.cov)
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    """Return the covariances of variables, each a row of observations or, without ``rowvar``, a column."""
    if y is not None or fweights is not None or aweights is not None or dtype is not None:
        raise Unserved
    if type(rowvar) is not bool or type(bias) is not bool or not (ddof is None or type(ddof) is int):
        raise Unserved
    return _covariances(m, rowvar, int(not bias) if ddof is None else ddof)


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    """Return the correlation coefficients: covariances divided by the standard deviations of both
    variables."""
    if y is not None or type(rowvar) is not bool or dtype is not None:
        raise Unserved
    c = _covariances(x, rowvar, 1)
    deviations = np.sqrt(np.diagonal(c))
    return np.clip(c / deviations[:, None] / deviations[None, :], -1, 1)
