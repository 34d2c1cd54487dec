"""Observed calls of functions, and the types of arguments that follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import numpy as np

from dcarray.api.array import ndarray
from dcarray.core.store import COMPILED
from dcarray.jit.loops.entry.lists import elements_of

__all__ = ["Kind", "Observed", "kind_of", "observed", "types_of"]

LITERAL = 4  # a size up to this, if it never changes, is written as a number
NAMES = ("N", "M", "K", "L", "P", "Q", "R", "S", "U", "V", "W", "X", "Y", "Z")
_NUMBERS = (bool, int, float, complex)

Kind = tuple[Any, ...]
"""What a value is: ("array", dtype, shape), ("number", type or dtype), or ("other", name of the type)."""


@dataclass(slots=True)
class Observed:
    """A function that was called, and the kinds of its arguments.

    Attributes
    ----------
    code : code object
    names : mapping
        Its global names.
    owner : str
        The role of the first argument: "self" or "cls" for a method, "" for a static method or any other
        function.
    parts : tuple of str
        The attributes of ``self`` that the function uses and that are arrays or numbers.
    calls : int
    seconds : float
        Seconds of all calls, with the functions that they call.
    kinds : dict
        The kinds that each argument (without ``self``) and each part had in calls, each kind once, in order.
    """

    code: CodeType
    names: dict[str, Any]
    owner: str = ""
    parts: tuple[str, ...] = ()
    calls: int = 0
    seconds: float = 0.0
    kinds: dict[tuple[Kind, ...], None] = field(default_factory=dict)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of its arguments, without ``self``."""
        code = self.code
        return code.co_varnames[bool(self.owner) : code.co_argcount + code.co_kwonlyargcount]

    def note(self, values: Mapping[str, Any], look: bool) -> None:
        """Note the arguments of a call; with ``look`` lists are examined, too."""
        kinds = [kind_of(values[name], look) for name in self.arguments]
        if self.parts:
            given = vars(values[self.code.co_varnames[0]])
            kinds += [kind_of(given[p], look) if p in given else ("other", "missing") for p in self.parts]
        self.kinds[tuple(kinds)] = None

    @property
    def is_told(self) -> bool:
        """Whether a stub lists the function: an argument or a part of ``self`` was an array, or all arguments
        were numbers, from which it may make arrays."""
        sorts = [kind[0] for kinds in self.kinds for kind in kinds]
        return "array" in sorts or (not self.owner and {*sorts} == {"number"})


def observed(code: CodeType, names: dict[str, Any], values: Mapping[str, Any]) -> Observed:
    """Return a new `Observed` for a function, from the arguments of its first call."""
    owner = ""
    parts: tuple[str, ...] = ()
    *outer, _ = code.co_qualname.split(".")
    if outer and outer[-1] != "<locals>" and code.co_argcount:
        first = values[code.co_varnames[0]]
        if _is_of(type(first), ".".join(outer)):
            owner, parts = "self", _parts(first, code)
        elif isinstance(first, type) and _is_of(first, ".".join(outer)):
            owner = "cls"
    return Observed(code, names, owner, parts)


def _is_of(kind: type, qualname: str) -> bool:
    return any(one.__qualname__ == qualname for one in kind.__mro__)


def _parts(value: Any, code: CodeType) -> tuple[str, ...]:
    """The attributes of an object that some code names, and that are arrays or numbers."""
    try:
        held = vars(value)
    except TypeError:  # it has slots
        return ()
    return tuple([n for n in code.co_names if n in held and kind_of(held[n])[0] != "other"])


def kind_of(value: Any, look: bool = True) -> Kind:
    """Return the kind of a value; with ``look`` lists are examined, too."""
    if isinstance(value, np.ndarray | ndarray):
        dtype = value.dtype
        return (
            ("array", dtype, tuple(value.shape)) if dtype.char in COMPILED else ("other", f"array of {dtype}")
        )
    if isinstance(value, np.generic):
        return ("number", value.dtype) if value.dtype.char in COMPILED else ("other", type(value).__name__)
    if type(value) in _NUMBERS:
        return "number", type(value)
    if type(value) is list and look and (elements := elements_of(value)) is not None:
        return "array", elements.array.dtype, elements.array.shape
    return "other", type(value).__name__


# ---- types --------------------------------------------------------------------------------------------
class _Sizes:
    """The names of sizes in one function's types: axes whose lengths were equal in all calls share a name."""

    def __init__(self, taken: Sequence[str], changed: bool) -> None:
        self._free = iter([*[n for n in NAMES if n not in taken], *[f"N{k}" for k in range(1, 100)]])
        self._known: dict[tuple[int, ...], str] = {}
        self._changed = changed  # whether any size has
        self.names: list[str] = []

    def text(self, sizes: tuple[int, ...]) -> str:
        """Return the size of an axis as text, given its lengths in all calls."""
        if sizes in self._known:
            return self._known[sizes]
        if len(set(sizes)) == 1 and (self._changed or sizes[0] <= LITERAL):
            return str(sizes[0])
        if len(set(sizes)) > 1:
            for known, name in self._known.items():
                offsets = {a - b for a, b in zip(sizes, known, strict=True)}
                if len(offsets) == 1 and len(set(known)) > 1:
                    (offset,) = offsets
                    return f"{name} {'+' if offset > 0 else '-'} {abs(offset)}"
        name = next(self._free)
        self._known[sizes] = name
        self.names.append(name)
        return name


def types_of(one: Observed) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Return, as text, the types of a function's arguments and of parts of ``self`` (as ``self.u``); the
    reasons for arguments without a type; and the names of sizes."""
    columns = list(zip(*one.kinds, strict=True))
    shapes = [[kind[2] for kind in column] for column in columns if all(k[0] == "array" for k in column)]
    changed = any(len(set(column)) > 1 for column in shapes)
    sizes = _Sizes([*one.names, *one.code.co_varnames], changed)
    types, reasons = {}, {}
    parts = [f"self.{part}" for part in one.parts]
    for name, column in zip((*one.arguments, *parts), columns, strict=True):
        text, reason = _type(column, sizes)
        if text:
            types[name] = text
        elif name not in parts:
            reasons[name] = reason
    return types, reasons, sizes.names


def _type(column: Sequence[Kind], sizes: _Sizes) -> tuple[str, str]:
    """Return the type of an argument and "", or "" and the reason why it has no type."""
    sorts = {kind[0] for kind in column}
    seen = sorted({_shown(kind) for kind in column})
    if sorts == {"array"}:
        dtypes, ranks = {kind[1] for kind in column}, {len(kind[2]) for kind in column}
        if len(dtypes) > 1 or len(ranks) > 1:
            return "", " and ".join(seen)
        if ranks == {0}:
            return "", "an array without axes"
        axes = [sizes.text(axis) for axis in zip(*[kind[2] for kind in column], strict=True)]
        return f"dc.types.{dtypes.pop().name}[{', '.join(axes)}]", ""
    if sorts == {"number"}:
        types = {kind[1] for kind in column}
        if len(types) == 1:
            (scalar,) = types
            return (scalar.__name__ if isinstance(scalar, type) else f"np.{scalar.type.__name__}"), ""
        if types <= {int, float}:
            return "float", ""
        if types <= {int, float, complex}:
            return "complex", ""
    return "", " and ".join(seen)


def _shown(kind: Kind) -> str:
    if kind[0] == "array":
        return f"{len(kind[2])}-dimensional {kind[1].name}"
    if kind[0] == "number":
        return kind[1].__name__ if isinstance(kind[1], type) else str(kind[1].name)
    return str(kind[1])
