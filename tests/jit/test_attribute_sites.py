"""Parts of objects, and items that are appended to lists, as names of compiled code."""

import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_source import indent, programs
from sited_programs import compare

import dcarray as dc
from dcarray.jit.loops.sites.path_naming import NamedStatements, named_statements
from dcarray.jit.loops.syntax.access_paths import Unnamed
from dcarray.jit.loops.syntax.path_names import Path as AccessPath
from dcarray.jit.loops.syntax.path_names import Step, shown

pytestmark = pytest.mark.eager

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


@pytest.mark.parametrize("other", [
    "    @property\n    def dt(self): print('read'); return 0.5\n"
    "    @dt.setter\n    def dt(self, v): print('set', v)",
    "    def __setattr__(self, name, v): print(name); super().__setattr__(name, v)",
    "    def __getattribute__(self, name): print(name); return super().__getattribute__(name)",
    "    def __getattr__(self, name): print(name); return 1.0",
])  # fmt: skip
def test_attributes_that_run_code(other: str, tmp_path: Path) -> None:
    program = f"{HEAD}{STEP}\nclass Other(Particles):\n{other}\n" + RUN.format(name="Other")
    runs = compare(program, tmp_path / "program.py")
    assert runs <= 1 or "__getattr__" in other


def test_a_look_at_an_object_without_a_dictionary_runs_no_code(tmp_path: Path) -> None:
    program = """
class Kind(type):
    def __getattr__(cls, name):
        print(name)
        raise AttributeError(name)

class Value(metaclass=Kind):
    x = 2.0

class Slots:
    __slots__ = "found", "value"
    shared = Value()
    def __init__(self): self.found, self.value = {}, 1.0
    def __getattr__(self, name):
        print(name)
        if name in self.found: return self.found[name]
        raise AttributeError(name)

def run(one, n):
    s = 0.0
    for k in range(n):
        one.found["k"] = k
        one.value += one.shared.x
        s += one.k + one.value
    return s

for _ in range(4): print(run(Slots(), 12))
"""
    compare(program, tmp_path / "program.py")


def test_missing_attributes(tmp_path: Path) -> None:
    step = """
    def step(self):
        self.x = self.x * self.missing
"""
    run = "p = Particles()\ntry: p.step()\nexcept AttributeError as e: print(e)\n"
    assert compare(HEAD + step + run, tmp_path / "program.py") == 1  # of ``__init__``


class Numbers:
    """An object all parts of which are numbers."""

    f = k = n = v = x = 1.0


def named(source: str, live: str = "", lists: tuple[str, ...] = ()) -> NamedStatements:
    """What becomes of statements in which ``self`` and ``cfg`` are objects."""
    values = {"self": Numbers(), "cfg": {"key": 1.0, 3: 2.0}}
    return named_statements(source, frozenset(live), lists, values, frozenset(values), {})


def test_names_in_place_of_paths() -> None:
    source = 'self.v += ä * self.f[self.k]\nself.n = self.v.sum() + cfg["key"] * cfg[3] + x[0]'
    found = named(source)
    assert shown(found.source) == source
    assert [str(path) for _, path in found.read] == ["cfg[3]", 'cfg["key"]', "self.f", "self.k", "self.v"]
    assert [str(path) for _, path in found.written] == ["self.v", "self.n"]
    with pytest.raises(Unnamed, match="names like those"):
        named("y = self__dot__x")
    with pytest.raises(Unnamed, match="deletes parts"):
        named("del self.x")
    path = AccessPath(
        "a", (Step("attribute", "b"), Step("item", "c"), Step("item", 4), Step("attribute", "d_2"))
    )
    assert str(path) == 'a.b["c"][4].d_2' and path.name.isidentifier()


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
    found = named(source, "y", ("log", "log"))
    assert found.lists == ("log", "log")
    names: dict[str, Any] = {"x": 1}
    exec(found.source.replace("y[0]", "y"), names)
    assert [names[name] for name in sorted(names) if name.startswith("appended")] == [4, 2]


OBJECTS = """
import numpy as np, types
from collections import namedtuple
from dataclasses import dataclass, field

@dataclass
class Grid:
    n: int = 40
    h: float = 0.25
    u: np.ndarray = field(default_factory=lambda: np.linspace(0.0, 1.0, 40))

class Slots:
    __slots__ = ("dt", "t")
    def __init__(self): self.dt, self.t = 0.01, 0.0

class Physics:
    nu = 0.1
    c = 3

Limits = namedtuple("Limits", "low high")
grid, clock, physics = Grid(), Slots(), Physics()
cfg = {"steps": 30, "nu": 0.3, "grid": grid, 7: 2.0}
space = types.SimpleNamespace(grid=grid, total=0.0, names=["a"])
limits = Limits(0.1, 0.9)
"""


@pytest.mark.parametrize(("step", "call"), [
    ("for i in range(1, g.n - 1):\n g.u[i] += g.h * (g.u[i - 1] - g.u[i])", "(grid, clock)"),
    ("for i in range(g.n):\n c.t += c.dt * g.u[i]", "(grid, clock)"),
    ('for i in range(g["steps"]):\n c.t += g["nu"] * g["grid"].u[i] + g[7]', "(cfg, clock)"),
    ('for i in range(30):\n g["nu"] += 0.5 * i\n g["new"] = i', "(cfg, clock)"),
    ("for i in range(g.grid.n):\n g.total += g.grid.u[i] * g.grid.h", "(space, clock)"),
    ("for i in range(g.u.size):\n g.u[i] = min(max(g.u[i], c.low), c.high)", "(grid, limits)"),
    ("for i in range(20):\n g.u[i] += Physics.nu * Physics.c * i", "(grid, clock)"),
    ("for i in range(20):\n g.u[i] += physics.nu * cfg['nu'] * i", "(grid, clock)"),
    ("for i in range(20):\n g.u[i] += np.sin(g.h * i) + np.pi", "(grid, clock)"),
    ("g.u = g.u * 2 + c.dt\ng.u, g.old = g.u + 1, g.u\nc.t += g.h", "(grid, clock)"),
    ("for i in range(20):\n c.t = c.t + g.u[i] if g.u[i] > 0.2 else c.t - i", "(grid, clock)"),
])  # fmt: skip
def test_parts_of_objects(step: str, call: str, tmp_path: Path) -> None:
    lines = [
        OBJECTS, "def step(g, c):", *indent(step.split("\n")), "for k in range(3):", f"    step{call}",
        "print(vars(grid), clock.dt, clock.t, cfg, space, limits)",
    ]  # fmt: skip
    assert compare("\n".join(lines), tmp_path / "program.py") >= 3


@pytest.mark.parametrize(("first", "second"), [("a.u", "a.v"), ("b['u']", "b['v']")])
def test_parts_appear_in_the_order_of_execution(first: str, second: str, tmp_path: Path) -> None:
    text = f"""
import types
def step(a, b, x):
    if x > 2.0:
        {first} = x * 2.0
        {second} = x + 1.0
    else:
        {second} = x * 0.5
        {first} = x * x
for k in range(60):
    a, b = types.SimpleNamespace(), {{}}
    for _ in range(k % 3): step(a, b, k % 5 * 1.0)
    print(a, b)
"""
    compare(text, tmp_path / "program.py")


@pytest.mark.parametrize(("step", "call"), [
    ("for i in range(20):\n a.x += 1.0\n b.x += a.x", "(p, p)"),
    ("for i in range(20):\n a.x += 1.0\n b.x += a.x", "(p, q)"),
    ("for i in range(20):\n a.q.x += 1.0\n b.x += a.q.x", "(p, p.q)"),
    ("for i in range(20):\n a.x += a.q.x\n b.q = i", "(p, q)"),
    ("for i in range(20):\n a.x += a.q.x\n b.q = i", "(p, p)"),
    ("for i in range(20):\n a.x += b['x']\n b['x'] += 1.0", "(p, vars(p))"),
    ("for i in range(20):\n a.x += 1.0\n a = b", "(p, q)"),
    ("for i in range(20):\n a.x += a.twice", "(p, q)"),
    ("for i in range(20):\n a.x += len(b)", "(p, {'x': 1})"),
    ("for i in range(20):\n a.x += b['x'] + b['missing']", "(p, {'x': 1})"),
    ("for i in range(20):\n if i == 7: a.first = i\n a.x += i", "(p, q)"),
    ("for i in range(20):\n if i == 7: a.count = i\n a.x += i", "(p, q)"),
    ("for i in range(a.n):\n a.n -= 1\n a.x += i", "(p, q)"),
    ("for i in range(20):\n a.x += b.x", "(p, np.float64(2.0))"),
    ("for i in range(20):\n a.x += a.lazy[0]", "(p, q)"),
    ("for i in range(20):\n a.x += other.value * i\n other.value += 1", "(p, q)"),
])  # fmt: skip
def test_objects_with_two_names(step: str, call: str, tmp_path: Path) -> None:
    """Parts that are bound and that something else may be bound to, or that are computed, are right."""
    lines = [
        "import sys, types", "import numpy as np", "from functools import cached_property",
        "class Thing:", "    count = 0",
        "    def __init__(self, q): self.x, self.n, self.q = 1.5, 12, q", "    @property",
        "    def twice(self): print('read'); return 2 * self.x", "    @cached_property",
        "    def lazy(self): print('made'); return np.arange(3.0) + 1",
        "other = types.ModuleType('other')", "other.value = 0.5", "def step(a, b):",
        *indent(step.split("\n")), "q = Thing(None)", "p = Thing(q)", "for k in range(4):",
        f"    try: step{call}", "    except Exception as error: print(type(error), error)",
        "print(p.x, p.n, p.q is q, q.x, q.n, sorted(vars(p)), sorted(vars(q)), Thing.count)",
        "print(vars(other)['value'])",
    ]  # fmt: skip
    compare("\n".join(lines), tmp_path / "program.py")


METHODS = """
import numpy as np

class Law:
    def __init__(self, k): self.k, self.table = k, np.linspace(0.0, 1.0, 16)
    def force(self, x, power=1): return -self.k * x ** power + self.table[2]

class Body:
    count = 5
    def __init__(self, law):
        self.law, self.x, self.v, self.m, self.t = law, np.arange(30.0), np.ones(30), 2.0, 0.0
    @property
    def size(self): return self.x.shape[0]
    @property
    def half(self): return self.m / 2
    @staticmethod
    def square(a): return a * a
    def speed(self, i): return self.square(self.v[i]) * self.half
    def pull(self, i, *, scale=1.0): return self.law.force(self.x[i], power=2) * scale / self.m
    def both(self, other, i): return self.speed(i) - other.speed(i) + gap(other, self, i)
    def itself(self, n): return 1 if n < 2 else n * self.itself(n - 1)
    def moves(self, dt): self.t += dt; return self.t
    def turns(self, other, i):
        if i % 2:
            self.t, other.m = other.m, self.t + i
        return other.m - 1, self.t
    def early(self, i):
        if i > 20: return
        self.t += i
    def deep(self, other, i):
        'Moves both.'
        self.moves(0.25)
        other.moves(dt=i * 0.5)
        other.law.k += 1.0
    def swaps(self):
        self.x, self.v = self.v, self.x
        return self.x  # the old one
    def whole(self): return hash(self) * 0.0
    def fills(self, i): self.v[i] = 0.5 * self.t

def gap(a, b, i): return a.x[i] * b.m - offset()
def offset(): return cfg["offset"] * 0.5

cfg = {"offset": 3.0}
law = Law(0.5)
one, two = Body(law), Body(Law(0.25))
"""


@pytest.mark.parametrize(("step", "least"), [
    ("for i in range(a.size):\n a.v[i] += a.pull(i) * 0.01", 3),
    ("for i in range(a.size):\n a.v[i] += a.pull(i, scale=0.5) * a.law.force(a.t)", 3),
    ("for i in range(30):\n a.t += a.speed(i)", 3),
    ("for i in range(30):\n a.t += a.both(b, i) + Body.count", 3),
    ("for i in range(30):\n a.t += gap(a, b, i) + gap(b, i=i, b=a)", 3),
    ("for i in range(30):\n a.t += a.v[i] + offset()", 3),
    ("for i in range(30):\n a.fills(i)\n a.t += 1", 3),
    ("for i in range(30):\n a.v[i] = a.square(a.half + i)", 3),
    ("for i in range(30):\n a.v[i] = a.itself(3)", 0),
    ("for i in range(30):\n a.v[i] = a.moves(0.5)", 3),
    ("for i in range(30):\n a.moves(0.5)\n a.v[i] = a.t", 3),
    ("for i in range(30):\n a.t = a.moves(0.5) + 1", 3),
    ("for i in range(30):\n a.t, a.m = a.turns(b, i)", 3),
    ("for i in range(30):\n a.early(i)\n b.early(i)", 3),
    ("for i in range(30):\n a.deep(b, i)\n b.v[i] = b.m", 3),
    ("for i in range(30):\n x = a.swaps()\na.x = x + a.x", 3),
    ("for i in range(30):\n a.v[i] = a.whole()", 0),
    ("x = a.v * a.half\na.v = a.v + a.pull(2) * x\nb.v = np.maximum(a.v, b.speed(1))", 3),
    ("for i in range(30):\n a.v[i] = gap(\n  a, b,\n  i,\n )", 3),
])  # fmt: skip
def test_methods(step: str, least: int, tmp_path: Path) -> None:
    lines = [
        METHODS, "def step(a, b):", *indent(step.split("\n")), "for k in range(3):",
        "    step(one, two)", "    cfg['offset'] += 1",
        "for b in (one, two): print(b.x.tolist(), b.v.tolist(), b.m, b.t, b.law.k)",
    ]  # fmt: skip
    runs = compare("\n".join(lines), tmp_path / "program.py")
    assert runs >= least


def test_methods_that_change(tmp_path: Path) -> None:
    """A method that is replaced, in its class or on an object, is not the one that was compiled."""
    lines = [
        METHODS, "class Other(Body):", "    def pull(self, i): return 100.0", "def step(a):",
        "    for i in range(30): a.v[i] += a.pull(i)", "step(one); step(one)",
        "Body.pull = lambda self, i: 7.0 * i", "step(one)", "def pull(self, i): return self.m * i",
        "Body.pull = pull", "step(one); step(two)", "two.pull = lambda i: -1.0", "step(two); step(one)",
        "three = Other(law)", "step(three)", "law.__class__ = type('New', (Law,), {})", "step(one)",
        "for b in (one, two, three): print(b.v.tolist())",
    ]  # fmt: skip
    assert compare("\n".join(lines), tmp_path / "program.py") >= 4


PLACES = ["self.{}", "self.{}", "other.{}", "self.inner.{}", "state['{}']", "self.state['{}']", "STATE['{}']"]


@settings(max_examples=60, derandomize=True, deadline=None)
@given(programs, st.lists(st.sampled_from(PLACES), min_size=3, max_size=3))
def test_random_methods_behave_as_before(body: list[str], places: list[str]) -> None:
    """Methods of random statements, some names of which are parts of objects, and which append to a list."""
    body = [re.sub(r"\([abc] := ", "(d := ", line) for line in body]  # which binds no part of an object
    lines = [re.sub(r"\b([abc])\b", lambda m: places["abc".index(m[1])].format(m[1]), line) for line in body]
    lines = [f"{line}; log.append(d)" if line.lstrip().startswith("e =") else line for line in lines]
    source = "\n".join(
        [
            "from contextlib import suppress",
            "STATE = dict(a=1, b=2)",
            "class Thing:",
            "    a, b = 1, 2",
            "    def __init__(self, inner): self.inner, self.state = inner, STATE",
            "    def run(self, other, state, d, e, log):",
            *indent(indent(lines)),
            "one, log = Thing(None), []",
            "thing = Thing(one)",
            "for k in range(5):",
            "    other, state = [(thing, STATE), (one, {}), (Thing(one), dict(b=3, c=1))][k % 3]",
            "    try: log.append(thing.run(other, state, k, 1, log))",
            "    except Exception as error: print(type(error), error)",
            "    for t in (thing, one, other): print({k: v for k, v in vars(t).items() if k != 'inner'})",
            "    print(state)",
            "print(STATE, log)",
        ]
    )
    with tempfile.TemporaryDirectory() as folder:
        compare(source, Path(folder) / "program.py")


def test_explanations_have_the_names_of_the_program(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(HEAD + STEP)
    names: dict[str, Any] = {"__name__": "a_program"}
    exec(compile(file.read_text(), file, "exec"), names)
    with dc.options(jit="background"):
        dc.accelerate(names["Particles"])
        thing = names["Particles"]()
        text = str(dc.explain(names["Particles"].step, thing))
    assert "self.x[i, j]" in text
