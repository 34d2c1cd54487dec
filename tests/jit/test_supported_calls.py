"""The lists of calls by which code gets sites, and what the tracer has methods for."""

import ast
import builtins
import cmath
import inspect
import math
from typing import Any

import numpy as np
import pytest
from as_written import as_written
from written import written

import dcarray as dc
from dcarray.core.store import compiles
from dcarray.core.ufunc_loops import UFUNCS
from dcarray.ir.ops import C_LIBRARY
from dcarray.jit.loops.entry.tables import TABLE_METHODS
from dcarray.jit.loops.operations import (
    calls,
    complex_functions,
    generator_draws,
    legacy_draws,
    numpy_definitions,
    python_draws,
)  # fmt: skip
from dcarray.jit.loops.operations.arithmetic import Arithmetic
from dcarray.jit.loops.operations.arrays import Arrays
from dcarray.jit.loops.operations.memory import Memory
from dcarray.jit.loops.operations.reductions import Reductions
from dcarray.jit.loops.operations.scope import Scope
from dcarray.jit.loops.syntax import supported
from dcarray.jit.loops.syntax.supported import KnownCalls


def traced(prefix: str) -> set[str]:
    """The names of functions for which the tracer has methods with a prefix."""
    tracer = calls.Calls(Reductions(Arrays(Arithmetic(Memory(Scope(1), "<test>")))))
    names = {name for part in tracer._parts for name in dir(part)}
    return {name.removeprefix(prefix) for name in names if name.startswith(prefix)}


def test_builtins() -> None:
    assert traced("_py_") & set(dir(builtins)) == supported.BUILTINS


def test_functions_of_math() -> None:
    of_c = {op.removeprefix("c_") for op, function in C_LIBRARY.items() if function.__module__ == "math"}
    assert (traced("_math_") | of_c) & set(dir(math)) == supported.MATH


def test_functions_of_cmath() -> None:
    assert {name for name in dir(cmath) if complex_functions.written(name)} == supported.CMATH


def test_methods() -> None:
    known = calls._METHODS | {*calls._UFUNC_METHODS} | traced("_method_") | TABLE_METHODS | {"conjugate"}
    assert known == supported.METHODS


def test_draws() -> None:
    assert {*generator_draws.METHODS, *legacy_draws.METHODS} == supported.DRAWS
    assert python_draws.NAMES - {"_randbelow"} == supported.RANDOM


def test_functions_of_numpy() -> None:
    names = {name: getattr(np, name) for name in dir(np) if not name.startswith("_")}
    functions = {name for name in names if name in traced("_np_")}
    ufuncs = {n for n, f in names.items() if isinstance(f, np.ufunc) and f.__name__ in (*UFUNCS, "matmul")}
    scalars = {name for name, kind in names.items() if isinstance(kind, type) and _is_number(kind)}
    deeper = {name for name in supported.NUMPY if "." in name}
    assert {name.replace(".", "_") for name in deeper - numpy_definitions.DEFINED} <= traced("_np_")
    assert functions | ufuncs | scalars | {"bool"} >= supported.NUMPY - deeper
    assert functions | ufuncs <= supported.NUMPY
    assert scalars <= supported.NUMPY


def _is_number(kind: type) -> bool:
    """Whether a class is of numbers that compile, and that are not abstract."""
    return issubclass(kind, np.generic) and bool(kind.__subclasses__() == []) and compiles(np.dtype(kind))


@pytest.mark.parametrize(("text", "known"), [
    ("np.sqrt(x)", True), ("np.add.reduce(x)", True), ("np.add.accumulate(x)", True), ("np.sort(x)", False),
    ("np.linalg.norm(x)", True), ("np.linalg.svd(x)", False), ("np.add.reduceat(x)", False),
    ("m.sin(x)", True), ("m.gamma(x)", False), ("x.sum()", True),
    ("np.random.rand()", True), ("rng.normal(0, 1)", True), ("np.random.shuffle(x)", False),
    ("np.linalg.normal(x)", False), ("r.randint(0, 3)", True), ("rng.gauss(0, 1)", True),
    ("r.shuffle(x)", False), ("r.poisson(2)", False),
    ("x.tolist()", False), ("x.append(1)", False), ("len(x)", True), ("print(x)", False), ("f(x)", True),
    ("g(x)", False), ("h(x)", False), ("unknown(x)", True), ("(lambda: x)()", False), ("x[0](1)", True),
    ("np.sqrt(np.sort(x))", False), ("x.copy().sum()", True), ("again(x)", True), ("other.sqrt(x)", False),
])  # fmt: skip
def test_which_calls_are_known(text: str, known: bool) -> None:
    functions = """
def f(x):
    return np.sqrt(x)
def g(x):
    return sorted(x)
def h(x):
    return f(x) + g(x)
def again(x):
    return again(x - 1) if len(x) else f(x)
"""
    tree = ast.parse(functions)
    found = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    calls = KnownCalls({"np": "numpy", "m": "math", "r": "random", "other": "some.library"}, found)
    assert calls.all_known(ast.parse(text)) is known


def test_arguments_have_numpys_places() -> None:
    def places(function: Any) -> list[inspect.Parameter]:
        parameters = inspect.signature(function).parameters.values()
        return [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]

    tracer = calls.Calls(Reductions(Arrays(Arithmetic(Memory(Scope(1), "<test>")))))
    functions = [(getattr(np, name, None), (f"_np_{name}",)) for name in supported.NUMPY]
    functions += [
        (getattr(np.ndarray, name, None), (f"_method_{name}", f"_np_{name}")) for name in supported.METHODS
    ]
    for function, names in functions:
        traced_by = next(filter(None, map(tracer._traced_by, names)), None)
        try:
            known = places(function) if function is not None else []
        except ValueError:  # before NumPy 2.4
            continue
        for own, theirs in zip(places(traced_by)[1:] if traced_by else (), known[1:], strict=False):
            assert own.name == theirs.name or theirs.kind == theirs.POSITIONAL_ONLY, names


@pytest.mark.eager(debug=False)
@pytest.mark.parametrize("call", [
    "x.clip(a_min=0)", "np.where(condition=x > 0, x=x, y=1)", "np.linspace(0, 1, 5, True, float)",
    "x.astype(float, False)", "np.array(x, float, True)", "np.ndarray((3,), float, 'C')",
    "np.concatenate(arrays=[x, x])", "np.pad(x, 2, 'constant', 3)", "x.clip(min=0, max=1)",
])  # fmt: skip
def test_calls_that_numpy_refuses(call: str) -> None:
    f = written(f"def f(x):\n    for k in range(40):\n        y = {call}\n    return y", np=np)

    def outcome(function: Any) -> str:
        try:
            return repr(function(np.linspace(-1.0, 1.0, 5)))
        except TypeError as error:
            return f"TypeError: {error}"

    want, g = as_written(outcome, f), dc.accelerate(f)
    assert [outcome(g) for _ in range(2)] == [want] * 2
