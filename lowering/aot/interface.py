"""The functions of a library as plain data: the parameters, results and region of each."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from dcarray.ir.nodes import Dim, Region
from dcarray.ir.records import record

DType = np.dtype[Any]

STATUSES = (
    ("OK", "it ran"),
    ("BAD_SIZE", "a size is negative, or it or an integer argument has more than 40 bits"),
    ("NULL_POINTER", "an array that has elements, or a result, has no address"),
    ("MISALIGNED", "the address of an array is no multiple of the size of its elements' parts"),
    ("OVERLAP", "an array that is written shares memory with another"),
    ("GUARD", "the sizes or integers do not have a relation that the function relies on"),
    ("TOO_LARGE", "an array, or what has to be computed from sizes, does not fit into 63 bits"),
    ("NO_MEMORY", "there is no memory for temporaries"),
    ("FAILED_CHECK", "an index or a value that was computed does not fit: the function would raise an error"),
)
"""Names and meanings of what a function returns, numbered from 0."""


class Refused(Exception):
    """Raised for a function that cannot be compiled ahead of time.

    Parameters
    ----------
    reason : str
    place : str
        ``file:line`` of the statement that cannot be compiled; empty for the function itself.
    function : str
        The name of the function.
    """

    def __init__(self, reason: str, place: str = "", function: str = "") -> None:
        super().__init__(reason)
        self.reason, self.place, self.function = reason, place, function


@record(frozen=True, slots=True)
class Parameter:
    """An argument of a function.

    Attributes
    ----------
    name : str
    kind : str
        "array", "scalar", or "size": an integer that is a symbol of the region.
    dtype : numpy.dtype
    shape : tuple of Dim
    symbol : str
        Of a "size": the name of the region's symbol.
    written : bool
        Whether its elements are written.
    default : str
        The Python text of its default; empty if there is none.
    """

    name: str
    kind: Literal["array", "scalar", "size"]
    dtype: DType
    shape: tuple[Dim, ...] = ()
    symbol: str = ""
    written: bool = False
    default: str = ""


@record(frozen=True, slots=True)
class Result:
    """A result of a function.

    Attributes
    ----------
    kind : str
        "array" and "scalar" are memory of the caller; "alias" is an argument, "value" a constant.
    name : str
        The name of the region's array, or for an "alias" of the argument.
    python : bool
        Whether a scalar is one of Python's types, rather than NumPy's.
    value : object
        The constant.
    """

    kind: Literal["array", "scalar", "alias", "value"]
    name: str = ""
    python: bool = False
    value: Any = None


@record(frozen=True, slots=True)
class Function:
    """A function of a library.

    Attributes
    ----------
    name : str
    region : Region
        The body; a call fails if one of its guards does not hold.
    sizes : tuple of str
        The symbols of the region that are sizes of arrays, in order; the others are parameters.
    parameters : tuple of Parameter
    inputs : tuple of str or value
        For each array of the region that is read from outside: the name of its parameter, or, a tuple of one
        item, its value.
    results : tuple of Result
    several : bool
        Whether the function returns a tuple.
    checked : bool
        Whether the body checks values at run time.
    keywords : int
        The number of keyword-only parameters, which are the last ones.
    """

    name: str
    region: Region
    sizes: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    inputs: tuple[str | tuple[Any], ...]
    results: tuple[Result, ...]
    several: bool = False
    checked: bool = False
    keywords: int = 0

    @property
    def given_results(self) -> tuple[tuple[str, Result], ...]:
        """The results whose memory the caller passes, each with its name in C."""
        taken = {parameter.name for parameter in self.parameters} | set(self.sizes)
        names = []
        for k in range(len(self.results)):
            name = f"r{k}" if len(self.results) > 1 else "result"
            while name in taken:
                name += "_"
            names.append(name)
        pairs = zip(names, self.results, strict=True)
        return tuple([(name, result) for name, result in pairs if result.kind in ("array", "scalar")])
