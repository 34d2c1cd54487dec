"""Conversion of the values of names to a plan's arguments, and of its results to values of names."""

from __future__ import annotations

import symtable
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from ..entry import generators
from ..entry.entry_values import Result
from ..entry.lists import given, mixed_numbers

__all__ = ["PYTHON_TYPES", "Binding", "PlanMismatch", "binding", "fetcher", "number"]

PYTHON_TYPES: dict[str, Callable[[Any], Any]] = {
    "bool": bool,
    "float": float,
    "int": int,
    "NoneType": lambda number: None,
}
NDArray = np.ndarray[Any, Any]


class PlanMismatch(Exception):
    """Exception: a plan cannot be used by its loop site, for the reason in the message."""


_PYTHONS = frozenset({int, float, complex, bool})


def fetcher(text: str, place: dict[str, int]) -> int | Callable[[Sequence[Any]], Any]:
    """Return what gets an input from the values of the names: a position among them, or a function of them
    that evaluates a Python expression."""
    if text in place:
        return place[text]
    if generators.is_input(text):
        return generators.Fetcher(text, place)
    # No syntax tree is made: this thread may run while the program's makes one (see `pruning.prune_soon`).
    names = symtable.symtable(text, "<input>", "eval").get_identifiers()
    if not all(name in place for name in names):
        raise PlanMismatch(f"{text} is not known when the loop begins")
    inner = ", ".join(names)
    function = eval(f"lambda {inner}: {text}", {"__builtins__": {}})  # text of the tracer
    at = [place[name] for name in names]

    def fetch(values: Sequence[Any]) -> Any:
        given = [values[k] for k in at]
        try:
            if _PYTHONS.issuperset(map(type, given)):
                return function(*given)
            with np.errstate(all="raise"):  # which takes longer than the rest
                return function(*given)
        except Exception:  # the loop raises it, if it gets there
            return None

    return fetch


def number(value: Any, dtype: np.dtype[Any]) -> NDArray | None:
    """Return a number as an array without axes; an array as it is; None if the number cannot have the dtype's
    kind (a complex number, but a real dtype)."""
    if type(value) is np.ndarray:
        return value
    if value is None or (type(value) is complex and dtype.kind != "c"):  # as the square root of -1
        return None
    return np.array(value, dtype)


# ---- results ------------------------------------------------------------------------------------------
Binding = Callable[[Sequence[Any], list[NDArray], list[int], int], Any]


def binding(
    result: Result | None, name: str, place: dict[str, int], at_of: dict[str, int], wraps: bool
) -> Binding:
    """Return a function that gives the value of the name ``name`` after a run of the plan."""
    if result is None:  # the loop does not bind it
        if name not in place:
            raise PlanMismatch(f"{name} is not bound")
        result = Result("alias", name)
    if result.kind == "value":
        value = result.value
        return lambda values, arrays, addresses, below: value
    if result.kind == "alias":
        k = place[result.name]
        return lambda values, arrays, addresses, below: given(values[k])
    if result.kind == "tuple":
        parts = [binding(part, name, place, at_of, wraps) for part in result.value]
        return lambda values, arrays, addresses, below: tuple(
            [part(values, arrays, addresses, below) for part in parts]
        )
    if result.kind == "view":
        return _view(result, name, place, at_of, wraps)
    k = at_of[result.name]
    item: Callable[[NDArray], Any] = np.ndarray.item if result.weak else itemgetter(())
    if result.kind == "scalar":
        return lambda values, arrays, addresses, below: item(arrays[k])
    if result.kind in ("list", "mixed list"):
        convert: Callable[[NDArray], list[Any]] = mixed_numbers
        if result.kind == "list":
            convert = _numbers if result.weak else _items
        return _list(k, at_of.get(result.value, -1), convert, result.of_tuples)
    if result.kind == "either":
        python, flag = PYTHON_TYPES[result.value[0]], at_of[result.value[1]]
        return lambda values, arrays, addresses, below: (item if arrays[flag] else python)(arrays[k])
    if not wraps:
        return lambda values, arrays, addresses, below: arrays[k]
    from .wrapped_memory import wrapped

    return lambda values, arrays, addresses, below: wrapped(arrays[k], addresses[k], below)


def _list(k: int, count: int, convert: Callable[[NDArray], list[Any]], of_tuples: bool) -> Binding:
    """Return a function that gives a new list: of all elements of the result ``k``, or, if ``count`` is not
    negative, of as many as the result ``count`` says."""

    def new_list(values: Sequence[Any], arrays: list[NDArray], addresses: list[int], below: int) -> Any:
        elements = arrays[k] if count < 0 else arrays[k][: int(arrays[count])]
        return [*map(tuple, convert(elements))] if of_tuples else convert(elements)

    return new_list


def _numbers(array: NDArray) -> list[Any]:
    """Return an array's elements as Python's numbers, in nested lists."""
    numbers: list[Any] = array.tolist()
    return numbers


def _items(array: NDArray) -> list[Any]:
    """Return an array's elements as NumPy scalars, in nested lists."""
    return [*array] if array.ndim == 1 else [*map(_items, array)]


def _view(
    result: Result, name: str, place: dict[str, int], at_of: dict[str, int], wraps: bool
) -> Binding:  # fmt: skip
    """Return a function that gives a view of a value that the loop got, or of a new array."""
    if wraps:
        raise PlanMismatch(f"{name} is a view of a wrapped array")
    base, keys, order = result.value
    whole = binding(base, name, place, at_of, wraps)
    key = tuple([slice(*k) if type(k) is tuple else k for k in keys])
    plain = order == tuple(range(len(order)))

    def view(values: Sequence[Any], arrays: list[NDArray], addresses: list[int], below: int) -> Any:
        part = whole(values, arrays, addresses, below)[key]
        return part if plain else part.transpose(order)

    return view
