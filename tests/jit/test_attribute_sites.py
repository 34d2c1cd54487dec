"""Statements of methods, in which the attributes of ``self`` are names to compiled code."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dcarray as dc
from dcarray.core.counters import counters
from dcarray.jit.loops.sites import modules
from dcarray.jit.loops.sites.site import Site
from dcarray.jit.loops.syntax.attributes import attributes_as_names, shown

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
def hot(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Sites that are hot from the start."""
    made = Site.__init__

    def heated(self: Site, *args: Any) -> None:
        made(self, *args)
        self.heat()

    monkeypatch.setattr(Site, "__init__", heated)
    with dc.options(jit="eager", cache_dir=None):
        yield


def compare(source: str, file: Path) -> int:
    """Compare what a program prints plainly, and with sites; returns how often these ran."""
    file.write_text(source)
    said = []
    for compiled in (False, True):
        names: dict[str, Any] = {"__name__": "__main__"}
        code = compile(source, file, "exec")
        if compiled:
            code = modules.compile_module(source, str(file), names, True)
        before, text = counters.runs + counters.loops, io.StringIO()
        with contextlib.redirect_stdout(text):
            exec(code, names)
        said.append(text.getvalue())
    assert said[0] == said[1]
    return counters.runs + counters.loops - before


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
        "    @property\n    def dt(self): print('read'); return 0.5\n    @dt.setter\n    def dt(self, v): print('set', v)",
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
