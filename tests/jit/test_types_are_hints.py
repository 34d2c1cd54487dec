"""Types of programs are hints: whatever a call gives, the result is that of the function as it is written."""

import copy
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from dcarray.core.counters import settle

N, M = dc.symbol("N"), dc.symbol("M")


@dc.program
def scaled(a: float, n: int, x: dc.types.float64[N]):  # type: ignore[no-untyped-def]
    x *= a
    return x * n + a, a * n


@dc.program
def typed(w: dc.float32, z: complex, flag: bool, x: dc.types.float32[N]):  # type: ignore[no-untyped-def]
    if flag:
        x += w
    return x * z


@dc.program
def sized(n: int, x: dc.types.float64[N]):  # type: ignore[no-untyped-def]
    s = np.zeros(n)
    for i in range(n):
        s[i] = x[i] * 2.0
    return s


def outcome(function: Any, args: Any) -> Any:
    """What a call gives, what it leaves in its arguments, or the error that it raises."""
    given = copy.deepcopy(args)
    try:
        found = function(*given)
    except Exception as error:
        return type(error).__name__, str(error)
    every = [*(found if type(found) is tuple else [found]), *given]
    plain = [np.asarray(one) if isinstance(one, dc.ndarray) else one for one in every]
    return [(type(one).__name__, repr(one), getattr(one, "dtype", None)) for one in plain]


def lines() -> list[str]:
    return [one.function for one in dc.report(reset=True).fallbacks if one.kind == "loop"]


NUMBERS = [True, 2, -3, 2.5, np.float64(2.5), np.float32(0.1), np.int64(4), np.int32(3), np.bool_(True)]


@pytest.mark.parametrize("a", [*NUMBERS, 1 << 50])
@pytest.mark.parametrize("n", [1, 2.0, np.int64(3), np.float64(0.5)])
def test_numbers(a: Any, n: Any) -> None:
    for x in (np.linspace(0, 1, 5), np.arange(3, dtype="f4")):
        args = a, n, x
        want = outcome(scaled.written, args)
        lines()
        assert outcome(scaled, args) == want
        said = lines()
        if x.dtype == "f8":
            assert not said or "too many versions" in said[0]
        else:
            assert len(said) == 1 and "expected to be float64[N]" in said[0]


@pytest.mark.parametrize("w", [1, 0.1, np.float32(0.1), np.float64(0.1)])
@pytest.mark.parametrize("z", [1j, 2.0, 3, np.complex64(1j), np.complex128(2)])
@pytest.mark.parametrize("flag", [True, False, 1, np.bool_(False)])
def test_numbers_of_other_sorts(w: Any, z: Any, flag: Any) -> None:
    args = w, z, flag, np.arange(4, dtype="f4")
    want = outcome(typed.written, args)
    lines()
    assert outcome(typed, args) == want and len(lines()) <= 1


def test_a_version_is_compiled_once_and_serves() -> None:
    x, fresh = np.ones(6), dc.program(scaled.written)
    for a in (1.5, np.float64(1.5), 3):
        fresh(a, 2, x.copy())
        before = settle()
        compiled, ran = before.compiles, before.loops
        fresh(a, 2, x.copy())
        after = settle()
        assert after.loops == ran + 1 and after.compiles == compiled


def test_numbers_without_a_version() -> None:
    """A NumPy integer is no size of compiled code: a line, once for each call, and NumPy's result."""
    x = np.arange(6.0)
    assert np.array_equal(sized(3, x), 2 * x[:3])
    for _ in range(2):
        lines()
        assert outcome(sized, (np.int64(3), x)) == outcome(sized.written, (np.int64(3), x))
        assert len(lines()) <= 1
    dc.report(reset=True)
    with pytest.raises(TypeError), dc.options(strict=True):
        sized(2.0, x)


ARRAYS = [
    np.ones(4, "f4"), np.ones(4, int), np.ones(4, complex), np.ones((4, 1)), np.array(1.5), [1, 2, 3],
    [[1.0], [2.0]], [1.0, 2], [], (1.0, 2.0), None, 2.0, np.float64(2.0), "text", np.ones(3, bool),
    np.ones(3, ">f8"), np.array(["a"]), np.ones(3).astype(object),
]  # fmt: skip


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("k", range(len(ARRAYS)))
def test_what_is_no_such_array(k: int, wrap: bool) -> None:
    x = ARRAYS[k]
    if wrap:
        if not isinstance(x, np.ndarray) or x.dtype.char not in "fdDlq?":
            return
        args: Any = 2.0, 3, dc.asarray(x)
    else:
        args = 2.0, 3, x
    want = outcome(scaled.written, args)
    lines()
    assert outcome(scaled, args) == want
    said = lines()
    assert len(said) == 1 and "scaled(): the argument x" in said[0] and "float64[N]" in said[0], said
    given = copy.deepcopy(args)
    with dc.options(strict=True), pytest.raises(TypeError, match=r"scaled\(\): the argument x"):
        scaled(*given)


def test_arrays_that_are_as_annotated() -> None:
    """Wrapped ones and views: no line, and no error with the option strict; read-only ones: NumPy's error."""
    whole = np.arange(8.0)
    for x in (whole, dc.asarray(whole), whole[::2], whole[::-1], whole.reshape(4, 2)[:, 0]):
        lines()
        with dc.options(strict=True):
            assert outcome(scaled, (2.0, 3, x)) == outcome(scaled.written, (2.0, 3, x))
        assert not lines()
    whole.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        scaled(2.0, 3, whole)
