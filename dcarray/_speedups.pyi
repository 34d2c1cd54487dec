from collections.abc import Callable
from types import CodeType
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
    dtypes: tuple[np.dtype[Any], ...],
    axes: object,
    allowed: Callable[[], bool],
    config: dict[str, Any],
    view: object,
    locate: Callable[[Any], None],
) -> bool: ...
def composed(shape: tuple[int, ...], index: Any, key: Any) -> Any: ...
def learn(code: CodeType, instruction: int, elements: int) -> None: ...
def strike(code: CodeType, instruction: int) -> None: ...
def suspend(change: int) -> None: ...
def shortened(evaluate: Callable[..., Any]) -> Callable[..., Any]: ...
def sliced(shape: tuple[int, ...], index: Any, key: tuple[Any, ...]) -> Any: ...
def split(log: tuple[tuple[Any, ...], ...]) -> tuple[tuple[tuple[Any, ...], ...], tuple[int, ...]]: ...
def call_loops(api: Any, ufuncs: dict[str, np.ufunc]) -> bool: ...
def serve(
    functions: dict[Any, Callable[..., Any]],
    methods: tuple[str, ...],
    questions: frozenset[Any],
    views: dict[Any, bool],
) -> bool: ...
def short(function: Callable[..., Any], slow: Callable[..., Any]) -> Callable[..., Any]: ...
def short_call(cls: type, name: str) -> None: ...
