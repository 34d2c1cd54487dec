"""dc.accelerate: functions, classes and modules, with NumPy's arrays and with wrapped ones."""

import abc
import copy
import functools
import pickle
import threading
import types
from typing import Any

import numpy as np
import pytest
from callers import together
from fresh import python
from numpy import linspace, ndarray
from numpy.linalg import norm

import dcarray as dc
from dcarray.core import config
from dcarray.jit import decorator
from dcarray.jit.loops.sites.site import Site
from dcarray.jit.loops.syntax.originals import original
from dcarray.jit.numpy_proxy import counterpart, namespace

RECORDED: dict[str, Any] = {"eager_below": 0, "jit": "off"}


def _helper(shape: Any) -> Any:
    return np.zeros(shape)


def _smooth(u: Any) -> Any:
    v = _helper(u.shape)
    assert type(v) is _INSIDE[0]
    v[1:-1] = (u[:-2] + u[2:]) / 2
    return v


smooth = dc.accelerate(_smooth)


_INSIDE: list[type] = []  # the type of arrays in accelerated code


@pytest.fixture(params=["plain", "wrapped", "recorded"])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Accelerated code has NumPy's arrays, or wrapped ones, as on devices and under several ranks."""
    if request.param != "plain":
        monkeypatch.setattr(decorator, "is_needed", lambda: True)
    _INSIDE[:] = [dc.ndarray if decorator.is_needed() else np.ndarray]
    with dc.options(**RECORDED if request.param == "recorded" else {}):
        yield


@pytest.fixture(params=[{}, RECORDED], ids=["defaults", "recorded"])
def wrapped(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Accelerated code has wrapped arrays."""
    monkeypatch.setattr(decorator, "is_needed", lambda: True)
    _INSIDE[:] = [dc.ndarray]
    with dc.options(**request.param):
        yield


class Table:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.arange(3.0, dtype=dtype)


# ---- functions ---------------------------------------------------------------------------------------
@dc.accelerate
def _of_table(table: Table) -> Any:
    assert type(np.asarray(table)) is type(np.add(table, 1)) is _INSIDE[0]
    return norm(table)


@pytest.mark.usefixtures("mode")
def test_classes_answer_numpy_with_plain_arrays() -> None:
    assert _of_table(Table()) == 5**0.5
    assert type(np.asarray(Table())) is np.ndarray


@pytest.mark.usefixtures("mode")
def test_plain_arguments_give_plain_evaluated_results() -> None:
    u = np.arange(6.0) ** 2
    got = smooth(u)
    assert type(got) is np.ndarray and got.flags.writeable
    want = np.zeros(6)
    want[1:-1] = (u[:-2] + u[2:]) / 2
    np.testing.assert_array_equal(got, want)
    assert type(np.zeros(3)) is np.ndarray  # NumPy is back


@pytest.mark.usefixtures("wrapped")
def test_wrapped_arguments_give_wrapped_results() -> None:
    got = smooth(dc.asarray(np.arange(6.0)))
    assert type(got) is dc.ndarray
    np.testing.assert_array_equal(got, [0, 1, 2, 3, 4, 0])


@pytest.mark.usefixtures("mode")
def test_updates_of_plain_arguments_are_in_place_at_return_and_after_an_error() -> None:
    @dc.accelerate
    def update(a: Any, fail: bool = False, *, out: Any = None) -> Any:
        a += 1
        a[::2] *= 2
        if out is not None:
            np.multiply(a, 3, out=out)
        if fail:
            raise KeyError("no")
        return a

    a, b = np.arange(4.0), np.zeros(4)
    assert update(a, out=b) is a
    np.testing.assert_array_equal(a, [2, 2, 6, 4])
    np.testing.assert_array_equal(b, [6, 6, 18, 12])
    with pytest.raises(KeyError):
        update(a, True)
    np.testing.assert_array_equal(a, [6, 3, 14, 5])
    if _INSIDE[0] is np.ndarray:
        return
    later = update(dc.asarray(np.ones(4)), out=b)  # pending reads and writes of what is the caller's have run
    b[:] = -1
    np.testing.assert_array_equal(later, [4, 2, 4, 2])
    np.testing.assert_array_equal(b, -1)


@pytest.mark.usefixtures("mode")
def test_an_argument_keeps_the_shape_and_the_lock_it_was_given() -> None:
    @dc.accelerate
    def change(a: Any, b: Any) -> Any:
        a.shape = (2, -1)
        a[1] = 7
        b.flags.writeable = False
        return a.sum()

    a, b = np.arange(6.0), np.ones(3)
    assert change(a, b) == 24 and a.shape == (2, 3) and not b.flags.writeable


DRAWS, OLD_DRAWS = np.random.default_rng(1), np.random.RandomState(1)


def _dealt(a: Any, rng: Any) -> Any:
    """Generators made elsewhere: given, and two global ones."""
    rows = a.reshape(-1, 2).copy()
    out = np.zeros(a.shape)
    for draw in (rng, DRAWS, OLD_DRAWS):
        draw.shuffle(rows)
        rows += draw.normal(size=rows.shape)
    rng.standard_normal(out=out)
    return rows, out, rng, rng.permutation(rows), rng.random(), isinstance(rng, np.random.Generator)


@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize("n", [10, 34_002])
def test_generators_made_elsewhere_draw_as_numpys_do(n: int) -> None:
    def dealt(function: Any) -> Any:
        DRAWS.bit_generator.state = np.random.default_rng(1).bit_generator.state
        OLD_DRAWS.seed(1)
        rng = np.random.default_rng(2)
        *found, back, permuted, number, known = function(np.arange(float(n)), rng)
        assert back is rng and type(DRAWS) is np.random.Generator and known
        return [*found, permuted, number, rng.random(), DRAWS.random(), OLD_DRAWS.normal()]

    for one, other in zip(dealt(_dealt), dealt(dc.accelerate(_dealt)), strict=True):
        assert type(one) is type(other) and np.array_equal(one, other)


@pytest.mark.usefixtures("mode")
def test_results_in_containers() -> None:
    Pair = __import__("collections").namedtuple("Pair", "a b")

    @dc.accelerate
    def several(x: Any, bag: list[Any]) -> Any:
        bag.append(np.ones(2))
        inner: list[Any] = [x + 1]
        inner.append(inner)
        return (x, 1.5), Pair(x * 2, "b"), inner, {"k": (np.sum(x, axis=0),)}

    bag: list[Any] = []
    x = np.ones((2, 2))
    (same, number), pair, inner, table = several(x, bag)
    assert same is x and number == 1.5 and inner[1] is inner
    assert type(pair).__name__ == "Pair"
    for value in (pair.a, inner[0], table["k"][0], bag[0]):
        assert type(value) is np.ndarray


@pytest.mark.usefixtures("mode")
def test_functions_without_array_arguments() -> None:
    @dc.accelerate
    def make(n: int) -> Any:
        made = np.arange(n) + linspace(0, 1, n)
        assert type(made) is _INSIDE[0]
        return made

    assert type(make(4)) is np.ndarray
    inner: list[type] = []

    @dc.accelerate
    def outer(x: Any) -> Any:
        inner.append(type(make(4)))
        return x + make(len(x))

    assert type(outer(np.ones(4))) is np.ndarray and inner == _INSIDE


def test_a_function_keeps_its_face() -> None:
    def f(a: int, *, b: int = 2) -> int:
        """Doc."""
        return a + b

    g = dc.accelerate(f)
    assert g.__name__ == "f" and g.__doc__ == "Doc." and g(1) == 3
    assert type(g).__get__(g, object()) is not g  # works as a method


@pytest.mark.usefixtures("mode")
def test_an_update_without_name_of_numpy() -> None:
    scope: dict[str, Any] = {}
    exec("def f(a):\n    a *= 2\n    return a[1:]", scope)
    a = np.ones(3)
    got = dc.accelerate(scope["f"])(a)
    a[1] = 7
    assert got[0] == 7 and type(got) is np.ndarray


@pytest.mark.usefixtures("mode")
def test_threads_and_recursion_leave_numpy_in_its_place() -> None:
    @dc.accelerate
    def deep(x: Any, n: int) -> Any:
        return deep(x + np.ones(2), n - 1) if n else x

    def work(_: int) -> None:
        for _ in range(50):
            assert deep(np.zeros(2), 5)[0] == 5

    together(4, work)
    assert np is __import__("numpy") and linspace is np.linspace


def test_what_cannot_be_accelerated() -> None:
    def generate() -> Any:
        yield np.ones(2)

    for wrong in (generate, 3, len):
        with pytest.raises(TypeError, match="accelerate"):
            dc.accelerate(wrong)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="takes a function"):
        dc.accelerate()
    with pytest.raises(ValueError, match="not imported"):
        dc.accelerate("no.such.module")
    with pytest.raises(ValueError, match="compiled code"):
        dc.accelerate("numpy._core._multiarray_umath")


class Solver:
    """A class with functions of each kind."""

    def __init__(self, n: int) -> None:
        self.x = np.zeros(n)

    def step(self, k: int) -> Any:
        for i in range(1, len(self.x)):
            self.x[i] = self.x[i - 1] * 0.5 + k
        return self.x

    @staticmethod
    def start(n: int) -> Any:
        y = np.ones(n) * 2
        return y + 1

    @classmethod
    def make(cls, n: int) -> Any:
        made = cls(n + 1 - 1)
        return made

    @property
    def total(self) -> Any:
        y = self.x * 2
        return y.sum()

    class Inner:
        def twice(self, x: Any) -> Any:
            y = x * 2
            return y + 0


def _sites(function: Any) -> list[Site]:
    return [c for c in function.__code__.co_consts if isinstance(c, Site)]


def test_classes() -> None:
    scope: dict[str, Any] = {}
    functions = [Solver.step, Solver.start, Solver.make.__func__, vars(Solver)["total"].fget]
    functions.append(Solver.Inner.twice)
    codes = [original(f) for f in functions]
    try:
        assert dc.accelerate(Solver) is Solver and not scope
        handing_on = Solver.make.__func__  # has no sites in this file, which compares objects by identity
        assert (
            all(_sites(f) for f in functions if f is not handing_on)
            and [original(f) for f in functions] == codes
        )
        assert (
            not any(site.enabled for f in functions for site in _sites(f)) or config.current().jit == "eager"
        )
        solver = Solver.make(30)
        np.testing.assert_array_equal(solver.step(1)[:3], [0, 1, 1.5])
        assert Solver.start(2).tolist() == [3, 3] and solver.total == solver.x.sum() * 2
    finally:
        for f, code in zip(functions, codes, strict=True):
            f.__code__ = code


def test_the_code_of_accelerated_modules_comes_back() -> None:
    module = types.ModuleType("solving")
    module.__dict__.update(Solver=Solver, other=len, np=np)
    Solver.__module__, before = "solving", Solver.__module__
    Solver.step.__module__ = "solving"
    code = original(Solver.step)
    try:
        with dc.options(jit="eager"), dc.accelerate(module):
            assert _sites(Solver.step) and not _sites(Solver.start)  # which is another module's
        assert original(Solver.step) is code and not _sites(Solver.step)
        with dc.options(jit="off"), dc.accelerate(module):
            assert not _sites(Solver.step)
        assert original(Solver.step) is code and not _sites(Solver.step)
    finally:
        Solver.__module__ = Solver.step.__module__ = before


def test_an_accelerated_function_follows_the_options() -> None:
    f = dc.accelerate(_stepped)
    code = original(_stepped)
    with dc.options(jit="off"):
        np.testing.assert_array_equal(f(np.zeros(4)), [0, 1, 1.5, 1.75])
    assert original(_stepped) is code and not _sites(_stepped)
    dc.report(reset=True)
    with dc.options(jit="eager", cache_dir=None):
        np.testing.assert_array_equal(f(np.zeros(4)), [0, 1, 1.5, 1.75])
    assert dc.report().loops == 1 and original(_stepped) is code
    with dc.options(jit="off"):
        np.testing.assert_array_equal(f(np.zeros(4)), [0, 1, 1.5, 1.75])
    assert dc.report().loops == 1


def _stepped(x: Any) -> Any:
    for i in range(1, len(x)):
        x[i] = x[i - 1] * 0.5 + 1
    return x


# ---- modules -----------------------------------------------------------------------------------------
def _library() -> Any:
    module = types.ModuleType("library")
    source = "import numpy as np\nimport numpy.linalg as la\nfrom numpy import zeros, sqrt, r_, float32\n"
    exec(source + "def make(n):\n    return sqrt(zeros(n) + r_[1:n + 1]), la.norm(np.ones(n))", vars(module))
    return module


@pytest.mark.usefixtures("wrapped")
def test_a_module_for_a_block_also_after_an_error() -> None:
    module = _library()
    before = dict(vars(module))
    with pytest.raises(KeyError), dc.accelerate(module):
        assert type(module.make(3)[0]) is dc.ndarray
        assert module.np.newaxis is None and module.np.pi == np.pi and module.float32 is np.float32
        with dc.accelerate(module):
            assert type(module.make(3)[0]) is dc.ndarray
        assert type(module.make(3)[0]) is dc.ndarray
        raise KeyError
    assert dict(vars(module)) == before and type(module.make(3)[0]) is np.ndarray


@pytest.mark.usefixtures("wrapped")
def test_a_module_that_has_arrays_from_others() -> None:
    module = types.ModuleType("holding")
    exec("class Held:\n    def __array__(self, dtype=None, copy=None): return self.x", vars(module))
    held = module.Held()
    held.x = dc.asarray(np.ones(3)) + 1
    with pytest.raises(ValueError, match="not producing an array"):
        np.asarray(held)
    with dc.accelerate(module):
        assert type(np.asarray(held)) is np.ndarray and np.sum(held) == 6


@pytest.mark.usefixtures("wrapped")
def test_a_module_by_a_call() -> None:
    module = _library()
    done = dc.accelerate(module)
    assert "accelerated" in repr(done) and type(module.make(3)[0]) is dc.ndarray
    module.np = "something else"
    done.undo()
    done.undo()
    assert module.np == "something else" and module.zeros is np.zeros


# ---- the namespace -----------------------------------------------------------------------------------
N: Any = namespace(np)


def test_the_namespace_is_numpys() -> None:
    assert N.__version__ == np.__version__ and N.__name__ == "numpy" and N.info is np.info
    assert N.sin == np.sin and N.pi == np.pi and N.bool_ is np.bool_ and N.ma is np.ma
    assert type(N.random.default_rng(3).random(4)) is dc.ndarray
    assert type(N.lib.stride_tricks.as_strided(N.arange(4), (2,))) is dc.ndarray
    assert namespace(np.strings) is dc.strings and namespace(threading) is threading
    assert counterpart(norm) is dc.linalg.norm and counterpart(3) == 3
    with pytest.raises(AttributeError, match="nonsense"):
        N.nonsense  # noqa: B018
    N.testing.assert_equal([N.ones(2)], [np.ones(2)])
    with pytest.raises(AssertionError):
        N.testing.assert_array_equal(N.ones(2), 2)


LATE = """
import sys, numpy as np, dcarray as dc
step = dc.accelerate(lambda x: x + 1)
step(np.ones(3))
print(*sorted({"numpy.f2py", "numpy.ma", "numpy.random", "numpy.testing"} & set(sys.modules)))
from numpy.random import default_rng
from dcarray.jit.numpy_proxy import counterpart
print(counterpart(default_rng) is dc.random.default_rng, counterpart(np.absolute) is dc.absolute)
"""


def test_numpys_modules_are_not_imported_for_their_names() -> None:
    out = python("-c", LATE).stdout
    assert out.split("\n")[:2] == ["", "True True"]


def test_every_public_name_of_numpy_is_there() -> None:
    for name in dir(np):
        getattr(N, name)


def test_isinstance_is_true_of_both() -> None:
    cls = N.ndarray
    assert isinstance(np.ones(2), cls) and isinstance(dc.asarray(np.ones(2)), cls) and not isinstance(1, cls)
    assert issubclass(np.ndarray, cls) and issubclass(dc.ndarray, cls) and not issubclass(int, cls)
    assert counterpart(ndarray) is cls and repr(cls) == repr(np.ndarray)
    assert {type(N.ones(2)): 1}[cls] == {cls: 1}[type(N.ones(2))]
    assert type(cls((2,), int)) is dc.ndarray and N.ndarray[Any, np.dtype[np.float64]] is not None
    match np.ones(2):
        case N.ndarray():
            pass
        case _:
            pytest.fail("a plain array does not match")

    assert pickle.loads(pickle.dumps(cls)) is np.ndarray and copy.copy(cls) is cls

    @functools.singledispatch
    def kind(x: Any) -> str:
        return "other"

    kind.register(cls, lambda x: "array")
    assert kind(N.ones(2)) == "array" and kind(1) == "other"
    assert cls.sum(N.ones(2)) == cls.sum(np.ones(2)) == 2


FINALIZING = """
import numpy as np
class Quantity(np.ndarray):
    unit = None
    def __array_finalize__(self, obj):
        if obj is None or obj.__class__ is np.ndarray:
            return
        self.unit = obj.__dict__["unit"]
    def __array_ufunc__(self, function, method, *inputs, **kwargs):
        values = [x.view(np.ndarray) if isinstance(x, Quantity) else x for x in inputs]
        found = super().__array_ufunc__(function, method, *values, **kwargs)
        return found if found is NotImplemented else found.view(Quantity)
def run(x):
    made = (x + 1).view(Quantity)
    made.unit = "m"
    assert type(made + made) is Quantity and (made + made)[1] == 2 * made[1]
    return made[2:], made
"""


@pytest.mark.usefixtures("wrapped")
def test_subclasses_are_told_of_plain_arrays() -> None:
    module = types.ModuleType("finalizing")
    exec(FINALIZING, vars(module))
    for _ in range(2):
        with dc.accelerate(module):
            for x in (dc.asarray(np.arange(4.0)), np.arange(4.0), dc.asarray(np.arange(30_000.0)) * 1):
                part, made = module.run(x)
                assert type(part) is type(made) is module.Quantity and part.unit == made.unit == "m"
                assert part[0] == 3
        assert module.run(np.arange(4.0))[0].unit == "m"


def test_subclasses_are_numpys() -> None:
    class Named(N.ndarray, abc.ABC):  # type: ignore[misc, name-defined]
        def __new__(cls, values: Any, name: str) -> Any:
            made = N.asarray(values).view(cls) if name == "v" else N.ndarray.__new__(cls, (2,))
            made.name = name
            return made

        def __array_finalize__(self, other: Any) -> None:
            super().__array_finalize__(other)
            self.name = getattr(other, "name", None)

    made = Named([1, 2], "v")
    assert issubclass(Named, np.ndarray) and type(made + 1) is Named and (made + 1).name == "v"
    assert type(Named([1, 2], "n")) is Named


# ---- what comes back -----------------------------------------------------------------------------------
_KEPT: list[Any] = []


@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize("n", [5, 40_000, 200_000])
@pytest.mark.parametrize("body", [
    lambda x: x + 1,
    lambda x: (x + 1, [x * 2], 3),
    lambda x: (y := x + 1, y),
    lambda x: (y := np.sqrt(x), y[1:], y * 2),
    lambda x: (x, x[2:], x.reshape(1, -1)),
    lambda x: _KEPT.append(y := x + 1) or y,
    lambda x: (_KEPT.append(y := x + 1), y)[1][1:],
    lambda x: np.zeros(len(x), np.float32),
    lambda x: np.full(len(x), 2, x.dtype),
    lambda x: (np.sort(x), np.argsort(x)),
    lambda x: np.broadcast_to(x, (2, len(x))),
])  # fmt: skip
def test_what_comes_back_is_plain_and_may_be_written(body: Any, n: int) -> None:
    """Also where it is somebody else's besides: then all see what is written."""
    x = np.linspace(1, 2, n)
    function = types.FunctionType(body.__code__, {**globals(), "np": np})
    accelerated = dc.accelerate(function)
    for _ in range(5):  # NumPy does at once what comes again
        _KEPT.clear()
        found, given = accelerated(x), x.copy()
        kept = list(_KEPT)
        _KEPT.clear()
        wanted = function(given)
        for ours, theirs in zip(_flat(found), _flat(wanted), strict=True):
            assert type(ours) is type(theirs)
            np.testing.assert_array_equal(ours, theirs, strict=True)
            if isinstance(ours, np.ndarray):
                assert ours.flags.writeable == theirs.flags.writeable
        for ours, theirs in zip(_flat(found), _flat(wanted), strict=True):
            if isinstance(ours, np.ndarray) and ours.flags.writeable:
                ours[-1] = theirs[-1] = 7
        for ours, theirs in zip(_flat([found, kept]), _flat([wanted, _KEPT]), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(x, given)
        for ours, theirs in zip(kept, _KEPT, strict=True):  # and what is recorded goes where it is seen
            ours += 1
            theirs += 1
        for ours, theirs in zip(_flat([found, kept]), _flat([wanted, _KEPT]), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def _flat(value: Any) -> list[Any]:
    return [v for one in value for v in _flat(one)] if isinstance(value, (tuple, list)) else [value]


@pytest.mark.usefixtures("wrapped")
def test_names_that_become_numpy_s_are_seen() -> None:
    names: dict[str, Any] = {"np": None, "zeros": len, "dc": dc}
    exec("def f(x): return type(zeros(3)) if np is None else type(np.ones(3))", names)
    f = dc.accelerate(names["f"])
    names["zeros"] = np.zeros
    for _ in range(3):
        assert f(1) is dc.ndarray
    names["np"] = np
    assert f(1) is dc.ndarray
    names["zeros"], names["np"] = list, types.SimpleNamespace(ones=lambda n: n)
    assert f(1) is int
