"""Faults inside of compiled code's own machinery: the program's output is Python's, and nothing half done."""

import builtins
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from written import written

import dcarray as dc
from dcarray.jit.loops.sites.functions import give, put_sites, with_sites
from dcarray.jit.loops.sites.outcome import Outcome
from dcarray.jit.loops.sites.site import Site
from dcarray.jit.loops.sites.watch import Watch
from dcarray.plans import client

pytestmark = pytest.mark.faults

PROGRAMS = {
    "arrays": """
        def f(rng):
            a, b = np.arange(300.0), np.zeros(300)
            for r in range(3):
                for i in range(1, 299):
                    a[i] = a[i] + 0.5 * a[i - 1]
                    b[i] += a[i]
                s = a.sum() + r
            return a, b, s
    """,
    "lists": """
        def f(rng):
            x, rows = [1.0, 2.0, 3.0, 4.0] * 9, [[1, 2], [3, 4], [5, 6]]
            out = [0]
            for r in range(3):
                for i in range(1, len(x)):
                    x[i] = x[i] + x[i - 1]
                    out.append(i + r)
                for row in range(3):
                    for k in range(2):
                        rows[row][k] += row * k + r
            return x, rows, out
    """,
    "objects": """
        class P:
            def __init__(self):
                self.x, self.t, self.n = np.ones(50), 0.0, 0

            def step(self, dt):
                for i in range(50):
                    self.x[i] = self.x[i] * dt + i
                    self.t += dt
                    self.n += 1

        def f(rng):
            p = P()
            for r in range(4):
                p.step(0.5 + r)
            return p.x, p.t, p.n
    """,
    "draws": """
        def f(rng):
            s = 0.0
            for r in range(3):
                for i in range(40):
                    s = s * 0.5 + rng.random()
            return s, rng.random()
    """,
    "stacks": """
        def f(rng):
            todo, seen = [0], 0
            for r in range(3):
                todo.append(r)
                while todo:
                    k = todo.pop()
                    seen += k
                    if k < 20:
                        todo.append(k + 1)
                        todo.append(k + 3)
            return todo, seen
    """,
}


STUB = """
def stub(*args, **named):
    return dcarray_fault("KEY", args, named)

def raising():
    raise ArithmeticError("a fault")
"""
BORDER = give, put_sites, with_sites
FOLDERS = ("dcarray.jit.loops.sites.", "dcarray.jit.loops.entry.", "dcarray.plans.")


def internal() -> dict[str, FunctionType]:
    """The functions and methods on the way of a site's call, by name."""
    found: dict[str, FunctionType] = {}
    for name, module in list(sys.modules.items()):
        if name.startswith(FOLDERS) and "sampler" not in name:
            kinds = [one for one in vars(module).values() if isinstance(one, type) and one.__module__ == name]
            for owner in (module, *kinds):
                for value in vars(owner).values():
                    value = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
                    border = owner in (Outcome, Site, Watch) or value in BORDER
                    if (
                        type(value) is FunctionType
                        and value.__module__ == name
                        and not (value.__closure__ or border)
                    ):
                        found[f"{name}.{value.__qualname__}"] = value
    return found


@contextmanager
def faults(names: list[str], at: int) -> Iterator[dict[str, int]]:
    """A context in which the call ``at`` of each of these functions raises, and calls are counted."""
    counts = dict.fromkeys(names, 0)
    held: dict[str, tuple[Any, ...]] = {}
    scope: dict[str, Any] = {"__name__": "dcarray.fault"}
    exec(STUB, scope)

    def called(key: str, args: Any, named: Any) -> Any:
        counts[key] += 1
        if counts[key] == at:
            scope["raising"]()
        return held[key][-1](*args, **named)

    known = internal()
    called = FunctionType(called.__code__, scope, "called", None, called.__closure__)  # type: ignore[assignment]
    vars(builtins)["dcarray_fault"] = called
    try:
        for name in names:
            f = known[name]
            copy = FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__)
            copy.__kwdefaults__ = f.__kwdefaults__
            held[name] = f, f.__code__, f.__defaults__, f.__kwdefaults__, copy
            code = scope["stub"].__code__
            consts = tuple([name if c == "KEY" else c for c in code.co_consts])
            f.__defaults__ = f.__kwdefaults__ = None
            f.__code__ = code.replace(co_consts=consts)
        yield counts
    finally:
        for f, code, defaults, kwdefaults, _ in held.values():
            f.__code__, f.__defaults__, f.__kwdefaults__ = code, defaults, kwdefaults
        del vars(builtins)["dcarray_fault"]


def outcome(
    program: str, sited: bool, tmp_path: Any, resumed: bool = False, between: Any = None, **options: Any
) -> tuple[str, int]:
    """What a program returns, as a text, and how many compiled runs it had.  Its loops are compiled from
    their beginning, or from an iteration on; ``between`` is called after each of its runs."""
    import random

    f = written(PROGRAMS[program], np=np)
    found = []
    with dc.options(**{"jit": "eager", "cache_dir": tmp_path, **options}):
        dc.report(reset=True)
        functions = [f, *[one for one in vars(f.__globals__.get("P", object)).values() if callable(one)]]
        for one in functions if sited else ():
            if type(one) is FunctionType:
                for site in put_sites(one):
                    site.enabled = site.outer is None and not resumed
                    site.resuming = site.resumable and resumed
        for k in range(3):
            found.append(f(random.Random(k)))
            if between is not None:
                between()
        report = dc.report()
    return repr(found), report.loops + report.runs


WAYS = [(program, resumed) for program in PROGRAMS for resumed in (False, True)]


@pytest.mark.parametrize(("program", "resumed"), WAYS)
def test_a_fault_of_any_step_leaves_the_statements_to_python(
    program: str, resumed: bool, tmp_path: Any
) -> None:
    expected, _ = outcome(program, False, tmp_path)
    assert outcome(program, True, tmp_path, resumed)[1] > 0
    names = [*internal()]
    with faults(names, -1) as counts:
        assert outcome(program, True, tmp_path, resumed)[0] == expected
    share = names[WAYS.index((program, resumed)) :: len(WAYS)]  # to have all fail takes minutes
    wrong = []
    for name, at in {(one, at) for one in share for at in (1, counts[one]) if at <= counts[one]}:
        if name.endswith(("._settle", ".count", ".has_numpy")):
            continue  # for the report, or called by this test
        with faults([name], at):
            try:
                got = outcome(program, True, tmp_path, resumed)[0]
            except Exception as error:
                got = repr(error)
        if got != expected:
            wrong.append(f"call {at} of {counts[name]} of {name}: {got[:200]}")
    assert not wrong


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_planning_process_that_is_killed_again_and_again_changes_no_result(
    program: str, tmp_path: Any
) -> None:
    def kill() -> None:
        process = client.CLIENT._process
        if process is not None and process._pid:
            with suppress(OSError):
                os.kill(process._pid, signal.SIGKILL)

    expected, _ = outcome(program, False, tmp_path)
    for between in (kill, dc.wait, lambda: (dc.wait(), kill())):
        found, _ = outcome(program, True, tmp_path, between=between, jit="background")
        assert found == expected


def test_damaged_files_of_the_cache_change_no_result(tmp_path: Any) -> None:
    """Each file is cut, or other bytes, or empty."""
    texts = [
        textwrap.dedent(text).replace("f(rng)", f"f{k}(rng)") for k, text in enumerate(PROGRAMS.values())
    ]
    calls = ["import random, numpy as np", *texts, "for k in range(4):"]
    calls += [f"    print(f{k}(random.Random(k)))" for k in range(len(texts))]
    program, folder = tmp_path / "program.py", tmp_path / "cache"
    program.write_text("\n".join(calls))
    environment = {**os.environ, "DCARRAY_CACHE_DIR": str(folder), "DCARRAY_JIT": "eager"}

    def output(*words: str) -> str:
        command = [sys.executable, *words, str(program)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout + done.stderr

    expected = output()
    assert output("-m", "dcarray", "run") == expected
    for turn in range(3):
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        assert len(files) > 3
        for k, path in enumerate(files):
            held = path.read_bytes()
            path.write_bytes([held[: len(held) // 2], bytes(reversed(held)), b""][(k + turn) % 3])
        assert output("-m", "dcarray", "run") == expected
