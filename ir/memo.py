"""Results of pure functions of nodes, kept with a node for as long as it lives."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from .nodes import Window

_T = TypeVar("_T")


class Node:
    """An immutable object that keeps the results of pure functions of it."""

    __slots__ = ("_hash", "_kept")
    _hash: int
    _kept: dict[Any, Any]


def kept(fn: Callable[[Any], _T]) -> Callable[[Any], _T]:
    """Return a function of one `Node` that computes each result once.

    The result must follow from the node alone: not from what is assumed about symbols or ranges of loop
    variables while it is computed (`dims.ranging`, `dims.Guards`).
    """

    @wraps(fn)
    def get(node: Any) -> _T:
        try:
            value: _T = node._kept[get]
        except (AttributeError, KeyError):
            keep(node, get, value := fn(node))
        return value

    return get


@kept
def symbols_of(window: Window) -> frozenset[str]:
    """Return the names of the symbols that a window's shape and index depend on."""
    parts = (*window.shape, *[part for ix in window.index for part in (ix.offset, ix.stride)])
    return frozenset[str]().union(*[part.names for part in parts if type(part) is not int])


def keep(node: Node, fn: Callable[[Any], _T], value: _T) -> None:
    """Keep a result of a function made by `kept` that is already known."""
    try:
        node._kept[fn] = value
    except AttributeError:
        object.__setattr__(node, "_kept", {fn: value})


def is_kept(node: Node, fn: Callable[[Any], Any]) -> bool:
    """Whether the result of a function made by `kept` is known."""
    return fn in getattr(node, "_kept", ())
