"""Tracing requests for loops in source text, and their results beside NumPy's."""

import ast
import builtins
import copy
import inspect
import math
import textwrap
import types
from collections.abc import Mapping
from typing import Any

import numpy as np

from dcarray.ir import interp
from dcarray.jit.loops.entry.entry_values import (
    ArrayType,
    Constant,
    EntryValue,
    Function,
    LoopDescription,
    PublicObject,
    ScalarType,
    TracedLoop,
)
from dcarray.jit.loops.syntax.purity import is_pure
from dcarray.jit.loops.tracing.trace import trace

Names = dict[str, Any]


def known(value: Any, same: str | None = None, constant: bool = False) -> EntryValue | None:
    """The entry value of an object; None for an unsupported one."""
    if isinstance(value, np.ndarray):
        strides = tuple(s // value.itemsize for s in value.strides)
        return ArrayType(value.dtype, value.shape, strides, value.flags.writeable, same)
    if isinstance(value, np.generic):
        return ScalarType(value.dtype)
    if value is None or isinstance(value, bool | int | str | np.dtype):
        return Constant(value)
    if isinstance(value, float | complex) and constant:
        return Constant(value)
    if isinstance(value, float | complex):
        return ScalarType(np.dtype(type(value)), weak=True)
    if isinstance(value, tuple | list):
        return Constant(type(value)(known(v) for v in value))
    if isinstance(value, types.FunctionType):
        return function(value)
    if value is np or value is math:
        return PublicObject(value.__name__)
    for module in (np, builtins, math):
        name = getattr(value, "__name__", "")
        if name and getattr(module, name, None) is value:
            return PublicObject(f"{module.__name__}.{name}")
    return None


def function(value: types.FunctionType, source: str | None = None) -> Function:
    """The entry value of a Python function."""
    source = source or textwrap.dedent(inspect.getsource(value))
    reads = {n.id for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Name)} - {value.__name__}
    code = value.__code__
    parameters = inspect.signature(value).parameters.items()
    defaults = [(n, known(p.default, constant=True)) for n, p in parameters if p.default is not p.empty]
    around = namespace(reads, value.__globals__, constant=True)
    told = tuple((n, k) for n, k in defaults if k is not None)
    return Function(value.__name__, source, code.co_filename, code.co_firstlineno, around, told)


def namespace(
    reads: set[str], names: Mapping[str, Any], constant: bool = False
) -> tuple[tuple[str, EntryValue], ...]:
    found = []
    seen: dict[int, str] = {}
    for name in sorted(reads):
        value = names.get(name, getattr(builtins, name, None))
        if name not in names and not hasattr(builtins, name):
            continue
        told = known(value, seen.get(id(value)), constant)
        if isinstance(value, np.ndarray):
            seen.setdefault(id(value), name)
        if told is not None:
            found.append((name, told))
    return tuple(found)


def request(source: str, names: Mapping[str, Any], live: Any = None) -> LoopDescription:
    """The description of a loop with these names bound."""
    source = textwrap.dedent(source).strip()
    tree = ast.parse(source)
    reads = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    bound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    first, every = tree.body[0], frozenset(bound if live is None else live)
    asked = isinstance(first, ast.While) and is_pure(first.test)
    return LoopDescription(source, "loop.py", 1, namespace(reads, names), every, asked=asked)


def serve(traced: TracedLoop, names: Names) -> Names:
    """The names after a traced loop, run by the interpreter."""
    memory = {}
    arrays = [a for a in traced.region.arrays if a.role in ("in", "inout")]
    for array, text in zip(arrays, traced.inputs, strict=True):
        value = eval(text, {}, names)
        memory[array.name] = value if isinstance(value, np.ndarray) else np.asarray(value, array.dtype)
    made = interp.run(traced.region, memory)
    after = dict(names)
    for name, result in traced.results:
        if result.kind == "alias":
            after[name] = names[result.name]
        elif result.kind == "value":
            after[name] = result.value
        elif result.kind == "view":
            base, keys, order = result.value
            whole = names[base.name] if base.kind == "alias" else made[base.name]
            after[name] = whole[tuple(slice(*k) if type(k) is tuple else k for k in keys)].transpose(order)
        elif result.kind == "array":
            after[name] = made[result.name]
        else:
            after[name] = made[result.name].item() if result.weak else made[result.name][()]
    return after


def check(source: str, names: Names, live: Any = None, rtol: float = 0.0) -> TracedLoop:
    """Trace a loop, run it, and compare the names and arrays after it with NumPy's."""
    asked = request(source, names, live)
    traced = trace(asked)
    mine, theirs = copy.deepcopy(names_of(names)), copy.deepcopy(names_of(names))
    mine, theirs = {**names, **mine}, {**names, **theirs}
    with np.errstate(all="ignore"):
        mine = serve(traced, mine)
        exec(textwrap.dedent(source), theirs)
    results = dict(traced.results)
    bound = {
        n.id
        for n in ast.walk(ast.parse(asked.source))
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    for name in {*names_of(names), *results} - (bound - results.keys()):
        same(mine[name], theirs[name], rtol, name)
    missing = [n for n in asked.live if n in theirs and n not in results]
    assert not missing, f"{missing} are not given back"
    return traced


def names_of(names: Mapping[str, Any]) -> Names:
    """The names of data, aliases kept."""
    return {
        n: v
        for n, v in names.items()
        if isinstance(v, np.ndarray | np.generic | bool | int | float | complex)
    }


def same(a: Any, b: Any, rtol: float, name: str) -> None:
    assert type(a) is type(b), f"{name} is {type(a)}, not {type(b)}"
    if isinstance(b, np.ndarray | np.generic):
        assert a.dtype == b.dtype and a.shape == b.shape and a.strides == b.strides, name
    if rtol:
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol, err_msg=name)
    else:
        np.testing.assert_array_equal(a, b, err_msg=name, strict=True)
