"""Assignments and selections by masks: everything as in NumPy; assignments are recorded where they can be."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dcarray as dc
from dcarray.core.processes import communicator

MODES: tuple[dict[str, Any], ...] = ({}, {"eager_below": 0, "jit": "off"}, {"eager_below": 0, "jit": "eager"})
RECORDED = MODES[1]


def outcome(program: Callable[..., Any], arrays: list[np.ndarray], wrap: bool) -> Any:
    """Values, dtypes, warnings and error of a program."""
    given = [dc.asarray(a.copy()) if wrap else a.copy() for a in arrays]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = program(*given)
            values = [np.asarray(v) for v in (*given, *(result if isinstance(result, tuple) else (result,)))]
            error = None
        except Exception as raised:
            values, error = [np.asarray(v) for v in given], type(raised)
    return values, error, sorted({str(w.message) for w in caught})


def check(program: Callable[..., Any], *arrays: np.ndarray, exact: bool = True) -> None:
    want, error, warned = outcome(program, list(arrays), False)
    for mode in MODES:
        with dc.options(**mode):
            got, error_too, warned_too = outcome(program, list(arrays), True)
        assert error_too is error, (mode, error_too, error)
        assert warned_too == warned, (mode, warned_too, warned)
        for a, b in zip(want, got, strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape, (mode, a, b)
            if exact and a.dtype != object and (communicator() is None or a.dtype.kind not in "fc"):
                np.testing.assert_array_equal(
                    np.ascontiguousarray(a).view(np.uint8), np.ascontiguousarray(b).view(np.uint8), str(mode)
                )
            elif a.dtype.kind not in "OU":
                np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13, err_msg=str(mode))


A = np.linspace(-2.0, 2.0, 60).reshape(5, 12)
B = np.cos(A * 7)
COMPLEX = A + 1j * B
COUNTS = np.arange(60).reshape(5, 12) - 20


@pytest.mark.parametrize("program", [
    lambda x, y: x.__setitem__(x > 0, 7),
    lambda x, y: x.__setitem__(x > 9, 7),
    lambda x, y: x.__setitem__(x > 0, y[x > 0] * 2),
    lambda x, y: x.__setitem__(x > 0, np.sqrt(x[x > 0])),
    lambda x, y: x.__setitem__(x != 0, 1 / x[x != 0]),
    lambda x, y: x.__setitem__(x > 0.5, x[x > 0.5] ** -1.5),
    lambda x, y: x.__setitem__(x > 0.5, x[x > 0.25]),
    lambda x, y: x.__setitem__(x > 0, np.arange(3)),
    lambda x, y: x.__setitem__(x > 0, 1j),
    lambda x, y: x.__setitem__(x > 0, None),
    lambda x, y: x.__setitem__(x > 0, "a"),
    lambda x, y: x.__setitem__(x > 0, np.float32(0.1)),
    lambda x, y: x.__setitem__(x > 0, np.complex128(1)),
    lambda x, y: x.__setitem__(x[:4] > 0, 1),
    lambda x, y: x.__setitem__(x[:, 0] > 0, 3),
    lambda x, y: x.__setitem__(x[:, 0] > 0, y[1]),
    lambda x, y: x.__setitem__(x[:, 0] > 0, x[1]),
    lambda x, y: x.__setitem__(x[:, 0] > 0, y[x[:, 0] > 0]),
    lambda x, y: x.__setitem__(x[:, 0] > 0, y[1:2, :1]),
    lambda x, y: x[1:].__setitem__(x[:-1] > 0, 3),
    lambda x, y: x.__setitem__(y > 0, x[::-1][y > 0]),
    lambda x, y: x.T.__setitem__(y.T > 0, 3),
    lambda x, y: x.__setitem__(y, 3),
    lambda x, y: (x[x > 0], x[:, 0][y[:, 0] > 0], x[y[:, 1] > 0]),
    lambda x, y: x[x > 0] + y[x > 0],
    lambda x, y: x[x > 0] + y[y > 0],
    lambda x, y: x[x > 0] / 0,
    lambda x, y: x[x > 9] / 0,
    lambda x, y: np.log(x[x > -1]),
    lambda x, y: np.log(x[x > 0]) < 0.2,
    lambda x, y: -abs(x[x < 0]) % 0.3,
    lambda x, y: divmod(x[x < 0], 0.3),
    lambda x, y: x[x > 0] @ y[x > 0],
    lambda x, y: x[x > 0] & 1,
    lambda x, y: np.add(x[x > 0], 1, where=False, out=np.zeros(30)),
    lambda x, y: (len(x[x > 0]), x[x > 0].size, x[x > 0].ndim, x[y[:, 0] > 0].ndim),
    lambda x, y: next(iter(x[x > 1])),
    lambda x, y: np.sort(x[y > 0]),
    lambda x, y: np.concatenate([x[y > 0], y[y > 0], x[0]]),
    lambda x, y: x[y > 0][3:6],
])  # fmt: skip
def test_as_numpy(program: Callable[..., Any]) -> None:
    check(program, A, B)
    check(program, COUNTS, COUNTS[::-1])


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "std", "prod", "any"])
@pytest.mark.parametrize(
    "array", [A, A.astype("f4"), COUNTS, COUNTS.astype("u1"), A > 1, COMPLEX, A.astype("f2")]
)
def test_folds(name: str, array: np.ndarray) -> None:
    def program(x: Any, y: Any) -> Any:
        v = x[y > 0]
        before = getattr(v, name)()
        return before, getattr(np, name)(v), v, getattr(x[y > 5], name)()

    tolerant = (array.dtype.kind == "f" and array.dtype != np.float16) or name == "std"  # sums of floats
    check(program, array, B, exact=not tolerant) if array.dtype != np.float32 else check(
        lambda x, y: x[y > 0].max(), array, B
    )


def test_folds_of_nothing_and_of_signed_zeros() -> None:
    check(lambda x: x[x > 9].sum(), A)
    check(lambda x: x[x > 9].mean(), A)
    check(lambda x: x[x > 9].max(), A)
    check(lambda x: x[x <= 0].sum(), np.array([1.0, -0.0, 2.0, -0.0]))


def test_in_place_operators() -> None:
    def program(x: Any, y: Any) -> Any:
        x[x > 0] += 1
        x[y > 0] *= 3
        x[x < 0] **= 2
        x[x > 2] -= y[x > 2]
        v = x[y < 0]
        w = v
        v += 1
        v *= v
        return v, w

    check(program, A, B)
    check(lambda x: x.__setitem__(x > 0, x[x > 0].__itruediv__(2)), COUNTS)
    check(program, COMPLEX.real.copy().astype("f4"), B.astype("f4"))


def test_a_selection_is_of_its_moment() -> None:
    def program(x: Any, y: Any) -> Any:
        mask = x > 0
        v, w = x[mask], y[mask]
        np.logical_not(mask, mask)
        x[...] = 5
        y[mask] = v.max()
        y[0] = 2
        return v, w, v * w, y

    check(program, A, B)

    def with_plain(x: Any, y: Any) -> Any:
        mask = np.array(x) > 0
        x[mask] = 4
        mask[...] = True
        v = x[mask]
        x[0] = 1
        return v

    check(with_plain, A, B)

    def swapped(x: Any, y: Any) -> Any:
        mask = x > 0
        v = x[mask]
        mask[...] = ~mask
        try:
            x[mask] = v
        except ValueError:
            x[0] = -1
        return v

    check(swapped, A[:, ::-1].copy(), B)
    check(swapped, A[:4], B)


def test_accelerated_functions_give_plain_selections() -> None:
    @dc.accelerate
    def function(x: Any) -> Any:
        return x[x > 0], [x[x < 0]]

    with dc.options(**RECORDED):
        a, (b,) = function(A)
    assert type(a) is type(b) is np.ndarray
    np.testing.assert_array_equal(a, A[A > 0])


def test_errors_of_floating_point_are_those_of_chosen_elements() -> None:
    def program(x: Any, y: Any) -> Any:
        x[x > 0] = np.log(x[x > 0])
        with np.errstate(all="raise"):
            y[y != 0] = 1 / y[y != 0]
        return x

    check(program, A, np.where(B > 0, B, 0.0))

    def raising(x: Any, y: Any) -> Any:
        with np.errstate(divide="raise"):
            y[y >= 0] = 1 / y[y >= 0]
            dc.evaluate(y)

    for mode in MODES:
        with dc.options(**mode), pytest.raises(FloatingPointError):
            raising(None, dc.asarray(np.where(B > 0, B, 0.0)))


STEPS = (
    "x[m] = 3", "x[m] = y[m] + 1", "x[m] += y[m]", "x[m] *= 2", "y[m] = x[m] * y[m] - x[m]", "m = x > y",
    "m = x > 0", "m = ~m", "np.logical_not(m, m)", "m[1] = True", "x = x + y", "y[1:] = x[:-1]",
    "v = x[m]", "v = np.minimum(v, 4)", "v = v + v", "v -= 1", "x[m] = v", "x[y < 1] = 0.5",
    "x[y > x] = y[y > x]", "r.append(v)", "r.append(v.max() if v.size else 0)",
    "r.append(np.float64(x[m].sum()))", "r.append(x[m].mean())", "r.append(x.sum())",
    "x[:, 0][m[:, 0]] = 1", "x[m[:, 1]] = y[0]", "w = v; v = y[m]; r.append(w)",
)  # fmt: skip


@settings(derandomize=True, deadline=None, max_examples=20)
@given(st.lists(st.sampled_from(STEPS), min_size=2, max_size=14), st.sampled_from(["f8", "i8", "c16"]))
def test_random_programs(steps: list[str], dtype: str) -> None:
    def program(x: Any, y: Any) -> Any:
        m = x > 0
        names = {"np": np, "x": x, "y": y, "m": m, "v": x[m], "r": []}
        for step in steps:
            try:
                exec(step, names)
            except Exception as error:
                names["r"].append(np.array(type(error).__name__))
        return (names["x"], names["y"], names["m"], names["v"], *names["r"])

    a = np.round(A * 3) if dtype != "c16" else COMPLEX.round(1)
    b = np.round(B * 3) if dtype != "c16" else COMPLEX[::-1].round(1)
    check(program, a.astype(dtype), b.astype(dtype), exact=False)


@pytest.mark.parametrize("program", [
    lambda x, y: np.copyto(x, 3, where=y > 0),
    lambda x, y: np.copyto(x, y, where=y > 0),
    lambda x, y: np.copyto(x, y[0], where=y[:, :1] > 0),
    lambda x, y: np.copyto(x, x[::-1], where=y > 0),
    lambda x, y: np.copyto(x, y[:, :5], where=y > 0),
    lambda x, y: np.copyto(x, y, where=(y > 0)[:, :5]),
    lambda x, y: np.copyto(x[1:], y[1:], where=(y > 0)[:-1]),
    lambda x, y: np.copyto(x, np.float32(0.1), where=y > 0),
    lambda x, y: np.copyto(x, 1j, where=y > 0),
    lambda x, y: np.copyto(x, 1.5, where=y > 0, casting="unsafe"),
    lambda x, y: np.copyto(x, y, where=y),
    lambda x, y: np.copyto(x, y, where=[True] * 12),
    lambda x, y: np.copyto(x, y, where=False),
    lambda x, y: np.putmask(x, y > 0, 3),
    lambda x, y: np.putmask(x, y > 0, 2.5),
    lambda x, y: np.putmask(x, y > 0, [1, 2, 3]),
    lambda x, y: np.putmask(x, y > 0, y),
    lambda x, y: np.putmask(x, y, 7),
    lambda x, y: np.putmask(x, (y > 0)[0], 7),
    lambda x, y: np.putmask(x, y > 0, "a"),
])  # fmt: skip
def test_copies_under_masks(program: Callable[..., Any]) -> None:
    check(program, A, B)
    check(program, COUNTS, COUNTS[::-1])
    check(program, A.astype("f4"), B)


def test_copies_into_small_arrays_and_views_that_are_read_only() -> None:
    large = np.linspace(-1, 1, 1 << 16).reshape(1 << 12, 16)
    for function in (np.copyto, np.putmask):
        x, y = dc.asarray(np.zeros(16)), dc.asarray(large)
        options = {"where": y[0] > -2} if function is np.copyto else {}
        function(x, y[0] if options else y[0] > -2, **(options or {"values": 2.0}))  # type: ignore[operator]
        np.testing.assert_array_equal(x, large[0] if options else np.full(16, 2.0))
        z = dc.asarray(large)
        z.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            function(z, 1.0 if options else z > 0, **({"where": z > 0} if options else {"values": 2.0}))


@pytest.mark.parametrize("program", [
    lambda x, y: np.divide(x, y, out=np.zeros_like(x), where=y != 0),
    lambda x, y: np.divide(x, y, out=x, where=y > 0),
    lambda x, y: np.divide(1, y, out=x, where=y > 0),
    lambda x, y: np.divide(y, 0, out=x, where=y > 9),
    lambda x, y: np.log(y, out=x, where=y > 0),
    lambda x, y: np.log(y, out=x, where=y > -1),
    lambda x, y: np.arctanh(y, out=x, where=abs(y) < 1),
    lambda x, y: np.sqrt(y, out=x, where=x > 0),
    lambda x, y: np.add(y, 1, out=x, where=(y > 0)[0]),
    lambda x, y: np.add(y[0], 1, out=x, where=y > 0),
    lambda x, y: np.add(y, 1, out=x, where=y),
    lambda x, y: np.add(y, 1, out=x[1:], where=y > 0),
    lambda x, y: np.add(x[::-1], y, out=x, where=x > y),
    lambda x, y: np.greater(x, y, out=x, where=x > y),
    lambda x, y: np.left_shift(x, 70, out=x, where=x > y),
    lambda x, y: np.multiply(x, 2, out=x[::-1], where=x[::-1] > y),
])  # fmt: skip
def test_ufuncs_under_masks(program: Callable[..., Any]) -> None:
    check(program, A, np.maximum(B, -0.9).round(1))
    check(program, COUNTS, COUNTS[::-1])
    check(program, A.astype("f4"), B)
