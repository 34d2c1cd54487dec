"""The loops of NPBench's kernels that are traced; NPBENCH is a checkout of it."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loop_requests import request

from dcarray.core.errors import Untraceable
from dcarray.jit.loops.tracing.trace import trace

SUITE = Path(os.environ.get("NPBENCH", ""))
TRACED = [
    "adi", "azimint_naive", "cavity_flow", "channel_flow", "cholesky", "correlation", "covariance",
    "crc16", "deriche", "durbin", "fdtd_2d", "floyd_warshall", "go_fast", "gramschmidt", "heat_3d",
    "jacobi_1d", "jacobi_2d", "lu", "ludcmp", "mandelbrot1", "nbody", "nussinov",
    "scattering_self_energies", "seidel_2d", "spmv", "symm", "syr2k", "syrk", "trisolv", "trmm", "vadv",
]  # fmt: skip


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # where `inspect` looks
    spec.loader.exec_module(module)
    return module


def kernel(name: str) -> tuple[Any, list[Any]]:
    """A kernel and its arguments of the smallest size."""
    info = json.loads((SUITE / "bench_info" / f"{name}.json").read_text())["benchmark"]
    folder = SUITE / "npbench" / "benchmarks" / info["relative_path"]
    values = dict(info["parameters"]["S"])
    if "init" in info:
        setup = load(folder / f"{info['module_name']}.py")
        made = getattr(setup, info["init"]["func_name"])(*[values[a] for a in info["init"]["input_args"]])
        outputs = info["init"]["output_args"]
        values.update(zip(outputs, (made,) if len(outputs) == 1 else made, strict=True))
    function = getattr(load(folder / f"{info['module_name']}_numpy.py"), info["func_name"])
    return function, [values[a] for a in info["input_args"]]


def loops(function: Any, args: list[Any]) -> list[str]:
    """For each loop of a function why it is not traced, or an empty text."""
    given = inspect.signature(function).bind(*args)
    given.apply_defaults()
    names = {**function.__globals__, **given.arguments}
    body = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0].body  # type: ignore[attr-defined]
    found = []
    for k, stmt in enumerate(body):
        if isinstance(stmt, ast.For | ast.While):
            later = {n.id for s in body[k + 1 :] for n in ast.walk(s) if isinstance(n, ast.Name)}
            bound = {n.id for n in ast.walk(stmt) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            rebound = {n.id for s in body[k + 1 :] for n in ast.walk(s) if isinstance(n, ast.Name)
                       and isinstance(n.ctx, ast.Store)}  # fmt: skip
            try:
                trace(request(ast.unparse(stmt), names, (later & bound) - rebound))
                found.append("")
            except Untraceable as reason:
                found.append(str(reason))
        elif not isinstance(
            stmt, ast.Return
        ):  # what loops compute matters to no other loop's kinds and shapes
            with np.errstate(all="ignore"):
                exec(compile(ast.Module([stmt], []), "kernel", "exec"), names)
    return found


@pytest.mark.skipif(not (SUITE / "bench_info").is_dir(), reason="NPBENCH names no checkout of NPBench")
@pytest.mark.parametrize("name", TRACED)
def test_kernel(name: str) -> None:
    found = loops(*kernel(name))
    assert found and not any(found), found
