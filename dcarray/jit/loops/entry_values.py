"""What is known of the names in a loop when it is entered, as plain values that another process can read.

The planner sees nothing else of the program, so all that its answer depends on is here, and equal requests
have equal answers: a request is the key of its plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dcarray.core.fp_attribution import RAISING

DType = np.dtype[Any]


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """An array, wrapped or plain; ``strides`` in elements.  Arrays of different names share no memory, unless
    ``same`` is the name of the other one, of which this is the very same object."""

    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    writeable: bool = True
    same: str | None = None


@dataclass(frozen=True, slots=True)
class ScalarOf:
    """A scalar whose value comes at run time.  ``weak``: a Python float or complex, which takes the dtype
    of what it meets; otherwise a NumPy scalar."""

    dtype: DType
    weak: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A value that the plan is made for: an int, bool, str, None, a dtype, or a tuple or list of
    `Known`.  Floats and complex numbers are `ScalarOf`, but for globals and defaults of functions, which are
    values as well.  Equal values have the same type: 1, True and 1.0 differ, as do 0.0 and -0.0."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash(repr(self.value))


@dataclass(frozen=True, slots=True)
class Thing:
    """Something with a public name of its own: ``numpy``, ``numpy.add``, ``numpy.linalg``,
    ``builtins.range``, ``math.sqrt``.  dcarray's counterparts have NumPy's names."""

    name: str


@dataclass(frozen=True, slots=True)
class Function:
    """A Python function of the program, by its source (the ``def``, without indentation) and what is known
    of its global names and defaults."""

    name: str
    source: str
    file: str
    line: int
    names: tuple[tuple[str, Known], ...] = ()
    defaults: tuple[tuple[str, Known], ...] = ()


Known = ArrayOf | ScalarOf | Value | Thing | Function


@dataclass(frozen=True, slots=True)
class Request:
    """A loop that is to be compiled.

    Attributes
    ----------
    source : str
        The ``for`` or ``while`` statement, without indentation.
    file, line
        Where it stands, for messages.
    names : tuple of pairs
        What is known of the names that it reads.  A name that is not bound when the loop begins is not here.
    live : frozenset of str
        The names it binds that may be read afterwards.
    watched : int
        The floating-point exceptions that are not ignored, as bits (`dcarray.core.fp_attribution`).
    """

    source: str
    file: str
    line: int
    names: tuple[tuple[str, Known], ...]
    live: frozenset[str]
    watched: int = RAISING


@dataclass(frozen=True, slots=True)
class Result:
    """What a name is bound to after the loop.

    ``kind`` is "array" (``name`` is an "out" array of the region: new memory), "alias" (the very object that
    the name ``name`` was bound to when the loop began), "scalar" (``name`` is an "out" array of the region
    without axes; ``weak`` as in `ScalarOf`), or "value" (``value`` itself, an int say)."""

    kind: str
    name: str = ""
    weak: bool = False
    value: Any = None


@dataclass(frozen=True, slots=True)
class Traced:
    """A loop as a region.

    ``inputs`` says, for each array of the region with role "in" or "inout", in order, whose value it is: an
    array's name, or for an array without axes the name of a scalar or a Python expression of such names, like
    ``"(2.0 * dx)"``, to be evaluated when the loop begins.  If that raises, the loop has to run as written.
    ``results`` are the bindings after the loop: all of ``Request.live`` that the loop binds, when it runs at
    least once: who uses the region has evaluated the condition of a ``while``, and found it true.
    ``loud`` says whether the loop may raise an exception that is none of NumPy's floating-point ones.

    Python's floats are computed as float64: where the region raises the floating-point flags of a division by
    zero, an overflow or an invalid operation, Python may raise an exception, and the loop has to run as
    written, from the values before it."""

    region: Any
    inputs: tuple[str, ...]
    results: tuple[tuple[str, Result], ...]
    loud: bool
