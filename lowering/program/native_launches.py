"""The launches of a driver as numbers, so that C code can make them without running the driver's Python.

A driver that only launches compiled kernels, one after the other, needs no Python: each launch passes
addresses of arrays or of the driver's temporary memory, integers, and values that follow from the sizes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, NamedTuple

from dcarray.lowering.runtime.parsing import parse

__all__ = ["NO_ARRAY", "TEMPORARY", "NativeLaunch", "NativeLaunches", "native_launches"]

NO_ARRAY, TEMPORARY = -1, -2  # in place of the position of an array
_MAX_CHARACTERS = 4000  # characters of a driver's text, which takes a millisecond to read


class NativeLaunch(NamedTuple):
    """A launch of the C module, from a block of integers.

    Attributes
    ----------
    mask : int
        The floating-point flags that count.
    stops : bool
        Whether it is left out, with all that follows, if a flag that counts has been raised before it.
    places : tuple of int
        For each integer of the block the position of the array whose address is added, `NO_ARRAY` or
        `TEMPORARY`.
    """

    mask: int
    stops: bool
    places: tuple[int, ...]


class NativeLaunches(NamedTuple):
    """All that a driver does.

    Attributes
    ----------
    temporary : int
        Bytes of temporary memory.
    launches : tuple of NativeLaunch
        The launches in order.
    numbers : callable
        A function from the values of the symbols to the integers of all blocks, in order.
    """

    temporary: int
    launches: tuple[NativeLaunch, ...]
    numbers: Callable[..., tuple[int, ...]]


def native_launches(driver: Any) -> NativeLaunches | None:
    """Return the launches of a driver; None if the driver does anything else.

    Parameters
    ----------
    driver : function
        A function of `dcarray.lowering.runtime.driver_scope.function`.
    """
    things = getattr(driver, "__globals__", {})
    text = things.get("_text")
    if text is None or len(text) > _MAX_CHARACTERS:
        return None
    reader = _Reader(things)
    (function,) = parse(text).body
    if not isinstance(function, ast.FunctionDef) or not all(map(reader.reads, function.body)):
        return None
    texts = "".join(f"{number}, " for number in reader.numbers)
    numbers = eval(f"lambda {', '.join(reader.symbols)}: ({texts})", things)  # of the driver's own text
    return NativeLaunches(reader.temporary, tuple(reader.launches), numbers)


class _Reader:
    """What the lines of a driver say.

    Attributes
    ----------
    symbols : list of str
    temporary : int
        Bytes of temporary memory.
    launches : list of NativeLaunch
    numbers : list of str
        Expressions for the integers of all blocks.
    """

    def __init__(self, things: dict[str, Any]) -> None:
        self._things, self._stops = things, False
        self._places: dict[str, tuple[int, int]] = {}  # of addresses: an array, and how many bytes after it
        self.symbols: list[str] = []
        self.temporary = 0
        self.launches: list[NativeLaunch] = []
        self.numbers: list[str] = []

    def reads(self, line: ast.stmt) -> bool:
        """Take a line in; return whether it is understood."""
        match line:
            case ast.Assign([ast.Tuple(names)], ast.Name("_addresses")):
                self._places |= {ast.unparse(name): (k, 0) for k, name in enumerate(names)}
            case ast.Assign([ast.Tuple(names)], ast.Name("_symbols")):
                self.symbols = [ast.unparse(name) for name in names]
            case ast.Assign([ast.Tuple()], ast.Call(ast.Name("_allocate"), [ast.Tuple([size]), _])):
                if isinstance(size, ast.BinOp) and isinstance(size.left, ast.Constant):
                    self.temporary = int(ast.unparse(size.left))
                    self._places["_start"] = TEMPORARY, 0
                return bool(self.temporary)
            case ast.Assign([ast.Name("_threads" | "_flags" | "_start")]) | ast.Return(ast.Name("_flags")):
                pass
            case ast.Assign([ast.Name(name)], value):
                place = self._split(value)
                if place is None or place[0] != TEMPORARY or not place[1].isdigit():
                    return False
                self._places[name] = TEMPORARY, int(place[1])
            case ast.If(ast.BinOp(ast.Name("_flags"), ast.BitAnd(), ast.Name("_minded"))):
                self._stops = True
            case ast.AugAssign(
                ast.Name("_flags"),
                ast.BitOr(),
                ast.Call(ast.Name(name), [ast.Call(ast.Name(), arguments), ast.Name("_threads")]),
            ):
                return self._launch(self._things.get(name), arguments)
            case _:
                return False
        return True

    def _launch(self, launch: Any, arguments: list[ast.expr]) -> bool:
        native = getattr(launch, "native", None)
        if native is None:
            return False
        mask, first = native
        block: list[tuple[int, str] | None] = [(NO_ARRAY, str(n)) for n in first]
        block += map(self._split, arguments)
        known = [one for one in block if one is not None]
        self.launches.append(NativeLaunch(mask, self._stops, tuple([place for place, _ in known])))
        self.numbers += [number for _, number in known]
        self._stops = False
        return len(known) == len(block)

    def _split(self, expression: ast.expr) -> tuple[int, str] | None:
        """Return the position of the array whose address an expression contains, and the text of the rest;
        None if the expression is no sum of an address and a number."""
        place, rest = (NO_ARRAY, 0), ast.unparse(expression)
        if rest in self._places:
            place, rest = self._places[rest], "0"
        elif isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.Add):
            first = ast.unparse(expression.left)
            if first in self._places:
                place, rest = self._places[first], ast.unparse(expression.right)
        names = {node.id for node in ast.walk(parse(rest)) if isinstance(node, ast.Name)}
        if not names.isdisjoint({*self._places, "_threads", "_base"}):
            return None
        return place[0], f"{place[1]} + {rest}" if place[1] else rest
