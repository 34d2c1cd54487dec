"""The bytes that NumPy itself moves: an ndarray whose operations count what they read and write."""

from __future__ import annotations

from typing import Any

import numpy as np

_NO_TRAFFIC = {"empty_like", "shape", "ndim", "size", "result_type", "may_share_memory", "shares_memory"}


def _plain(x: Any) -> Any:
    if isinstance(x, Metered):
        return x.view(np.ndarray)
    return type(x)(map(_plain, x)) if isinstance(x, tuple | list) else x


def _bytes(x: Any) -> int:
    if isinstance(x, tuple | list):
        return sum(map(_bytes, x))
    return x.nbytes if isinstance(x, np.ndarray) else 0


class Metered(np.ndarray[Any, Any]):
    """A plain array whose every operation adds its operands' and results' bytes to ``Metered.moved``."""

    moved = 0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.get("out")
        inputs, kwargs = _plain(inputs), {key: _plain(value) for key, value in kwargs.items()}
        result = getattr(ufunc, method)(*inputs, **kwargs)
        Metered.moved += _bytes(inputs) + _bytes(result)
        if out is not None:
            return out[0] if len(out) == 1 else out
        return _metered(result)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        inner = getattr(func, "_implementation", func)
        if hasattr(inner, "__code__"):  # written in Python: the functions that it calls are counted
            return inner(*args, **kwargs)
        args, kwargs = _plain(args), {key: _plain(value) for key, value in kwargs.items()}
        result = func(*args, **kwargs)
        if func.__name__ not in _NO_TRAFFIC:
            Metered.moved += _bytes(args) + _bytes(result)
        return _metered(result)

    def __setitem__(self, key: Any, value: Any) -> None:
        Metered.moved += _bytes(self.view(np.ndarray)[key]) + _bytes(value)
        self.view(np.ndarray)[key] = _plain(value)

    def copy(self, order: Any = "C") -> Any:
        """See `numpy.ndarray.copy`."""
        Metered.moved += 2 * self.nbytes
        return _metered(self.view(np.ndarray).copy(order))

    def dot(self, b: Any, out: Any = None) -> Any:
        """See `numpy.ndarray.dot`."""
        result = self.view(np.ndarray).dot(_plain(b), out)
        Metered.moved += self.nbytes + _bytes(b) + _bytes(result)
        return _metered(result)


def _metered(result: Any) -> Any:
    if isinstance(result, tuple | list):
        return type(result)(map(_metered, result))
    return result.view(Metered) if type(result) is np.ndarray else result
