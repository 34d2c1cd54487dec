"""Absolute values of complex numbers, compared: what NumPy warns of and raises."""

import warnings
from typing import Any

import numpy as np
import pytest

import dcarray as dc

_RNG = np.random.default_rng(0)
_Z = _RNG.normal(size=501) + 1j * _RNG.normal(size=501)
_SOME = np.arange(501) % 7 == 0
with np.errstate(all="ignore"):
    NUMBERS = {
        "usual": _Z, "huge": _Z * 1e308, "tiny": _Z * 1e-320,
        "nan": np.where(_SOME, np.nan, _Z), "inf": np.where(_SOME, np.inf, _Z),
    }  # fmt: skip


def outcome(z: Any, h: float, how: Any) -> tuple[Any, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with np.errstate(all=how):
                result = np.asarray(abs(z) < h).tolist()
        except FloatingPointError as error:
            result = str(error)
    return result, [str(w.message) for w in caught]


@pytest.mark.parametrize("how", ["warn", "raise"])
@pytest.mark.parametrize("kind", NUMBERS)
def test_warnings_and_errors_are_numpys(kind: str, how: str) -> None:
    z = NUMBERS[kind]
    with dc.options(jit="eager", eager_below=0, threads=1):
        for h in (0.0, 1e-320, 1.0, 1e308, np.nan):
            assert outcome(dc.asarray(z), h, how) == outcome(z, h, how)
