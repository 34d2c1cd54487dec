"""Library calls that draw random numbers: how a call encodes a function of `draws.DRAWS` and its
arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .draws import DRAWS
from .nodes import Call, Const, Load, Window
from .ops import const, const_value

__all__ = ["arguments_of", "call_of", "function_of"]


def call_of(
    state: Window, order: Window, handle: Window, function: str, arguments: Sequence[Load | Const],
    target: Window, loc: Any,
) -> Call:  # fmt: skip
    """Return the call that draws one number with ``function`` and writes it to ``target``.  ``state`` is the
    generator's state; all draws write ``order``, which keeps them in order; ``handle`` has its address."""
    reads = tuple([arg.window for arg in arguments if isinstance(arg, Load)])
    given = tuple([const_value(arg).item() if isinstance(arg, Const) else None for arg in arguments])
    attrs = (("function", function), ("given", given))
    return Call("random.draw", (state, order, handle, *reads), (state, order, target), attrs, loc)


def function_of(call: Call) -> str:
    """Return the name of the function that a draw calls."""
    return str(dict(call.attrs)["function"])


def arguments_of(call: Call) -> list[Load | Const]:
    """Return the arguments of a draw's function, without the generator."""
    given, reads = dict(call.attrs)["given"], iter(call.reads[3:])
    dtypes = DRAWS[function_of(call)].arguments
    return [
        Load(next(reads), dtype) if value is None else const(value, dtype)
        for value, dtype in zip(given, dtypes, strict=True)
    ]
