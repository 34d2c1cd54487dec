"""Attributes of ``self``, and items that are appended to lists, as names of compiled code."""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from hypothesis import given, settings
from random_source import indent, programs

import dcarray as dc
from dcarray.core.counters import settle
from dcarray.jit.loops.sites import modules
from dcarray.jit.loops.sites.site import Site
from dcarray.jit.loops.syntax.attribute_names import shown
from dcarray.jit.loops.syntax.attributes import attributes_as_names

HEAD = """
import numpy as np

class Particles:
    G = 2.5
    def __init__(self, n=30):
        r = np.random.default_rng(0)
        self.x = r.random((n, 3)); self.v = r.random((n, 3)); self.f = np.zeros((n, 3))
        self.dt = 0.01; self.t = 0.0; self.k = 0; self.w = self.x
"""
STEP = """
    def step(self):
        self.v += 0.5 * self.dt * self.f
        self.x = (self.x + self.dt * self.v) % 2.0
        self.f = -self.G * self.x
        self.t += self.dt
        self.k += 1
"""
RUN = """
p = {name}()
for _ in range(4):
    p.step()
print(p.x.tolist(), p.v.tolist(), p.f.tolist(), p.w.tolist(), p.t, p.k, sorted(vars(p)))
"""


@pytest.fixture(autouse=True)
def eager() -> Iterator[None]:
    """Plans are made at once."""
    with dc.options(jit="eager", cache_dir=None):
        yield


def heat(code: CodeType) -> None:
    """Have all sites of a code object ask for plans."""
    for one in code.co_consts:
        if isinstance(one, Site):
            one.heat()
        elif isinstance(one, CodeType):
            heat(one)


def compare(source: str, file: Path) -> int:
    """Compare what a program prints plainly, and with sites; returns how often these ran."""
    file.write_text(source)
    said = []
    for compiled in (False, True):
        names: dict[str, Any] = {"__name__": "__main__"}
        code = compile(source, file, "exec")
        if compiled:
            code = modules.compile_module(source, str(file), names, True)
            heat(code)
        before, text = settle().runs + settle().loops, io.StringIO()
        with contextlib.redirect_stdout(text):
            exec(code, names)
        said.append(text.getvalue())
    assert said[0] == said[1]
    return settle().runs + settle().loops - before


def test_attributes_are_read_and_bound(tmp_path: Path) -> None:
    assert compare(HEAD + STEP + RUN.format(name="Particles"), tmp_path / "program.py") >= 4


def test_loops_over_attributes(tmp_path: Path) -> None:
    loop = """
    def step(self):
        for i in range(5):
            self.x[i] += self.dt * self.v[i + 1]
            self.t += self.x[i, 0]
            self.last = i
"""
    assert compare(HEAD + loop + RUN.format(name="Particles"), tmp_path / "program.py") >= 4


def test_one_array_of_two_names(tmp_path: Path) -> None:
    step = """
    def step(self):
        a = self.x
        self.x += 1.5
        self.v = a
        self.k += int(self.v is self.x)
        return a * 2
"""
    compare(HEAD + step + RUN.format(name="Particles"), tmp_path / "program.py")


@pytest.mark.parametrize(
    "other",
    [
        "    @property\n    def dt(self): print('read'); return 0.5\n"
        "    @dt.setter\n    def dt(self, v): print('set', v)",
        "    def __setattr__(self, name, v): print(name); super().__setattr__(name, v)",
        "    def __getattribute__(self, name): print(name); return super().__getattribute__(name)",
        "    def __getattr__(self, name): print(name); return 1.0",
    ],
)
def test_attributes_that_run_code(other: str, tmp_path: Path) -> None:
    program = f"{HEAD}{STEP}\nclass Other(Particles):\n{other}\n" + RUN.format(name="Other")
    runs = compare(program, tmp_path / "program.py")
    assert runs <= 1 or "__getattr__" in other


def test_missing_attributes(tmp_path: Path) -> None:
    step = """
    def step(self):
        self.x = self.x * self.missing
"""
    run = "p = Particles()\ntry: p.step()\nexcept AttributeError as e: print(e)\n"
    assert compare(HEAD + step + run, tmp_path / "program.py") == 1  # of ``__init__``


def test_names_in_place_of_attributes() -> None:
    found = attributes_as_names("self.v += ä * self.f[self.k]\nself.n = self.v.sum()", frozenset())
    assert found is not None
    assert shown(found.source) == "self.v += ä * self.f[self.k]\nself.n = self.v.sum()"
    assert (found.read, found.written) == (("f", "k", "v"), ("n", "v"))
    assert attributes_as_names("y = g(self)", frozenset()) is None
    assert attributes_as_names("y = self.method()", frozenset()) is None


SERIES = """
import numpy as np
from collections import deque

class Named(list):
    def append(self, item):
        super().append(("named", item))

def run(n, out):
    x, t = np.arange(4.0), 0.5
    other = [x]
    for k in range(n):
        x = x + 0.5 * x * t
        t += 0.25
        out.append(x)
        other.append((t, k))
        x[0] *= 0.5
        out.append(
            x[1] * 2,  # one item, with a comma
        )
        out.append(x.copy())
        out.append(x[1:])
        y = x * 2
    return out, other, y, [a is b for a in out for b in out]

def read(n):
    a = [1.0, 2.0]
    b, x = a, np.ones(3)
    for k in range(n):
        x = x * 1.5 + b[-1]
        a.append(float(x[0]))
        x = x + 1.0
    return a, x, len(a)
"""


def test_items_are_appended(tmp_path: Path) -> None:
    for made, least in (("[]", 6), ("Named()", 0), ("deque()", 0)):
        runs = compare(f"{SERIES}\nprint(run(6, {made}))\nprint(read(4))\n", tmp_path / "program.py")
        assert runs >= least


def test_items_at_module_level(tmp_path: Path) -> None:
    source = """
import numpy as np
u, log = np.zeros(5), []
for k in range(9):
    u = u + k * 0.5
    log.append(u.max())
    log.append(u)
    u = u * 0.5
print(log, u, sorted(name for name in dict(globals()) if "append" in name))
"""
    compare(source, tmp_path / "program.py")
    assert (
        compare(
            source.replace(', sorted(name for name in dict(globals()) if "append" in name)', ""),
            tmp_path / "p.py",
        )
        >= 9
    )


def test_names_in_place_of_items() -> None:
    source = "y = x + 1\nlog.append(y * 2)\nlog.append(\n    y[0],\n)"
    found = attributes_as_names(source, frozenset("y"), frozenset({"log"}))
    assert found is not None and found.lists == ("log", "log")
    names: dict[str, Any] = {"x": 1}
    exec(found.source.replace("y[0]", "y"), names)
    assert [names[name] for name in sorted(names) if name.startswith("appended")] == [4, 2]


@settings(max_examples=60, derandomize=True, deadline=None)
@given(programs)
def test_random_methods_behave_as_before(body: list[str]) -> None:
    """Methods of random statements, some names of which are attributes, and which append to a list."""
    lines = [re.sub(r"\b([abc])\b", r"self.\1", line) for line in body]
    lines = [f"{line}; log.append(d)" if line.lstrip().startswith("e =") else line for line in lines]
    source = "\n".join(
        [
            "from contextlib import suppress",
            "class Thing:",
            "    a, b = 1, 2",
            "    def run(self, d, e, log):",
            *indent(indent(lines)),
            "thing, log = Thing(), []",
            "for k in range(3):",
            "    try: log.append(thing.run(k, 1, log))",
            "    except Exception as error: print(type(error), error)",
            "print(sorted(vars(thing).items()), log)",
        ]
    )
    with tempfile.TemporaryDirectory() as folder:
        compare(source, Path(folder) / "program.py")
