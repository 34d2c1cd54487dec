"""Calls that run as they are written, also where an accelerated call has given a function sites."""

from collections.abc import Callable
from typing import Any

import dcarray as dc


def as_written(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return what a function gives without compiled code."""
    with dc.options(jit="off"):
        return function(*args, **kwargs)
