from collections.abc import Callable
from typing import Any

import numpy as np

REVISION: int

def install(
    cls: type,
    ndarray: type[np.ndarray[Any, Any]],
    wrap: Callable[[Any], Any],
    limit: int,
    scalars: tuple[type, ...],
    record: Callable[[str, Any, Any], Any],
    assign: Callable[[Any, Any], bool],
    store: type,
    recording: type,
    current: Callable[[], Any],
) -> bool: ...
def shortened(evaluate: Callable[..., Any]) -> Callable[..., Any]: ...
def sliced(shape: tuple[int, ...], index: Any, key: tuple[Any, ...]) -> Any: ...
def split(log: tuple[tuple[Any, ...], ...]) -> tuple[tuple[tuple[Any, ...], ...], tuple[int, ...]]: ...
def serve(functions: frozenset[Callable[..., Any]], methods: tuple[str, ...]) -> bool: ...
def short(numpy: Callable[..., Any], slow: Callable[..., Any]) -> Callable[..., Any]: ...
def short_call(cls: type, name: str) -> None: ...
