"""Plans and code on disk are found by keys that cover all the source that they depend on."""

import ast
import importlib.util
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dcarray as dc
from dcarray.lowering.program import code_cache
from dcarray.plans import disk_store, provider

PACKAGE = Path(disk_store.__file__).resolve().parents[1]
NATIVE = {"dcarray._native", "dcarray._native.extension"}  # `core.native` has its revision
PLANNING = """
import pickle, sys
import dcarray
before = set(sys.modules)
from dcarray.plans import server
for request in pickle.load(sys.stdin.buffer):
    reply = server.answer(request)
    assert reply[0] == "plan", reply
print(*sorted(name for name in set(sys.modules) - before if name.startswith("dcarray.")))
"""


@dc.accelerate
def loop(a, b, n):
    for k in range(1, n):
        for j in range(1, n):
            a[k, j] = a[k - 1, j - 1] * 0.5 + b[k]


def program(a, b, n):
    loop(a, b, n)
    a = dc.asarray(a)
    c = (a @ a + np.sqrt(abs(a))).sum(axis=0)
    a[2:5] = c
    return np.asarray(np.where(c > 0, c, np.cumsum(c)))


@pytest.fixture(scope="module")
def planning():
    """The modules that a process imports to plan: a loop, and logs with and without symbols, for either
    target; and those of this package that these import, as far as they are loaded."""
    asked = []
    with pytest.MonkeyPatch.context() as patch, dc.options(jit="eager", eager_below=0, cache_dir=""):
        obtained = provider.obtain

        def noted(request, *others):
            asked.append(request)
            return obtained(request, *others)

        patch.setattr(provider, "obtain", noted)
        for n in (65, 65, 65, 66, 66, 67, 67):
            program(np.ones((n, n)), np.ones(n), n)
    assert len({type(request) for request in asked}) == 2
    requests = [request._replace(target=target) for request in asked for target in ("cpu", "c")]
    given = pickle.dumps(requests)
    done = subprocess.run(
        [sys.executable, "-c", PLANNING], input=given, capture_output=True, cwd=PACKAGE.parent
    )
    assert done.returncode == 0, done.stderr.decode()
    todo, found = done.stdout.decode().split(), {*NATIVE}
    while todo:
        name = todo.pop()
        if name not in found and name.startswith("dcarray.") and importlib.util.find_spec(name):
            found.add(name)
            todo += imports(name)
    return found - NATIVE


def imports(name):
    """The modules that a module imports when it is imported."""
    spec = importlib.util.find_spec(name)
    package = name if spec.submodule_search_locations else name.rpartition(".")[0]
    for node in ast.parse(Path(spec.origin).read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                try:
                    yield inner if importlib.util.find_spec(inner) else base
                except ModuleNotFoundError:
                    yield base


def outside(names, folders):
    """The modules of which the source is in none of some folders."""
    files = {name: Path(importlib.util.find_spec(name).origin).resolve() for name in names}
    return sorted(n for n, file in files.items() if not any(file.is_relative_to(f) for f in folders))


def test_the_key_of_a_plan_covers_all_that_plans(planning):
    assert {"dcarray.ir.build", "dcarray.jit.loops.tracing.trace", "dcarray.core.errors"} <= planning
    assert not outside(planning, [Path(folder).resolve() for folder in disk_store.source_folders()])


@pytest.mark.parametrize("target", ["dcarray.lowering.cpu.llvm.target", "dcarray.lowering.cpu.c.target"])
def test_the_key_of_code_covers_all_that_compiles(target):
    code = (
        f"import dcarray, sys; before = set(sys.modules); import {target}; print(*set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PACKAGE.parent)
    loaded = {name for name in done.stdout.split() if name.startswith("dcarray.")}
    assert target in loaded, done.stderr
    assert not outside(loaded, [Path(folder).resolve() for folder in code_cache.source_folders()])
