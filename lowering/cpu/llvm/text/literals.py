"""LLVM literals of constants."""

from __future__ import annotations

import numpy as np

from .builder import DType, Value, part, ty


def _float(bits: bytes, t: str) -> str:
    if t == "half":
        return f"0xH{int.from_bytes(bits, 'little'):04X}"
    if t == "float":
        bits = np.frombuffer(bits, np.float32).astype(np.float64).tobytes()
    return f"0x{int(np.frombuffer(bits, np.uint64)[0]):016X}"


def literal(bits: bytes, dtype: DType) -> Value:
    """Return the literal of a constant given by its bytes in native order."""
    if dtype.kind == "c":
        t, size = ty(part(dtype)), dtype.itemsize // 2
        return _float(bits[:size], t), _float(bits[size:], t)
    if dtype.kind == "f":
        return _float(bits, ty(dtype))
    value = np.frombuffer(bits, dtype)[0]
    if dtype.kind == "b":
        return "true" if value else "false"
    return str(int(value))
