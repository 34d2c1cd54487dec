"""Guards and their checks in C: no values pass but those with equal guards."""

import math
from typing import Any

import numpy as np
import pytest
from as_written import as_written
from written import written

import dcarray as dc
from dcarray.core.counters import settle
from dcarray.core.native import BUILT
from dcarray.jit.loops.entry.guard_checks import checks_hold, checks_of
from dcarray.jit.loops.entry.guards import guard_of

pytestmark = pytest.mark.skipif(not BUILT, reason="without the C module there is no short way")


def _readonly(a: Any) -> Any:
    a.flags.writeable = False
    return a


def _values() -> list[Any]:
    raw = np.zeros(65, np.uint8)
    arrays = [
        *(np.zeros(n, dtype) for n in (8, 9) for dtype in ("f8", "f4", "i8", ">f8", "M8[s]")),
        *(np.zeros(shape) for shape in ((2, 4), (), 0, 20_000)),
        np.zeros(16)[::2],
        np.zeros(8)[::-1],
        np.zeros((4, 2)).T,
        raw[1:].view(np.float64),
        np.broadcast_to(np.zeros(1), (8,)),
        np.broadcast_arrays(np.zeros(1), np.zeros(8))[0],
        np.lib.stride_tricks.as_strided(np.zeros(8), (3, 3), (8, 8)),
        _readonly(np.zeros(8)),
    ]
    others: list[Any] = [
        *(
            0, 1, -1, 10**30, True, False, 1.0, 0.0, math.nan, 1j, None, "a", "b", (1, 2), (1, 3),
            (1, (2.0, "a")), (),
        ),
        *(
            np.float64(1), np.float32(1), np.int64(1), np.longlong(1), np.bool_(True), np.dtype("f8"),
            np.dtype("f4"),
        ),
        *(range, max, math.sqrt, np, math, float, np.float64, dc.ndarray, object(), [1], {}),
        np.random.default_rng(0),
        *(written(f"def f(x):\n    return x + {n}\n") for n in (1, 2)),
    ]  # fmt: skip
    return [*arrays, *[dc.asarray(a) for a in arrays if a.dtype.kind != "M"], *others]


def test_only_values_with_equal_guards_pass() -> None:
    values, again = _values(), _values()
    passed = 0
    for value in values:
        guard = guard_of(value)
        if guard is None:
            continue
        checks = checks_of((value,), (guard,), ())
        assert checks is not None
        for other in (*values, *again):
            if checks_hold(checks, (other,)) is not None:
                assert guard_of(other) == guard and type(other) is type(value)
                passed += 1
    assert passed > 100


def test_checks_give_addresses() -> None:
    a, x, big = np.zeros(8), dc.asarray(np.zeros(16)[::2]), dc.asarray(np.zeros(20_000))
    values = (a, 3, x, big)
    guards = [guard_of(v) for v in values]
    checks = checks_of(values, guards, (0,))
    assert checks is not None
    assert checks_hold(checks, values) == (
        a.ctypes.data,
        0,
        np.asarray(x).ctypes.data,
        np.asarray(big).ctypes.data,
    )
    assert checks_hold(checks, (a, 4, x, big)) is None and checks_hold(checks, values[:3]) is None


def test_written_arrays_must_not_overlap() -> None:
    memory = np.zeros(20)
    a, b, c = memory[:8], memory[8:16], memory[7:15]
    guards = [guard_of(a), guard_of(b)]
    reading, writing = checks_of((a, b), guards, ()), checks_of((a, b), guards, (1,))
    assert reading is not None and writing is not None
    assert checks_hold(reading, (a, b)) and checks_hold(writing, (a, b)) and checks_hold(reading, (a, c))
    assert checks_hold(writing, (a, c)) is None and checks_hold(writing, (c, a)) is None
    assert checks_hold(reading, (a, a)) is None  # one array with two names is another guard
    assert checks_hold(writing, (memory[8:16], memory[:8]))


def test_pending_arrays_do_not_pass() -> None:
    a = np.zeros(20_000)
    x = dc.asarray(a)
    checks = checks_of((x,), (guard_of(x),), ())
    plain = checks_of((a,), (guard_of(a),), ())
    assert checks is not None and plain is not None and checks_hold(checks, (x,)) and checks_hold(plain, (a,))
    with dc.options(eager_below=0):
        x += 1
        assert checks_hold(checks, (x,)) is None and checks_hold(plain, (a,)) is None
        dc.evaluate(x)
    assert checks_hold(checks, (x,)) and checks_hold(plain, (a,)) and a[0] == 1


def test_changed_functions_do_not_pass() -> None:
    f = written("def g(x):\n    return x\n\ndef f(x):\n    return g(x) + 1\n")
    checks = checks_of((f,), (guard_of(f),), ())
    assert checks is not None and checks_hold(checks, (f,))
    f.__globals__["g"] = max
    assert checks_hold(checks, (f,)) is None


def test_symbols_are_any_ints() -> None:
    checks = checks_of((3, 3), (3, "int"), ())
    assert checks is not None and checks_hold(checks, (3, 3)) == checks_hold(checks, (3, 40)) == (0, 0)
    assert checks_hold(checks, (40, 3)) is None and checks_hold(checks, (3, True)) is None
    assert checks_hold(checks, (3, 3.0)) is None and checks_hold(checks, (3, np.int64(3))) is None


def _both(f: Any, args: tuple[Any, ...]) -> None:
    """A function gives, and does to its arguments, what it does as it is written."""
    plain = [a.copy() if type(a) is np.ndarray else a for a in args]
    plain = [
        p if type(p) is not np.ndarray else _readonly(p) if not a.flags.writeable else p
        for p, a in zip(plain, args, strict=True)
    ]
    results = []
    for g, values in ((f, plain), (dc.accelerate(f), args)):
        try:
            results.append((as_written(g, *values) if g is f else g(*values), None))
        except ValueError as error:
            results.append((None, str(error)))
    assert results[0][1] == results[1][1]
    for one, other in zip(results[0][0] or (), results[1][0] or (), strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(plain, args, strict=True):
        np.testing.assert_array_equal(one, other)
        assert type(other) is not np.ndarray or one.flags.writeable == other.flags.writeable


def test_alternating_calls() -> None:
    """After calls that were served the short way others come, and those again."""
    f = written(
        """
        def f(a, b, n, c=0.5):
            s = 0.0
            for i in range(1, n):
                b[i] = a[i - 1] * c + b[i - 1]
                s = s + a[i]
            return s, b
        """
    )
    memory = np.linspace(1, 2, 60)
    make = [
        lambda: (np.linspace(1, 2, 20), np.zeros(20), 20),
        lambda: (np.linspace(1, 2, 20).astype(np.float32), np.zeros(20), 20),
        lambda: (np.linspace(1, 2, 20), np.zeros(20), 15),
        lambda: (np.linspace(1, 2, 20), np.zeros(20, np.float32), 20),
        lambda: (np.linspace(1, 2, 40)[::2], np.zeros(20), 20),
        lambda: (np.linspace(1, 2, 20), _readonly(np.zeros(20)), 20),
        lambda: (_readonly(np.linspace(1, 2, 20)), np.zeros(20), 20),
        lambda: (np.linspace(1, 2, 20), np.zeros(20), 20, 0.25),
        lambda: (np.linspace(1, 2, 20), np.zeros(20), 20, 2),
        lambda: (np.linspace(1e300, 1e308, 20), np.zeros(20), 20, 1e10),
    ]
    with dc.options(jit="eager"):
        for one in make:
            for args in (make[0](), one(), make[0](), one(), make[0]()):
                with np.errstate(all="ignore"):
                    _both(f, args)
        a, b = memory[:20], memory[5:25]  # which share memory
        for _ in range(3):
            want = memory.copy()
            as_written(f, want[:20], want[5:25], 20)
            dc.accelerate(f)(a, b, 20)
            np.testing.assert_array_equal(memory, want)


def test_changed_error_states_are_noticed() -> None:
    f = written(
        """
        def f(a, b):
            for i in range(1, 20):
                b[i] = a[i - 1] / a[i]
            return b
        """
    )
    a = np.arange(20.0)[::-1].copy()
    with dc.options(jit="eager"):
        g = dc.accelerate(f)
        for _ in range(3):
            with np.errstate(divide="ignore"):
                g(a, np.zeros(20))
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
            g(a, np.zeros(20))
        with np.errstate(divide="warn"), pytest.warns(RuntimeWarning, match="divide"):
            g(a, np.zeros(20))


@pytest.mark.eager(debug=False)
def test_types_are_not_compared_by_their_metaclass() -> None:
    compared = []

    class Meta(type):
        def __eq__(cls, other: object) -> bool:
            compared.append(other)
            return cls is other

        __hash__ = type.__hash__

    class Kept(metaclass=Meta):
        value = 1.5

    f = written("def f(o, n):\n    s = 0.0\n    for i in range(n):\n        s += o.value * i\n    return s")
    g, before = dc.accelerate(f), settle().loops
    assert [g(Kept(), 100) for _ in range(2)] == [as_written(f, Kept(), 100)] * 2
    assert settle().loops == before + 2 and not compared
