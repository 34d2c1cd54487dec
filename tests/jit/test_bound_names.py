"""Global names of accelerated code: its frame's; NumPy's are dcarray's where its arrays are wrapped."""

import gc
import pickle
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from dcarray import comm
from dcarray.jit import decorator
from dcarray.jit.loops.entry.bound_names import BoundName, bound_name
from dcarray.jit.loops.sites.functions import put_sites, remove_sites
from dcarray.jit.loops.syntax.originals import original

scale = 2.0


def _total(n: int) -> float:
    s = 0.0
    for i in range(n):
        s += i * scale
    return s


def _halved(a: Any) -> Any:
    for i in range(len(a)):
        a[i] = a[i] * 0.5 + scale
    return a


@pytest.mark.parametrize("jit", ["eager", "background"])
def test_a_code_object_that_runs_with_other_global_names(jit: str) -> None:
    names = {"scale": 5.0, "range": range, "len": len}
    with dc.options(jit=jit):
        functions = [_total, _halved]
        try:
            for site in [site for function in functions for site in put_sites(function)]:
                site.heat()
            total, halved = [types.FunctionType(one.__code__, names) for one in functions]
            for _ in range(30):
                assert (_total(100), total(100)) == (9900.0, 24750.0)
                assert _halved(np.zeros(9))[8] == 2.0 and halved(np.zeros(9))[8] == 5.0
                dc.wait()
            names["scale"] = 1.0
            assert total(100) == 4950.0 and halved(np.zeros(9))[0] == 1.0
        finally:
            for function in functions:
                remove_sites(function)


# ---- NumPy's names, where arrays are wrapped --------------------------------------------------------------
SOURCE = """
import functools
import numpy as np
from numpy import exp, zeros
from elsewhere import calling, foreign

size = 3
CONSTANT = np.arange(3.0)

def helper(): return np.zeros(size)
def imported(): return exp(zeros(size))
def nested():
    def inner(): return (lambda: np.zeros(size))()
    return inner()
def listed(): return [np.zeros(size) for _ in range(2)][1]
def generated(): return next(np.zeros(size) for _ in range(2))
def default(make=lambda: np.zeros(size)): return make()
def recursive(n=3): return recursive(n - 1) if n else np.zeros(size)
class Solver:
    def __init__(self): self.x = np.zeros(size)
    @property
    def made(self): return np.ones_like(self.x)
    @staticmethod
    def start(): return np.zeros(size)
    def restarted(self): return np.zeros(size)
solver = Solver()
def inlined(): return solver.restarted()
def method(): return Solver().made
def static(): return Solver.start()
def local_class():
    class Local(Solver):
        def more(self): return np.zeros(size)
    return Local().more()
def cell():
    made = np
    def inner(): return made.zeros(size)
    return inner()
table = {"a": lambda: np.zeros(size)}
def looked_up(): return table["a"]()
partial = functools.partial(lambda n: np.zeros(n), 3)
def applied(): return partial()
def called_back(): return calling(helper)
def caught():
    try:
        raise KeyError
    except KeyError:
        return np.zeros(size)
def streamed():
    def numbers():
        yield np.zeros(size)
    return [*numbers()][0]
KINDS = [helper, inlined, imported, nested, listed, generated, default, recursive, method, static,
         local_class, cell, looked_up, applied, called_back, caught, streamed]

def plain(): return foreign()
def inside(function): return type(function())
def both(function):
    kind = inside(function)
    other = []
    thread = __import__("threading").Thread(target=lambda: other.append(inside(function)))
    thread.start()
    thread.join()
    return kind, other[0], np is np and np.float64 is np.float64 and np.pi
def later(): return (np.zeros(size) for _ in range(2))
def failing(): return np.zeros(size), np.nonsense
def dictionaries(): return globals(), inside.__globals__
def counted():
    global size
    size += 1
    return np.zeros(size)
def given(a, xp): return type(xp.zeros(3)), xp.add(a, 1)
"""
ELSEWHERE = """
import numpy as np
def foreign(): return np.zeros(3)
def calling(function): return function()
"""


@pytest.fixture(params=["off", "eager"])
def module(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """A module whose functions have wrapped arrays where they are accelerated."""
    made = {name: types.ModuleType(name) for name in ("elsewhere", "wrapping")}
    for (name, one), source in zip(made.items(), (ELSEWHERE, SOURCE), strict=True):
        (tmp_path / f"{name}.py").write_text(source)
        monkeypatch.setitem(sys.modules, name, one)
        exec(compile(source, tmp_path / f"{name}.py", "exec"), vars(one))
    monkeypatch.setattr(decorator, "is_needed", lambda: True)
    with dc.options(jit=request.param, cache_dir=None):
        yield made["wrapping"]


def test_names_are_dcarrays_in_the_call_and_in_its_thread_alone(module: Any) -> None:
    names = dict(vars(module))
    both = dc.accelerate(module.both)
    for _ in range(3):
        for function in module.KINDS:
            assert both(function) == (dc.ndarray, np.ndarray, np.pi), function.__name__
            assert type(function()) is np.ndarray, function.__name__
    assert both(module.plain) == (np.ndarray, np.ndarray, np.pi)
    assert vars(module) == names and all(vars(module)[name] is names[name] for name in names)
    assert all(pickle.loads(pickle.dumps(one)) is one for one in module.KINDS)


def test_a_module_has_them_in_all_threads(module: Any) -> None:
    with dc.accelerate(module):
        assert {module.both(function) for function in module.KINDS} == {(dc.ndarray, dc.ndarray, np.pi)}
        assert module.np is np
    assert {module.both(function) for function in module.KINDS} == {(np.ndarray, np.ndarray, np.pi)}


def test_generators_and_errors_leave_plain_numpy(module: Any) -> None:
    assert type(next(dc.accelerate(module.later)())) is np.ndarray
    with pytest.raises(AttributeError, match="module 'numpy' has no attribute 'nonsense'"):
        dc.accelerate(module.failing)()
    assert type(module.helper()) is np.ndarray


def test_the_dictionary_of_names_is_the_modules(module: Any) -> None:
    assert all(one is vars(module) for one in dc.accelerate(module.dictionaries)())
    assert len(dc.accelerate(module.counted)()) == len(module.helper()) == module.size == 4
    kind, found = dc.accelerate(module.given)(np.ones(3), np)
    assert kind is np.ndarray and type(found) is np.ndarray


def test_names_that_the_program_binds_anew(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    both = dc.accelerate(module.inside)
    assert both(module.helper) is dc.ndarray
    module.np = types.SimpleNamespace(zeros=lambda n: [0] * n)
    assert both(module.helper) is module.inside(module.helper) is list
    module.np = np
    assert both(module.helper) is dc.ndarray
    exec("def helper(): return np.ones(size)\nclass Late:\n def make(self): return np.ones(2)", vars(module))
    assert both(module.helper) is both(module.Late().make) is dc.ndarray
    exec("@functools.lru_cache\ndef cached(): return np.ones(size)", vars(module))
    assert both(module.cached) is dc.ndarray
    with monkeypatch.context() as patch:
        patch.setattr(gc, "get_referrers", None)  # what was there before is not looked for again
        module.helper, module.cached = module.cached, module.helper
        assert both(module.helper) is both(module.cached) is dc.ndarray
    module.helper, module.cached = module.cached, module.helper
    del module.np
    for call in (both, module.inside):
        with pytest.raises(NameError, match="name 'np' is not defined") as caught:
            call(module.helper)
        assert caught.value.name == "np"


def test_threads_of_ranks(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    fast = dc.accelerate(module.both)
    want = (dc.ndarray, np.ndarray, np.pi)
    assert comm.run(2, lambda: {fast(function) for function in module.KINDS}) == [{want}] * 2


def test_statements_make_the_arrays_of_their_call(module: Any) -> None:
    """Also where one plan serves the values of both."""
    made = dc.accelerate(module.inside)
    source = "def stated(n=4):\n a = np.zeros(n) + 1.0\n b = a * 2\n return b\ndef run(): return stated()"
    exec(source, vars(module))
    for _ in range(4):
        assert made(module.run) is dc.ndarray and module.inside(module.run) is np.ndarray


# ---- code -------------------------------------------------------------------------------------------------
def _many(count: int) -> Callable[[], Any]:
    names: dict[str, Any] = {f"n{k}": k for k in range(count)} | {"np": np}
    body = "".join(f" x.append(n{k})\n x.append('{k}')\n" for k in range(count))
    exec(f"def f():\n x = []\n{body} return np.pi, x, np.add(1, np.float64(2))", names)
    made: Callable[[], Any] = names["f"]
    return made


@pytest.mark.parametrize("count", [1, 126, 127, 128, 300])
def test_instructions_keep_their_places(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    function: Any = _many(count)
    want, plain = function(), function.__code__
    monkeypatch.setattr(decorator, "is_needed", lambda: True)
    with dc.options(jit="off"):
        assert dc.accelerate(function)() == want == function()
    code = function.__code__
    assert code is not plain and original(function) is plain and len(code.co_code) == len(plain.co_code)
    assert [*code.co_positions()] == [
        *plain.co_positions()
    ] and code.co_exceptiontable == plain.co_exceptiontable
    name = next(one for one in code.co_consts if type(one) is BoundName)
    assert ~pickle.loads(pickle.dumps(bound_name({"k": 3}, "k"))) == 3 and ~name is np
