"""Functions of accelerated code that libraries call: plain arrays there, wrapped ones here."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from dcarray.core.counters import counters
from dcarray.jit.boundary import Callback, has_callbacks
from dcarray.jit.library_stand_ins import LibraryFunction, library_stand_in

SIZES = pytest.mark.parametrize("n", [7, 30_000])

LIBRARY = '''
import functools

def decorated(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        return function(*args, **kwargs)
    return call

def apply(function, *args, **kwargs):
    """What SciPy does: the class of an array decides."""
    given = [type(a) is np.ndarray for a in args]
    result = function(*args, **kwargs)
    if not isinstance(result, np.ndarray):
        raise TypeError(f"expected numpy.ndarray, got {type(result)}")
    kept[:] = [result, *args]
    return given, result * 1

@decorated
def solve(options, x):
    for _ in range(options["steps"]):
        x = x - options["step"]([x, options["table"]])[0]
        assert type(x) is np.ndarray
    return x

def first(x):
    return type(x), x

def change_kept(value):
    kept[0][...] = value

def listed(function, x):
    return [row for row in function(x) if type(row) is np.ndarray]

class Holder:
    def __init__(self, function, x=None):
        self.function, self.x = function, x

    def at(self, x):
        return self.function(x)

kept = []
'''


@pytest.fixture(scope="module")
def lib() -> Iterator[Any]:
    """A library in Python that is not accelerated."""
    module = sys.modules["calling_back"] = types.ModuleType("calling_back")
    vars(module).update(np=np)
    exec(LIBRARY, vars(module))
    yield module
    del sys.modules["calling_back"]


@pytest.fixture
def program(lib: Any) -> Iterator[Callable[[str], Any]]:
    """Makes an accelerated module of a text, in which ``lib`` is the library."""
    held = []

    def make(text: str, **names: Any) -> Any:
        module = types.ModuleType("program")
        vars(module).update(lib=lib, np=np, apply=lib.apply, Holder=lib.Holder, partial=partial, **names)
        exec(text, vars(module))
        held.append(dc.accelerate(module))
        return module

    yield make
    for one in held:
        one.undo()


# ---- what crosses --------------------------------------------------------------------------------------
@SIZES
def test_a_library_that_calls_back_has_plain_arrays(n: int, program: Any) -> None:
    module = program(
        "def double(x, y): return np.sin(x) + y\n"
        "def run(x, y): return apply(double, x, y=y), lib.apply(lambda a: a * 2, x + 1)\n"
        "def kinds(x):\n    seen = []\n    apply(lambda a: (seen.append(a), a * 2)[1], x)\n    return seen[0]"
    )
    x, y = np.linspace(0, 1, n), np.ones(n)
    found = module.run(dc.asarray(x), dc.asarray(y))
    assert [given for given, _ in found] == [[True], [True]]
    assert all(type(result) is dc.ndarray for _, result in found)  # new ones are wrapped
    assert np.array_equal(found[0][1], np.sin(x) + y) and np.array_equal(found[1][1], (x + 1) * 2)
    wrapped = dc.asarray(x)
    if n > 7:
        assert module.kinds(wrapped) is wrapped  # the very array comes back to the function
        assert type(module.kinds(x)) is dc.ndarray


@SIZES
def test_without_functions_a_library_in_python_works_on_wrapped_arrays(n: int, program: Any) -> None:
    module = program("def run(x): return lib.first(x), lib.first(x=x)")
    x = dc.asarray(np.ones(n)) * 2
    for kind, same in module.run(x):
        assert kind is dc.ndarray and same is x


def test_functions_of_all_sorts(program: Any) -> None:
    module = program(
        "class Line:\n    def __init__(self, a): self.a = a\n    def __call__(self, x): return self.a * x\n"
        "    def method(self, x): return self.a * x\n"
        "    @classmethod\n    def two(cls, x): return np.add(x, x)\n"
        "def scaled(x, a): return np.multiply(x, a)\n"
        "def run(x):\n"
        "    line = Line(np.full(len(x), 2.0))\n"
        "    table = np.diag(np.full(len(x), 2.0))\n"
        "    every = [line, line.method, Line.two, lambda x: x * line.a, partial(scaled, a=line.a),\n"
        "             partial(np.add, x), table.dot, partial(np.dot, table), table.__matmul__]\n"
        "    return [lib.apply(function, x)[1] for function in every]"
    )
    x = np.arange(5.0)
    found = module.run(dc.asarray(x))
    assert len(found) == 9 and all(np.array_equal(one, 2 * x) for one in found)


@SIZES
def test_what_is_in_containers_is_handed_on(n: int, program: Any, lib: Any) -> None:
    module = program(
        "seen = []\ndef f(x, t, y):\n    seen[:] = [t, y[0]]\n    return x * t\n"
        "def run(x, t): return lib.solve({'steps': 1, 'step': lambda both: (f(both[0], *both[1]), 0), "
        "'table': (t, [t])}, x)"
    )
    t = dc.asarray(np.full(n, 0.5))
    found = module.run(dc.asarray(np.ones(n)), t)
    assert np.all(np.asarray(found) == 0.5) and module.seen[0] is t and module.seen[1] is t
    assert t._small is not None or not t._store.is_exported()  # so work on it may wait


def test_functions_in_containers_and_decorated_functions(program: Any, lib: Any) -> None:
    module = program(
        "def run(x):\n    step = lambda both: [both[0] / 2, both[1]]\n"
        "    options = {'steps': 3, 'table': x * 0, 'step': step}\n"
        "    found = lib.solve(options, x)\n    return found, type(options['table']), type(options['step'])"
    )
    found, table, step = module.run(dc.asarray(np.ones(30_000)))
    assert np.all(np.asarray(found) == 0.125) and table is dc.ndarray and step is types.FunctionType
    assert lib.solve({"steps": 1, "table": 0, "step": lambda both: both}, np.ones(3)).tolist() == [0, 0, 0]


@SIZES
def test_an_object_that_keeps_a_function(n: int, program: Any, lib: Any) -> None:
    module = program(
        "def run(x):\n    held = Holder(lambda a: np.exp(a) + 1, x)\n"
        "    also = lib.Holder(function=lambda a: a + x)\n    return held, also\n"
        "def other(x): return Holder(None, x)"
    )
    x = dc.asarray(np.ones(n))
    held, also = module.run(x)
    assert isinstance(held, lib.Holder) and type(held.x) is np.ndarray
    assert type(held.at(np.zeros(n))) is np.ndarray and type(also.at(np.zeros(n))) is np.ndarray
    assert np.all(held.at(np.zeros(n)) == 2) and np.all(also.at(np.zeros(n)) == 1)
    assert module.other(x).x is x
    assert str(inspect.signature(lib.Holder)) == "(function, x=None)"


def test_an_object_that_is_made_stays_itself(program: Any, lib: Any) -> None:
    module = program(
        "class Mine(Holder):\n    def __init__(self, x):\n        super().__init__(lambda a: a + x, self)\n"
        "        self.me = self\n    def __call__(self, x): return self.at(x)\n"
        "def run(x): return Mine(x), apply(lambda a, other: a + other.x.me(a), x, other=Mine(x))[1]"
    )
    made, found = module.run(dc.asarray(np.ones(3)))
    assert type(made) is module.Mine and made.me is made and made.x is made and not has_callbacks([made])
    assert type(made.at(np.ones(3))) is np.ndarray and np.all(np.asarray(found) == 3)


def test_compiled_functions_call_back(program: Any) -> None:
    optimize = pytest.importorskip("scipy.optimize")
    module = program(
        "def root(f): return zeros._brentq(f, 0, 9, 1e-9, 1e-9, 99, (), 0, 1)\n"
        "def run(x): return np.array([root(lambda a: (a**3 - x)[0])])",
        zeros=optimize._zeros,
    )
    assert np.allclose(module.run(dc.asarray(np.full(1, 8.0))), 2.0)


# ---- memory --------------------------------------------------------------------------------------------
@SIZES
def test_what_both_sides_write_is_seen(n: int, program: Any) -> None:
    module = program(
        "def write(x, out):\n    out += x\n    x *= 3\n    return out\n"
        "def run(x, out):\n    later = out * 10\n    apply(write, x, out)\n    out -= 1\n"
        "    view = out[1:3]\n    lib.change_kept(7.0)\n    return later, x, out, view"
    )
    later, x, out, view = module.run(dc.asarray(np.full(n, 2.0)) * 1, dc.asarray(np.ones(n)) * 1)
    assert np.all(np.asarray(later) == 10) and np.all(np.asarray(x) == 6)
    assert np.all(np.asarray(out) == 7) and np.all(np.asarray(view) == 7)


def test_many_parts_of_one_memory_are_views_of_one_array(program: Any) -> None:
    module = program(
        "def rows(x): return lib.listed(lambda a: [np.ravel(row) for row in a * 2], x)\n"
        "def run(x):\n    found = rows(x)\n    x += 1\n    return found"
    )
    x = dc.asarray(np.arange(60_000.0).reshape(20_000, 3)) * 1
    found = module.run(x)
    assert len(found) == 20_000 and found[0].tolist() == [0, 2, 4] and found[-1].tolist()[0] == 119994
    assert len({id(row.base) for row in found}) == 1
    assert np.asarray(x)[0].tolist() == [1, 2, 3]


@SIZES
def test_a_function_may_keep_what_the_library_gave_it(n: int, program: Any, lib: Any) -> None:
    module = program(
        "kept = []\ndef keep(x):\n    kept.append(x)\n    return x * 2\n"
        "def run(x): return apply(keep, x)\n"
        "def later():\n    y = kept[-1] + 1\n    kept[-1][0] = 5\n    return y"
    )
    for _ in range(4):  # also with plans
        buffer = np.zeros(n)
        module.run(buffer)
        lib.kept[1][...] = 3  # the library writes to its own array
        y = module.later()
        buffer[1] = 8.0
        assert np.all(np.asarray(y) == 4) and buffer[0] == 5 and np.asarray(module.kept[-1])[1] == 8
        dc.wait()


LINES = (
    "x = x + y", "y = np.sin(x) - y", "x[::2] *= -1", "z = x[5:20]", "z -= 1", "x = y[::-1] + 1",
    "r = apply(f, x)[1]", "y = apply(g, y, x)[1]", "x = apply(h, x[:50])[1]", "lib.change_kept(0.25)",
    "r = apply(lambda a: np.add(a, y), x)[1]", "held.x[3] = 2.0", "y = held.at(x)", "found.append(r * 1)",
    "lib.kept[-1][2] += 1", "state[0] = state[0] + 1",
)  # fmt: skip


@pytest.mark.parametrize("jit", ["off", "eager"])
@pytest.mark.parametrize("seed", range(8))
def test_random_programs(seed: int, jit: str, lib: Any, program: Any) -> None:
    """Whoever keeps, reads and writes what, and whenever: NumPy's values."""
    chosen = np.random.default_rng(seed).choice(LINES, 40 if jit == "off" else 12)
    text = (
        "state = [None]\n"
        "def f(a):\n    state[0] = a\n    return np.tanh(a) + 1\n"
        "def g(a, b):\n    a += 0.5\n    b *= 0.75\n    return np.where(a > b, a, b)\n"
        "def h(a):\n    state[0] = a * 2\n    return a[::-1]\n"
        "def run(x, y):\n    found, z, r = [], x[3:], x\n    held = Holder(g2(y), y)\n    apply(f, x)\n"
        + "".join(f"    {line}\n" for line in chosen)
        + "    return [x + 0, y + 0, z + 0, r + 0, state[0] + 0, lib.kept[0] + 0, *found]\n"
        "def g2(y): return lambda a: np.cos(a) * y[0]\n"
    )
    plain: dict[str, Any] = {"lib": lib, "np": np, "apply": lib.apply, "Holder": lib.Holder}
    exec(text, plain)
    start = np.linspace(0, 1, 50), np.linspace(3, 2, 50)
    wanted = plain["run"](*(a.copy() for a in start))
    module = program(text)
    with dc.options(eager_below=0, jit=jit):
        found = module.run(*(dc.asarray(a.copy()) for a in start))
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert np.allclose(one, other, rtol=1e-12), text


# ---- the stand-ins -------------------------------------------------------------------------------------
def test_a_callback_is_like_its_function(program: Any) -> None:
    module = program("def f(x, y=3):\n    'Sum.'\n    return x + y")
    found = Callback(module.f)
    assert found == module.f and module.f == found and hash(found) == hash(module.f)
    assert isinstance(found, types.FunctionType) and found.__name__ == "f" and found.__doc__ == "Sum."
    assert inspect.signature(found) == inspect.signature(module.f) and repr(found) == repr(module.f)
    found.mark = 5
    assert module.f.mark == 5
    del found.mark
    assert not hasattr(module.f, "mark") and copy.copy(found) == found
    assert pickle.loads(pickle.dumps(Callback(np.linalg.norm))) == np.linalg.norm
    assert type(found(np.ones(3))) is np.ndarray and type(found(dc.asarray(np.ones(3)))) is np.ndarray


def test_which_objects_are_callbacks(program: Any, lib: Any) -> None:
    module = program(
        "class Number:\n    def __call__(self, x): return x\n    def __add__(self, other): return self\n"
        "class Function:\n    def __call__(self, x): return x\n"
    )
    x = dc.asarray(np.ones(3))
    for value in (module.Function(), module.Function().__call__, x.dot, dc.sin, [1, (2, {"a": dc.sum})]):
        assert has_callbacks([value]), value
    for value in (module.Number(), module.Function, x, np.ones(3), lib.first, np.sum, len, 3, "a", [1, {}]):
        assert not has_callbacks([value]), value


def test_which_functions_have_stand_ins(lib: Any) -> None:
    found = library_stand_in(lib.first)
    assert type(found) is LibraryFunction and found is library_stand_in(lib.first) and found == lib.first
    assert library_stand_in(found) is found and inspect.signature(found) == inspect.signature(lib.first)
    assert type(library_stand_in(lib).solve) is LibraryFunction
    assert library_stand_in(lib.Holder) is lib.Holder  # only its constructor is another
    for value in (inspect.unwrap, subprocess.run, dc.report, np.linalg.norm, pytest.raises):
        assert library_stand_in(value) is value


def test_functions_of_libraries_are_compiled_into_loops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "looping_helpers.py").write_text("import numpy as np\ndef step(a, b): return a * 0.5 + b\n")
    (tmp_path / "looping_program.py").write_text(
        "import numpy as np\nfrom looping_helpers import step\n"
        "def run(x):\n    for k in range(50):\n        x = step(x, k)\n    return x\n"
    )
    module = importlib.import_module("looping_program")
    run, x = dc.accelerate(module.run), np.linspace(0, 1, 1000)
    before = counters.loops
    with dc.options(jit="eager"):
        assert np.array_equal(run(x), module.run(x))
    assert counters.loops == before + 1
    for name in ("looping_program", "looping_helpers"):
        del sys.modules[name]


def test_imports_inside_functions(program: Any) -> None:
    module = program(
        "def run(x):\n    import calling_back as whole\n    from calling_back import apply as other\n"
        "    import inspect, numpy\n"
        "    return whole.apply(np.sinh, x)[1], other(lambda a: np.sinh(a) * 1, x)[1], inspect, numpy"
    )
    x = np.linspace(0, 1, 30_000)
    *found, standard, numpy = module.run(dc.asarray(x))
    assert all(np.array_equal(one, np.sinh(x)) for one in found) and standard is inspect and numpy is np
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        program("def run():\n    import no_such_module_anywhere").run()


def test_functions_of_the_same_package_have_none(lib: Any) -> None:
    same = types.ModuleType("calling_back.part")
    vars(same).update(np=np, first=lib.first, __name__="calling_back.part")
    with dc.accelerate(same):
        assert same.first is lib.first
    stand_in = library_stand_in(lib.first)
    with dc.accelerate(lib):  # accelerated code has wrapped arrays, whoever calls back
        x = dc.asarray(np.ones(3))
        assert stand_in(x)[1] is x


# ---- real libraries ------------------------------------------------------------------------------------
FITS = """
def model(p, t): return p[0] * np.exp(-p[1] * t)
def residuals(p, t, y): return model(p, t) - y
def jacobian(p, t, y):
    e = np.exp(-p[1] * t)
    return np.stack([e, -p[0] * t * e], axis=1)
def fit(t, y, method):
    found = optimize.least_squares(residuals, np.ones(2), jac=jacobian, args=(t, y), method=method)
    return found.x, found.nfev
def constrained(t, y):
    sums = optimize.NonlinearConstraint(lambda p: np.stack([p[0] + p[1]]), -np.inf, 2.5)
    least = {"type": "ineq", "fun": lambda p: p[1:] * 1}
    def squares(p): return np.sum(residuals(p, t, y) ** 2)
    found = optimize.minimize(squares, np.ones(2), constraints=[sums, least])
    return found.x, found.nfev
def curve(t, y): return optimize.curve_fit(lambda t, a, b: a * np.exp(-b * t), t, y)
def path(n):
    found = integrate.solve_ivp(lambda t, y: -y * np.arange(1, n + 1) / n, (0, 1), np.ones(n))
    return found.y, found.nfev
def area(n): return integrate.quad_vec(lambda x: np.sin(x * np.arange(n)), 0, 1)[0], 0
def roots(n):
    found = optimize.root(lambda x: x**3 - np.arange(1.0, n + 1), np.ones(n), method="krylov")
    return found.x, 0
def system(n):
    a = np.eye(n) * 3 + np.ones((n, n)) / n
    return linalg.cg(linalg.LinearOperator(a.shape, matvec=a.dot), np.arange(1.0, n + 1))
"""


def test_scipy_calls_back(program: Any) -> None:
    """The very same steps as with NumPy, to the bit."""
    for name in ("scipy.optimize", "scipy.integrate", "scipy.sparse.linalg"):
        pytest.importorskip(name)
    names = {n.rpartition(".")[2]: sys.modules[n] for n in ("scipy.optimize", "scipy.integrate")}
    names["linalg"] = sys.modules["scipy.sparse.linalg"]
    plain: dict[str, Any] = {"np": np, **names}
    exec(FITS, plain)
    module = program(FITS, **names)
    t = np.linspace(0, 3, 20_000)
    y = 2 * np.exp(-1.3 * t) + 0.01 * np.cos(50 * t)
    calls = [("fit", t, y, "trf"), ("fit", t, y, "lm"), ("constrained", t, y), ("curve", t, y), ("path", 30)]
    for name, *args in [*calls, ("area", 5), ("roots", 9), ("system", 20)]:
        given = [dc.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
        for one, other in zip(getattr(module, name)(*given), plain[name](*args), strict=True):
            assert np.allclose(one, other, rtol=1e-9, atol=1e-12), name


def test_a_program_that_is_run(tmp_path: Path) -> None:
    pytest.importorskip("scipy.optimize")
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\nfrom scipy import optimize\nfrom scipy.optimize import least_squares\n"
        "t = np.linspace(0, 3, 20_000)\ny = 2 * np.exp(-1.3 * t)\n"
        "def jac(p):\n    e = np.exp(-p[1] * t)\n    return np.stack([e, -p[0] * t * e], axis=1)\n"
        "for f in (least_squares, optimize.least_squares):\n"
        "    found = f(lambda p: p[0] * np.exp(-p[1] * t) - y, np.ones(2), jac=jac, method='lm')\n"
        "    print(found.x.round(6).tolist(), type(t).__module__.partition('.')[0])\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "dcarray", "run", str(script)], capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == ["[2.0, 1.3] dcarray"] * 2, done.stderr
