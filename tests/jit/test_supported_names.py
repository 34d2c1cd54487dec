"""The calls that the tracer may know by name are those that it has methods for."""

from __future__ import annotations

from dcarray.core.ufunc_loops import UFUNCS
from dcarray.ir.ops import C_LIBRARY
from dcarray.jit.loops.operations import calls
from dcarray.jit.loops.operations.arithmetic import Arithmetic
from dcarray.jit.loops.operations.arrays import Arrays
from dcarray.jit.loops.operations.calls import Calls
from dcarray.jit.loops.operations.memory import Memory
from dcarray.jit.loops.operations.numpy_calls import REDUCTIONS
from dcarray.jit.loops.operations.reductions import Reductions
from dcarray.jit.loops.operations.scope import Scope
from dcarray.jit.loops.syntax import supported

CALLS = Calls(Reductions(Arrays(Arithmetic(Memory(Scope(1), "loop.py")))))


def of(prefix: str) -> set[str]:
    """The names that the tracer's methods with a prefix trace."""
    return {name.removeprefix(prefix) for name in dir(CALLS) if name.startswith(prefix)}


def test_builtins() -> None:
    assert of("_py_") == supported.BUILTINS


def test_math() -> None:
    assert of("_math_") | {name.removeprefix("c_") for name in C_LIBRARY} == supported.MATH


def test_methods() -> None:
    assert calls._METHODS | set(calls._UFUNC_METHODS) == supported.METHODS


def test_numpy() -> None:
    functions = {name.replace(".", "_") for name in supported._FUNCTIONS}
    assert of("_np_") | set(REDUCTIONS) | {"matmul"} == functions


def test_ufuncs() -> None:
    assert all(
        name in UFUNCS or CALLS._member(calls.PublicObject("numpy"), name) for name in supported._UFUNCS
    )
