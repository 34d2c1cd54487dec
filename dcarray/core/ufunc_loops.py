"""The loop of a ufunc that a call uses, by NumPy's own rules, cached by the dtypes of the operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.ir.ops import OPS

from .store import COMPILED

# A loop as in ``ufunc.types`` ("dd->d"), or None if a dtype of it does not compile.
Loop = str | None

# Ufuncs that NumPy gives two names, and ``ir.ops`` one.
ALIASES = {"degrees": "rad2deg", "radians": "deg2rad"}

UFUNCS: dict[str, np.ufunc] = {
    name: getattr(np, name) for name in (*OPS, *ALIASES) if isinstance(getattr(np, name, None), np.ufunc)
}

# Earlier versions' ``**`` was `reciprocal` for -1.0 as for -1, `positive` for 1 and `square` for 2.0, which
# differs in zeros of complex numbers.
_ZERO, _ONE = np.array([complex(-0.0, 0.0)]), np.ones(1, complex)
_AS_BEFORE = {
    -1: bool(np.signbit((_ONE**-1.0)[0].imag)),
    1: bool(np.signbit((_ZERO**1.0)[0].real)),
    2: bool(np.signbit((_ZERO**2.0)[0].imag)),
}

_WEAK: dict[type, Any] = {bool: np.dtype(np.bool_), int: int, float: float, complex: complex}
_loops: dict[tuple[Any, ...], Loop] = {}


def resolve(name: str, kinds: tuple[Any, ...]) -> Loop:
    """Return the loop for operands of these kinds: a dtype character, or the type of a weak Python scalar.

    Raises
    ------
    numpy.exceptions.UFuncTypeError
        As the ufunc would.
    """
    key = (name, kinds)
    try:
        return _loops[key]
    except KeyError:
        pass
    operands: tuple[Any, ...] = tuple(_WEAK[k] if isinstance(k, type) else np.dtype(k) for k in kinds)
    loop: Loop
    if name == "where":
        chosen = _result_type(operands[1:])
        loop = _spell((np.dtype(np.bool_), chosen, chosen), chosen)
    else:
        types = UFUNCS[name].resolve_dtypes((*operands, None))
        loop = _spell(types[:-1], types[-1])
    _loops[key] = loop
    return loop


def resolve_fold(name: str, kind: str, dtype: Any) -> Loop:
    """Return the loop of a reduction over a dtype character, accumulating in ``dtype`` if that is given."""
    key = (name, kind, dtype)
    try:
        return _loops[key]
    except KeyError:
        pass
    if dtype is None:
        types = UFUNCS[name].resolve_dtypes((None, np.dtype(kind), None), reduction=True)
    else:
        wanted = np.dtype(dtype)
        types = UFUNCS[name].resolve_dtypes(
            (None, np.dtype(kind), None), signature=(wanted, None, None), reduction=True
        )
    loop = _spell(types[1:2], types[2])
    if types[0] != types[2]:
        loop = None
    _loops[key] = loop
    return loop


def _result_type(operands: tuple[Any, ...]) -> np.dtype[Any]:
    return np.result_type(*[o(0) if isinstance(o, type) else o for o in operands])


def _spell(inputs: tuple[Any, ...], output: Any) -> Loop:
    chars = "".join(d.char for d in inputs) + output.char
    if not all(c in COMPILED for c in chars):
        return None
    return f"{chars[:-1]}->{chars[-1]}"


def short_power(kind: str, exponent: Any) -> str:
    """Return the ufunc that NumPy's ``**`` calls for a kind of dtype and an exponent, "" for `power`."""
    whole = type(exponent) is int
    if exponent == 2:  # of real numbers, `power` multiplies too
        return (
            "square" if kind == "f" or (whole and kind in "biuc") or (kind == "c" and _AS_BEFORE[2]) else ""
        )
    if kind not in "fc":
        return ""
    if exponent == 1:
        return "positive" if kind == "f" or _AS_BEFORE[1] else ""
    if exponent == -1:
        return "reciprocal" if whole or _AS_BEFORE[-1] else ""
    return "sqrt" if exponent == 0.5 else ""
