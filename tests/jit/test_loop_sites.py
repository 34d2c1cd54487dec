"""Loop sites: compiled loops have the results, errors and warnings of the program."""

import gc
import inspect
import sys
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from as_written import as_written
from callers import together
from outcomes import outcome
from written import written

import dcarray as dc
from dcarray.jit.loops.sites import run_loop, short_runs
from dcarray.jit.loops.sites.functions import put_sites
from dcarray.jit.loops.syntax.originals import original
from dcarray.tiering import admission

pytestmark = pytest.mark.eager


@pytest.fixture(params=[16384, 0], ids=["small", "large"])
def either(request: pytest.FixtureRequest) -> Any:
    """Wrapped arrays are small, or large."""
    with dc.options(eager_below=request.param):
        yield


def loops() -> int:
    return dc.report().loops


def runs() -> int:
    return dc.report().runs


def reasons() -> list[str]:
    return [f"{f.function} {f.where}" for f in dc.report().fallbacks if f.kind == "loop"]


def agree(f: FunctionType, *args: Any, served: int | None = None) -> Any:
    """The same with and without sites; and how many loops were served."""
    want = as_written(outcome, f, args)
    before = loops()
    got = outcome(dc.accelerate(f), args)
    assert got[:2] == want[:2]
    if want.said != got.said:  # such as of complex numbers that become real ones, in another line
        assert got == as_written(outcome, dc.accelerate(f), args)
    if served is not None:
        assert loops() - before == served, reasons()
    return got.result


SCAN = """
def f(x, n, c=0.5):
    for i in range(1, n):
        x[i] = c * x[i - 1] + x[i]
    return x, i
"""


@pytest.mark.usefixtures("either")
def test_compiled_loop() -> None:
    f = written(SCAN)
    x = np.linspace(0, 1, 200)
    agree(f, x, 200, served=1)
    agree(f, x, 100, 0.25, served=1)
    g = dc.accelerate(f)
    y = x.copy()
    assert g(y, 200)[0] is y
    wrapped = dc.asarray(x.copy())
    got = g(wrapped, 200)[0]
    assert got is wrapped
    np.testing.assert_array_equal(np.asarray(got), y)


def test_results_have_their_types() -> None:
    f = written("""
        import numpy as np
        def f(x, n):
            total, most, many, kept = 0.0, x[0], 0, x
            for i in range(n):
                total = total + 0.5
                most = max(most, x[i])
                many = many + 2
                kept = x
                new = x * 2
            return total, most, many, np.array_equal(kept, x), i, new
    """)
    x = np.linspace(-1, 3, 50)
    _, parts = agree(f, x, 50, served=1)
    assert [kind for kind, *_ in parts] == [float, np.float64, int, bool, int, np.ndarray]


def test_while_loops() -> None:
    f = written("""
        def f(x, eps):
            count = 0
            d = 1.0
            while d > eps:
                d = d / 2
                x[:] = x + d
                count += 1
            return x, d, count
    """)
    x = np.zeros(30)
    agree(f, x, 1e-3)
    agree(f, x, 2.0)  # not once: nothing is bound


def test_an_empty_range_binds_nothing() -> None:
    f = written("""
        def f(x, n):
            i = "before"
            for i in range(n):
                x[i] = 1.0
            return i
    """)
    assert agree(f, np.zeros(5), 0) == (str, "'before'")
    assert agree(f, np.zeros(5), 3) == (int, "2")


def test_jit_off_rewrites_nothing() -> None:
    f = written(SCAN)
    code = f.__code__
    seen = []
    f.__globals__["range"] = lambda *args: seen.append(f.__code__) or range(*args)
    with dc.options(jit="off"):
        dc.accelerate(f)(np.zeros(5), 5)
    assert seen == [code] and loops() == 0


def test_a_function_keeps_its_code() -> None:
    """What is called is a copy with sites, from the first call on."""
    f = written(SCAN)
    code = f.__code__
    g = dc.accelerate(f)
    for k in range(3):
        g(np.zeros(5), 5)
        assert f.__code__ is code and original(f) is code and loops() == k + 1
    f(np.zeros(5), 5)
    assert loops() == 3


def test_defaults_and_names_stay() -> None:
    f = written("""
        def f(x: "array", *more, c: float = 0.5, **rest) -> "array":
            'Says what it does.'
            for i in range(10):
                x[i] = c
            return x
    """)
    g = dc.accelerate(f)
    for name in ("__defaults__", "__kwdefaults__", "__annotations__", "__module__", "__qualname__"):
        assert getattr(g, name) == getattr(f, name), name
    assert inspect.signature(g) == inspect.signature(f) and g.__kwdefaults__ == {"c": 0.5}
    assert g.__wrapped__ is f and g.__name__ == "f" and g.__doc__ == "Says what it does."
    assert g.__annotations__ == {"x": "array", "c": float, "return": "array"}
    assert g(np.zeros(10))[9] == 0.5 and g(np.zeros(10), 1, c=0.25, d=3)[9] == 0.25
    assert loops() == 2


def test_decorators_are_applied_once() -> None:
    f = written("""
        calls = []
        def counted(g):
            calls.append(g)
            def inner(*args):
                return g(*args)
            inner.__wrapped__ = g
            return inner
        @counted
        def f(x, n):
            for i in range(n):
                x[i] = i
            return x
    """)
    assert dc.accelerate(f)(np.zeros(9), 9)[8] == 8
    assert loops() == 1 and len(f.__globals__["calls"]) == 1


def test_closures() -> None:
    f = written("""
        def outer(c):
            def f(x, n):
                for i in range(n):
                    x[i] = c * x[i]
                return x
            return f
        f = outer(3.0)
    """)
    agree(f, np.arange(10.0), 10, served=1)


def test_loops_of_helper_functions() -> None:
    f = written("""
        import numpy as np
        def inner(x):
            y = np.empty(x.shape)
            for i in range(x.shape[0]):
                y[i] = x[i] * x[i]
            return y
        def f(x):
            y = inner(x)
            return y + inner(x)
    """)
    agree(f, np.arange(20.0), served=0)
    assert runs() == 1  # with its loops
    f.__globals__["inner"].__code__ = written("""
        import numpy as np
        def f(x):
            y = np.empty(x.shape)
            print(len(y))
            for i in range(x.shape[0]):
                y[i] = x[i] * x[i]
            return y
    """).__code__
    f.__globals__["print"] = lambda *values: None
    agree(f, np.arange(20.0), served=2)


# ---- what goes wrong ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "line", ["x[i + 7] = 1.0", "x[i] = y[0, 1]", "x[i] = missing", "x[i] = x @ y[:3]", "x[i] = open"]
)
def test_errors_are_raised_by_the_loop(line: str) -> None:
    f = written(f"""
        def f(x, y):
            for i in range(10):
                x[i] = i

                {line}
    """)
    agree(f, np.zeros(10), np.ones(10), served=0)


@pytest.mark.parametrize("mode", ["warn", "raise", "ignore"])
@pytest.mark.parametrize("value", [0.0, 3.0])
def test_floating_point_exceptions(mode: Any, value: float) -> None:
    f = written("""
        def f(x, y, v):
            for i in range(1, 20):
                y[i] = y[i - 1] * 0.5
                x[i] = x[i] / v

            return x, y
    """)
    x, y = np.arange(20.0), np.arange(20.0)
    with np.errstate(all=mode):
        agree(f, x, y, np.float64(value), served=int(value != 0 or mode == "ignore"))


def test_loops_that_keep_raising_are_given_up() -> None:
    f = written("""
        def f(x, v):
            for i in range(20):
                x[i] = x[i] / v
            return x
    """)
    for _ in range(admission.FAILURES):
        agree(f, np.arange(20.0), np.float64(0), served=0)
    assert any("floating-point exceptions" in reason for reason in reasons())
    agree(f, np.arange(20.0), np.float64(2), served=0)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "i8", "u8"])
@pytest.mark.parametrize(
    "term", ["x[i] + y[i]", "y[i] - x[i]", "x[i] * y[i]", "-x[i]", "x[i] - 3", "x[i] * 2"]
)
def test_integer_scalars_that_overflow(dtype: str, term: str) -> None:
    f = written(f"""
        def f(x, y):
            for i in range(6):
                x[i] = {term}
            return x
    """)
    most, least = np.iinfo(dtype).max, np.iinfo(dtype).min
    x = np.array([most // 3, least, most, 5, 100, most - 2], dtype)
    agree(f, x, np.array([2, 1, 1, 4, 3, 1], dtype))
    agree(f, np.full(6, 4, dtype), np.full(6, 5, dtype))


def test_bools_of_python_and_of_numpy() -> None:
    terms = [
        "ok and x[i] < 3", "x[i] < 9 and True", "0 < x[i] < 9", "x[i] < 3 or ok", "not (ok and x[i] < 3)",
        "True and x[i] < 9", "x[i] < 2 and x[i] < 9", "x[i] < 3 and False", "n < 3 and ok",
    ]  # fmt: skip
    for term in terms:
        f = written(f"""
            def f(x, n):
                ok = True
                for i in range(n):
                    ok = {term}
                    if ok and x[i] < 2 or 3 < x[i] < 5:
                        x[i] = -1
                return x, ok
        """)
        agree(f, np.arange(6.0), 6)
        agree(f, np.arange(6), 2)


def test_division_by_zero_of_python_numbers() -> None:
    f = written("""
        def f(x, dt):
            for i in range(20):
                x[i] = x[i] * (1 / dt)
            return x
    """)
    agree(f, np.arange(20.0), 2.0, served=1)
    agree(f, np.arange(20.0), 0.0, served=0)


@pytest.mark.parametrize("error", [MemoryError, SystemError])
def test_errors_that_later_runs_may_not_have(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_runs, "BUILT", False)  # all runs are Python's
    f = written("""
        def f(x, n):
            for i in range(n):
                y = x * i
                x[0] = x[0] + 1
            return x, y
    """)
    agree(f, np.arange(20.0), 4, served=1)

    def none(*args: Any) -> Any:
        raise error

    monkeypatch.setattr(run_loop, "allocate", none)
    agree(f, np.arange(20.0), 4, served=0)
    monkeypatch.undo()
    monkeypatch.setattr(short_runs, "BUILT", False)
    agree(f, np.arange(20.0), 4, served=1)


def test_failed_runs_are_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Own(Exception): ...

    f, errors = written(SCAN), [RuntimeError("for this test"), Own()]  # as raised by another thread
    x = np.linspace(0, 1, 200)
    agree(f, x, 200, served=1)
    go = run_loop.LoopPlan._execute

    def fails(self: Any, made: Any, addresses: Any, options: Any, sizes: Any, outcome: Any) -> Any:
        run = self._loaded.run

        def failing(*args: Any) -> int:
            run(*args)
            raise errors.pop()

        ours = FunctionType(failing.__code__, {"__name__": "dcarray.fault"}, None, None, failing.__closure__)
        self._arrays, self._undone = True, [k for k, p in enumerate(sizes.parameters) if p[0] == "inout"]
        self._loaded, kept = SimpleNamespace(single=self._loaded.single, run=ours), self._loaded
        try:
            return go(self, made, addresses, options, sizes, outcome)
        finally:
            self._loaded = kept

    monkeypatch.setattr(run_loop.LoopPlan, "_execute", fails)
    with dc.options(debug=False):
        with pytest.raises(Own):
            dc.accelerate(f)(y := x.copy(), 200)
        assert np.array_equal(y, x)
        agree(f, x, 200, served=0)


DOUBLED = """
def f(x, n):
    for i in range(1, n):
        x[i] = i * 2
    return x, i
"""


@pytest.mark.parametrize("text", [SCAN, DOUBLED])
def test_interrupts_come_before_or_after_a_loop(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """No element is written without the others."""
    import signal

    monkeypatch.setattr(short_runs, "BUILT", False)  # all runs are Python's
    f = written(text)
    x = np.linspace(0, 1, 200)
    before, want = x.copy(), f(x.copy(), 200)[0]
    dc.accelerate(f)(x.copy(), 200)
    go = run_loop.LoopPlan._execute

    def interrupted(self: Any, *args: Any) -> bool:
        class Loaded:
            def __getattr__(self, name: str) -> Any:
                return getattr(loaded, name)

            def run(self, *args: Any) -> int:
                signal.raise_signal(signal.SIGINT)
                return int(loaded.run(*args))

        loaded, self._loaded = self._loaded, Loaded()
        return go(self, *args)

    monkeypatch.setattr(run_loop.LoopPlan, "_execute", interrupted)
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()  # a callback of a collection would lose the exception
    try:
        with pytest.raises(KeyboardInterrupt):
            dc.accelerate(f)(x, 200)
    finally:
        gc.enable()
        signal.signal(signal.SIGINT, old)
    assert x.tolist() in (before.tolist(), want.tolist())


def test_reasons_are_reported_once() -> None:
    f = written("""
        def f(x, n):
            for i in range(n):
                x[i + 5] = open
    """)
    for _ in range(3):
        agree(f, np.zeros(3), 0)
        agree(f, np.zeros(3), 2, served=0)
    assert len([r for r in reasons() if r.endswith(":4")]) == 1
    assert "loops run by Python, since" in str(dc.report())


def test_strict_mode_does_not_concern_loops() -> None:
    f = written("""
        def f(x, n):
            for i in range(n):
                x[i] = open
    """)
    with dc.options(strict=True), pytest.raises(TypeError):
        dc.accelerate(f)(np.zeros(3), 2)


# ---- memory ------------------------------------------------------------------------------------------
SHIFT = """
def f(x, y, n):
    for i in range(n):
        y[i] = x[i] + 1.0
    return x, y
"""


def test_arrays_that_share_memory() -> None:
    f = written(SHIFT)
    agree(f, np.arange(30.0), np.zeros(30), 20, served=1)
    for at in (0, 1, 5):
        memory, again = np.arange(40.0), np.arange(40.0)
        as_written(f, memory[:30], memory[at : at + 30], 20)
        dc.accelerate(f)(again[:30], again[at : at + 30], 20)
        np.testing.assert_array_equal(memory, again)
    memory, again = np.arange(40.0), np.arange(40.0)
    f(memory, memory, 20)
    dc.accelerate(f)(again, again, 20)
    np.testing.assert_array_equal(memory, again)


def test_arrays_that_are_only_read_may_share_memory() -> None:
    f = written("""
        def f(x, y, z, n):
            for i in range(n):
                z[i] = x[i] + y[i]
            return z
    """)
    memory = np.arange(40.0)
    g = dc.accelerate(f)
    got = g(memory[:20], memory[5:25], np.zeros(20), 20)
    np.testing.assert_array_equal(got, memory[:20] + memory[5:25])
    assert loops() == 1


@pytest.mark.parametrize("spread", [slice(None, None, 2), slice(None, None, -1), slice(3, 40)])
def test_views_as_arguments(spread: slice) -> None:
    f = written(SHIFT)
    memory, again = np.arange(160.0).reshape(80, 2), np.arange(160.0).reshape(80, 2)
    as_written(f, memory[spread, 0], memory[:, 1], 20)
    dc.accelerate(f)(again[spread, 0], again[:, 1], 20)
    np.testing.assert_array_equal(memory, again)


def test_read_only_arrays() -> None:
    f = written(SHIFT)
    x = np.arange(30.0)
    x.flags.writeable = False
    want = as_written(f, x, np.zeros(30), 20)[1]
    np.testing.assert_array_equal(dc.accelerate(f)(x, np.zeros(30), 20)[1], want)
    assert loops() == 1
    with pytest.raises(ValueError, match="read-only"):
        dc.accelerate(f)(np.zeros(30), x, 20)


@pytest.mark.usefixtures("either")
def test_pending_work_runs_first() -> None:
    f = written("""
        import numpy as np
        def f(x, y, n):
            a = x * 2
            b = np.sqrt(y + 1)
            y[:] = a
            later = y + b
            for i in range(1, n):
                y[i] = y[i - 1] + b[i]
            return y, b, later, a
    """)
    agree(f, np.arange(30.0), np.ones(30), 30, served=1)


@pytest.mark.usefixtures("either")
def test_plain_arrays_of_the_module() -> None:
    f = written("""
        import numpy
        table = numpy.arange(10.0)
        def f(x, n):
            for i in range(n):
                x[i] = x[i] * table[i]
            return x
    """)
    agree(f, np.arange(10.0), 10, served=1)
    f.__globals__["table"] = dc.asarray(np.ones(10)) * 3  # pending
    np.testing.assert_array_equal(dc.accelerate(f)(np.ones(10), 10), np.full(10, 3.0))
    assert loops() == 2


def test_selections_run_in_python() -> None:
    f = written("""
        def f(x, m):
            y = x[m > 0]
            for i in range(3):
                y[i] = y[i] * 2
            return y
    """)
    agree(f, np.arange(30.0), np.tile([1.0, -1.0], 15))


# ---- from one call to the next -----------------------------------------------------------------------
def test_other_types_and_sizes() -> None:
    f = written("""
        def f(x, n, c):
            for i in range(1, n):
                x[i] = x[i - 1] * c + x[i]
            return x, i
    """)
    for dtype in ("f8", "f4", "i8", "c16", "O", "?"):
        for n in (3, 5):
            for c in (2, 2.0, np.float32(2), True, 1j, "x"):
                agree(f, np.ones(5).astype(dtype), n, c)
    assert loops() > 3


def test_one_and_true_have_different_guards() -> None:
    f = written("""
        def f(x, c):
            for i in range(3):
                x[i] = x[i] + c
                t = c
            return x, t
    """)
    for c in (1, True, 1.0, np.int64(1), np.bool_(True), 0, False):
        agree(f, np.ones(3), c)


def test_changing_ints_are_symbols() -> None:
    f = written(SHIFT)
    for k, n in enumerate((7, 7, 9, 20, 1, 30, 7)):
        agree(f, np.arange(30.0), np.zeros(30), n, served=1)
        assert len(put_sites(f)[0].server.versions[0].plans.entries) == (1 if k < 2 else 2)
    agree(f, np.arange(30.0), np.zeros(30), 31, served=0)  # the index would be out of bounds
    agree(f, np.arange(30.0), np.zeros(30), True)
    agree(f, np.arange(30.0), np.zeros(30), 10**30)
    agree(f, np.arange(30.0), np.zeros(30), -3)
    agree(f, np.arange(30.0), np.zeros(30), 5, served=1)


def test_ints_that_have_to_be_known_are_no_symbols() -> None:
    f = written("""
        import numpy as np
        def f(x, n):
            for i in range(9):
                y = np.zeros((3,) * n)
                x[i] = x[i] + y.ndim
            return x
    """)
    for n in (1, 2, 1, 3, 2):
        agree(f, np.arange(30.0), n)
    agree(f, np.arange(30.0), 2, served=1)


def test_counters_of_outer_loops_are_symbols() -> None:
    f = written("""
        def f(x, n):
            for t in range(n):
                print(t)
                for i in range(1, len(x)):
                    x[i] = x[i - 1] * 0.5 + t
                x[t] = x[t] * t + 1
            return x
    """, print=lambda t: None)  # fmt: skip
    agree(f, np.arange(30.0), 9, served=9)
    outer = [site for site in put_sites(f) if site.source.counters]
    assert len(outer) >= 2 and all(
        len(version.plans.entries) <= 1 for site in outer for version in site.server.versions
    )


def test_constants_and_helpers_that_change() -> None:
    f = written("""
        c = 2.0
        k = 3
        def helper(v):
            return v * k
        def f(x, n):
            for i in range(n):
                x[i] = helper(x[i]) + c
            return x
    """)
    x = np.arange(10.0)
    scope = f.__globals__
    agree(f, x, 10, served=1)
    scope["c"] = 4.0
    agree(f, x, 10, served=1)
    scope["k"] = 5
    agree(f, x, 10, served=1)
    old = scope["helper"]
    exec("def helper(v):\n    return v - k", scope)  # of which nobody knows the source
    agree(f, x, 10, served=0)
    scope["helper"] = old
    agree(f, x, 10, served=1)
    old.__code__ = (lambda v: v + 100).__code__
    agree(f, x, 10, served=0)


def test_redefined_functions() -> None:
    f = written(SHIFT)
    agree(f, np.zeros(9), np.zeros(9), 9, served=1)
    f.__code__ = written(SHIFT.replace("1.0", "2.0")).__code__
    agree(f, np.zeros(9), np.zeros(9), 9, served=1)


def test_threads() -> None:
    f = written("""
        import numpy as np
        def f(x, n):
            y = np.zeros(x.shape)
            for i in range(1, n):
                y[i] = y[i - 1] * 0.5 + x[i]
            return y
    """)
    g = dc.accelerate(f)
    wrong: list[Any] = []
    given = [np.random.default_rng(k).random(300) for k in range(6)]
    want = [as_written(f, x, 300) for x in given]

    def work(k: int) -> None:
        with dc.options(jit="eager", cache_dir=None):
            for _ in range(20):
                if not np.array_equal(g(given[k], 300), want[k]):
                    wrong.append(k)

    together(6, work)
    assert (not wrong and loops() == 120 and f.__code__.co_consts == written.__code__.co_consts) or not wrong


def test_inner_loops_of_unsupported_loops() -> None:
    f = written("""
        def f(x, n, log):
            for t in range(n):
                log.append((t, str(n)))
                for i in range(1, 50):
                    x[i] = x[i - 1] * 0.5 + x[i]
            return x, log
    """)
    agree(f, np.arange(50.0), 4, [])
    before = loops()
    agree(f, np.arange(50.0), 4, [])
    assert loops() - before == 4


def test_modules() -> None:
    import types

    module = types.ModuleType("a_module_with_loops")
    f = written(SCAN)
    f.__globals__["np"] = np
    module.__dict__.update(f.__globals__)
    names = vars(module)
    g = names["f"] = FunctionType(f.__code__, names, "f", (0.5,))
    sys.modules[module.__name__] = module
    try:
        with dc.accelerate(module):
            x = np.linspace(0, 1, 100)
            g(x, 100)
            assert loops() == 1 and g.__code__ is not f.__code__
        assert g.__code__ is f.__code__
    finally:
        del sys.modules[module.__name__]
    np.testing.assert_array_equal(x, f(np.linspace(0, 1, 100), 100)[0])


@pytest.mark.usefixtures("either")
def test_explain() -> None:
    f = written("""
        def f(x, n):
            for i in range(1, n):
                x[i] = 0.5 * x[i - 1] + x[i]
            return x
    """)
    with dc.options(jit="background"):
        found = dc.explain(dc.accelerate(f), dc.asarray(np.zeros(100)), 100)
    text = str(found)
    assert len(found.regions) == 1 and "for i in range" in text and ":3" in text


def test_loops_of_functions_that_share_a_code_object() -> None:
    f = written("""
        def f(c):
            def inner(a):
                for k in range(1, len(a)):
                    a[k] += a[k - 1] * c
                return a
            return inner
    """)
    for c in (0.5, 0.25):
        np.testing.assert_array_equal(dc.accelerate(f(c))(np.ones(9)), f(c)(np.ones(9)))
    assert dc.report().loops == 2
