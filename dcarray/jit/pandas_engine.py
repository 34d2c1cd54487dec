"""The engine for pandas' ``apply(engine=dc)`` and ``map(engine=dc)``: the function is accelerated."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from .decorator import accelerate

__all__ = ["__pandas_udf__"]


class _Engine:
    """An engine by pandas' interface; pandas itself walks over rows, columns and elements."""

    @staticmethod
    def map(
        data: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], decorator: Any, skip_na: bool
    ) -> Any:
        """Call a function for each element."""
        bound = partial(_accelerated(func), *args, **kwargs)
        return data.map(bound, na_action="ignore" if skip_na else None)

    @staticmethod
    def apply(
        data: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], decorator: Any, axis: int | str
    ) -> Any:
        """Call a function for each column or row, which are arrays where ``data`` is one (``raw=True``)."""
        fast = _accelerated(func)
        if not isinstance(data, np.ndarray):
            return data.apply(fast, axis=axis, args=args, **kwargs)

        def kept(row: Any) -> Any:
            value = fast(row, *args, **kwargs)
            # texts of other lengths than the first would be cut off
            return np.array(value, dtype=object) if isinstance(value, str) else value

        return np.apply_along_axis(kept, {"index": 0, "columns": 1}.get(axis, axis), data)  # type: ignore


def _accelerated(function: Callable[..., Any]) -> Callable[..., Any]:
    return accelerate(function) if isinstance(function, FunctionType) else function


__pandas_udf__ = _Engine
