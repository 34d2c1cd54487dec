"""Regions of programs at many sizes: run by the interpreter and by the CPU target, beside NumPy."""

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from dcarray.ir import dims, interp
from dcarray.jit.program.description import describe
from dcarray.jit.program.region import TracedProgram, region_of
from dcarray.lowering.program import serialise
from dcarray.plans.requests import RegionRequest, make_plan

HEAD = """from __future__ import annotations
import math
import numpy as np
from dcarray.jit.loops.entry.sizes import symbol
N, M, K = symbol("N"), symbol("M"), symbol("K")
"""
Run = Callable[[list[np.ndarray[Any, Any]], tuple[int, ...]], None]


def module(folder: Path, text: str, name: str = "programs") -> ModuleType:
    """A module of source text, with the symbols N, M and K."""
    file = folder / f"{name}.py"
    file.write_text(HEAD + text)
    return loaded(file)


def loaded(file: Path) -> ModuleType:
    """A file as a module."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def arguments_of(function: Any, sizes: Mapping[str, int], seed: int) -> list[Any]:
    """Random arguments of a program, by its annotations."""
    rng = np.random.default_rng(seed)
    found: list[Any] = []
    for _, hint in describe(function).parameters:
        if hasattr(hint, "shape"):
            shape = [n if isinstance(n, int) else n.value(sizes) for n in hint.shape]
            values = rng.random(shape) + 0.5
            if hint.dtype.kind == "i":
                values = np.round(values * 10)
            if len(shape) == 2 and shape[0] == shape[1]:
                values += np.eye(shape[0]) * shape[0]
            found.append(values.astype(hint.dtype))
        else:
            found.append(sizes["T"] if hint.kind is int else 0.0625)
    return found


def _interpreted(traced: TracedProgram) -> Run:
    visible = [a for a in traced.region.arrays if a.role != "temp"]
    names = [s.name for s in traced.region.symbols]

    def run(arrays: list[np.ndarray[Any, Any]], symbols: tuple[int, ...]) -> None:
        memory = {a.name: x for a, x in zip(visible, arrays, strict=True)}
        interp.run(traced.region, memory, dict(zip(names, symbols, strict=True)))

    return run


def _compiled(traced: TracedProgram) -> Run:
    uncompiled: list[str] = []
    request = RegionRequest(traced.region, False, 1, None)
    made = make_plan(request, lambda reason, _: uncompiled.append(reason), debug=True)
    assert not made.relations and not uncompiled  # it serves all sizes for which the guards hold
    loaded = serialise.in_process(made.plan, [], None)

    def run(arrays: list[np.ndarray[Any, Any]], symbols: tuple[int, ...]) -> None:
        loaded.run(arrays, [a.ctypes.data for a in arrays], symbols, 1, 0)

    return run


def served_sizes(
    function: Any, every: list[Mapping[str, int]], seed: int = 0, rtol: float = 1e-9, scale: float = 1.0
) -> list[Mapping[str, int]]:
    """Trace a function once, and compare its runs with NumPy's for all values of symbols and integer
    arguments for which the guards hold, which are returned."""
    traced = region_of(function)
    runs = [_interpreted(traced), _compiled(traced)]
    visible = [a for a in traced.region.arrays if a.role != "temp"]
    served = []
    for sizes in every:
        if not all(dims.evaluate(guard, sizes) for guard in traced.region.guards):
            continue
        served.append(sizes)
        r = np.random.default_rng(seed)
        given: dict[str, Any] = {}
        for p in traced.parameters:
            shape = tuple([dims.evaluate(n, sizes) for n in p.shape])
            drawn = (r.random(shape) * scale + 0.5).astype(p.dtype)
            given[p.name] = (
                sizes[p.name] if p.kind == "size" else drawn if p.kind == "array" else float(drawn)
            )
        expected = {name: x.copy() if isinstance(x, np.ndarray) else x for name, x in given.items()}
        with np.errstate(all="ignore"):
            returned = function(**expected)
        wanted = {"none": (), "one": (returned,), "tuple": returned}[traced.returns]
        for run in runs:
            inputs = iter(traced.inputs)
            arrays = []
            for a in visible:
                shape = tuple([dims.evaluate(n, sizes) for n in a.shape])
                name = next(inputs) if a.role in ("in", "inout") else ""
                value = given.get(name, eval(name) if name not in given and name else None)
                arrays.append(np.array(value, a.dtype) if name else np.full(shape, 99, a.dtype))
            run(arrays, tuple([sizes[s.name] for s in traced.region.symbols]))
            after = {a.name: x for a, x in zip(visible, arrays, strict=True)}
            for p in traced.parameters:
                if p.kind == "array" and p.symbol:
                    same(after[p.symbol], expected[p.name], rtol, f"{p.name} at {sizes}")
            for result, value in zip(traced.results, wanted, strict=True):
                if result.kind in ("array", "scalar"):
                    same(after[result.name], np.asarray(value), rtol, f"result at {sizes}")
                elif result.kind == "value":
                    assert result.value == value
                else:
                    assert value is expected[result.name]
    return served


def same(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], rtol: float, what: str) -> None:
    assert a.shape == b.shape and a.dtype == b.dtype, what
    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol, err_msg=what)
