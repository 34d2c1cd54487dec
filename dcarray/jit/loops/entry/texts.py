"""Strings, lists of characters and arrays of characters, passed to compiled loops as arrays of code points;
and dictionaries, passed as tables.

This is done if a loop uses nothing but the length and the characters of such a value.  For other strings, and
for short ones, the string itself is a constant of the plan.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dcarray.lowering.runtime.parsing import parse

from ..syntax.syntax_facts import Names, walk
from .entry_values import CHARACTERS
from .lists import ListElements
from .tables import assigned_items, table

__all__ = ["Texts", "characters", "looked_at"]

_LEAST_LENGTH = 16  # characters; of shorter strings plans depend on the string itself
_ENCODING = "utf-32-le" if np.little_endian else "utf-32-be"
_CHARACTER = np.dtype("=U1").str


def characters(value: Any) -> ListElements | None:
    """Return the code points of a string, of a list of strings of one character, or of a plain array with one
    axis and the dtype ``U1``; None for any other value."""
    if type(value) is np.ndarray:
        if value.dtype.str != _CHARACTER or value.ndim != 1 or not value.flags.c_contiguous:
            return None
        return _elements(value, value.view(CHARACTERS))
    text = value
    if type(value) is list:
        if not {*map(type, value)} <= {str, np.str_} or {*map(len, value)} != {1}:
            return None
        text = "".join(value)
    elif type(value) is not str or len(value) < _LEAST_LENGTH:
        return None
    if "\0" in text:  # which stands for an empty item of an array
        return None
    return _elements(value, np.frombuffer(text.encode(_ENCODING, "surrogatepass"), CHARACTERS))


def _elements(given: Any, array: np.ndarray[Any, Any]) -> ListElements:
    return ListElements(given, [], str, array, (), of_tuples=True)


class Texts:
    """The strings, the lists and arrays of characters, and the dictionaries among the values of statements.

    Parameters
    ----------
    source : str
        The source of the statements.
    names : sequence of str
        The names of the values that the statements read.
    variables : mapping
        The global names, which statements may change: no table.
    """

    __slots__ = ("_known", "_names", "_places", "_source", "_tables", "_variables")

    def __init__(self, source: str, names: Sequence[str], variables: Mapping[str, Any]) -> None:
        self._source, self._names, self._variables = source, names, variables
        self._places: list[int] | None = None  # of values of which only the length and items are used
        self._known: dict[int, ListElements] = {}  # strings do not change

    def elements(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the values of the names, with code points (`characters`) in place of strings, and
        tables in place of dictionaries."""
        for value in values:  # a call for each value would take longer
            kind = type(value)
            if kind is str or kind is list or kind is dict:  # `in` would run code of metaclasses
                break
            if kind is np.ndarray and value.dtype.char == "U":
                break
        else:
            return values
        if self._places is None:
            looked, assigned = looked_at(self._source), assigned_items(self._source)
            self._places = [k for k, name in enumerate(self._names) if name in looked]
            self._tables = [k for k, name in enumerate(self._names) if name not in assigned]
        elements = [*values]
        for k in self._places:
            if _may_have_characters(values[k]):
                known = self._known.get(k)
                text = known if known is not None and known.given is values[k] else characters(values[k])
                if text is not None:
                    elements[k] = text
                    if type(values[k]) is str:
                        self._known[k] = text
        for k in self._tables:
            value = values[k]
            if type(value) is dict and value is not self._variables:
                elements[k] = table(value) or value
        return tuple(elements)


def _may_have_characters(value: Any) -> bool:
    kind = type(value)
    if kind is list:
        return bool(value) and issubclass(type(value[0]), str) and len(value[0]) == 1  # no list of words
    return (kind is str and len(value) >= _LEAST_LENGTH) or (kind is np.ndarray and value.dtype.char == "U")


def looked_at(source: str) -> Names:
    """Return the names whose values statements use for nothing but their length and their items."""
    uses: list[ast.AST] = []
    every: list[str] = []
    for node in walk(parse(source)):
        if isinstance(node, ast.Name):
            every.append(node.id)
        elif isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice | ast.Tuple):
            uses += [node.value] if isinstance(node.ctx, ast.Load) else []
        elif isinstance(node, ast.For | ast.comprehension):
            uses.append(node.iter)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            uses += node.args if node.func.id in ("len", "zip", "enumerate", "reversed") else []
    names = [node.id for node in uses if isinstance(node, ast.Name)]
    return frozenset(name for name in names if names.count(name) == every.count(name))
