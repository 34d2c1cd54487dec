"""Systems of equations that are solved on all cores: LAPACK's accuracy, NumPy's errors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dcarray as dc
from dcarray.api.functions import solving
from dcarray.execution.routines import Compiled
from dcarray.lowering.runtime import elimination, openblas

RNG = np.random.default_rng(8)
EAGER: dict[str, Any] = {"jit": "eager", "eager_below": 0, "threads": 2}
SHAPES = [
    ((30, 30), 64), ((100, 100), 131), ((3, 24, 24), 24), ((2, 2, 40, 40), 65), ((200, 200), 400),
    ((311, 311), 70), ((60, 25, 25), 40),
]  # fmt: skip

pytestmark = pytest.mark.skipif(
    openblas.lu_routines("d") is None, reason="NumPy does not bring OpenBLAS along"
)


def values(shape: tuple[int, ...], char: str) -> Any:
    x = RNG.normal(size=shape)
    return (x + 1j * RNG.normal(size=shape) if char in "FD" else x).astype(char)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    made: list[Any] = []
    enter = openblas.SingleThreaded.__enter__
    monkeypatch.setattr(openblas.SingleThreaded, "__enter__", lambda self: made.append(1) or enter(self))
    return made


@pytest.mark.parametrize("char", "fdFD")
@pytest.mark.parametrize(("shape", "columns"), SHAPES)
def test_solutions(calls: list[Any], shape: tuple[int, ...], columns: int, char: str) -> None:
    a, b = values(shape, char), values((*shape[:-1], columns), char)
    eps = np.finfo(char).eps
    with dc.options(**EAGER):
        for turned in (a, np.asarray(a, order="F"), a.swapaxes(-1, -2)):
            x = np.linalg.solve(dc.asarray(turned), dc.asarray(b))
            assert type(x) is dc.ndarray and x.dtype == char and x.shape == b.shape
            left = np.abs(turned @ np.asarray(x) - b).max()
            assert left < 100 * shape[-1] * eps * np.abs(x).max() * np.abs(a).max()
        inverse = np.linalg.inv(dc.asarray(a) * 2)
        left = np.abs(2 * a @ np.asarray(inverse) - np.eye(shape[-1])).max()
        assert left < 100 * shape[-1] ** 2 * eps * np.abs(inverse).max() * np.abs(a).max()
        assert inverse.shape == shape and inverse.dtype == char
    assert len(calls) == 4 or (len(calls) == 3 and shape[-1] < 2 * solving._NARROW and len(shape) == 2)


@pytest.mark.parametrize("char", "dF")
@pytest.mark.parametrize(("shape", "columns"), [((2, 230, 230), 100), ((800, 800), 100), ((200, 200), 400)])
def test_panels_are_factored_beside_the_sides(
    calls: list[Any], shape: tuple[int, ...], columns: int, char: str
) -> None:
    a, b = values(shape, char), values((*shape[:-1], columns), char)
    with dc.options(**(EAGER | {"threads": 3})):
        x = np.asarray(np.linalg.solve(dc.asarray(a), dc.asarray(b)))
    assert calls
    assert np.abs(a @ x - b).max() < 1000 * shape[-1] * np.finfo(char).eps * np.abs(x).max()
    with dc.options(**(EAGER | {"threads": 3})):
        for column in (3, shape[-1] // 2, shape[-1] - 1):  # in different panels
            singular = a.copy()
            singular[..., column] = 0
            with pytest.raises(np.linalg.LinAlgError, match="Singular"):
                np.linalg.solve(dc.asarray(singular), b)


@settings(max_examples=16, deadline=None)
@given(st.sampled_from("fdFD"), *(st.integers(1, most) for most in (90, 100, 8, 3, 5)))
def test_any_panels_and_pieces(char: str, n: int, m: int, panels: int, pieces: int, count: int) -> None:
    """The steps, done here one after the other, solve the systems."""
    a, b = values((count, n, n), char), values((count, n, m), char)
    panels, pieces = min(panels, n), min(pieces, m)
    steps = elimination.plan(n, m, panels, pieces, a.itemsize, False)
    x, lu = np.full((count, n, m), np.nan, char), np.full((count, n, n), np.nan, char)
    swaps, info = np.full((count, n), -1, np.int64), np.full(count * panels, -1, np.int64)
    table = steps.at([v.ctypes.data for v in (a, b, x, lu, swaps, info)])
    with dc.options(**EAGER):
        launch = solving._ROUTINES[char].launch(1.0)
    routines, scalars = openblas.lu_routines(char), np.array([1.0, -1.0], char)
    assert routines is not None
    first = 0
    for items, _ in steps.phases:
        sizes = [items * count, 1] + [0, 1] * (elimination.PHASES - 1)
        where = [v.ctypes.data for v in (table, steps.starts)]
        firsts = [first] + [0] * (elimination.PHASES - 1)
        launch(launch.pack(*sizes, *where, *routines, scalars.ctypes.data, count, *firsts), 1)
        first += items
    assert not info.any()
    size = np.abs(x).max(axis=(1, 2), keepdims=True)
    assert (np.abs(a @ x - b) < 100 * n * np.finfo(char).eps * np.maximum(size, 1)).all()


@pytest.mark.parametrize("char", "fdFD")
@pytest.mark.parametrize("scale", [1e-30, 1, 1e30])
def test_sizes_of_pivots(calls: list[Any], char: str, scale: float) -> None:
    """Reciprocals of what is on the diagonal overflow no sooner than LAPACK's."""
    a = values((40, 40), char)
    a += np.diag(np.resize([9, 9j, -9, -9j] if char in "FD" else [9, -9], 40))
    b = values((40, 70), char)
    with dc.options(**EAGER):
        x = np.asarray(np.linalg.solve(dc.asarray(a * a.real.dtype.type(scale)), dc.asarray(b)))
    assert calls
    wanted = np.linalg.solve(a * a.real.dtype.type(scale), b)
    np.testing.assert_allclose(
        x, wanted, rtol=1e4 * np.finfo(char).eps, atol=1e3 * np.finfo(char).eps * np.abs(wanted).max()
    )


def test_code_that_is_not_there_yet_is_waited_for(calls: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = values((150, 150), "d"), values((150, 256), "d")
    x, y = dc.asarray(a), dc.asarray(b)
    found: list[Any] = []
    ready = solving._ROUTINES["d"].launch
    with dc.options(jit="eager", threads=2):
        launch = ready(1.0)
        monkeypatch.setattr(Compiled, "launch", lambda self, seconds: found[0] if found else None)
        for turn in range(6):
            if turn == 4:
                found.append(launch)
            z = np.linalg.solve(x, y)
            np.testing.assert_allclose(np.asarray(z), np.linalg.solve(a, b), rtol=1e-7, atol=1e-9)
    assert len(calls) == 2  # NumPy's results before did not make the place NumPy's


def test_pending_values_and_later_writes(calls: list[Any]) -> None:
    a, b = values((64, 64), "d"), values((64, 80), "d")
    with dc.options(**EAGER):
        x, y = dc.asarray(a.copy()), dc.asarray(b.copy())
        y += 1
        z = np.linalg.solve(x * 2, y)
        y[:] = 0
        x[:] = 0
        np.testing.assert_allclose(np.asarray(z), np.linalg.solve(2 * a, b + 1), rtol=1e-8, atol=1e-10)
    assert calls


@pytest.mark.parametrize("char", "dD")
def test_a_singular_matrix(calls: list[Any], char: str) -> None:
    a, b = values((3, 50, 50), char), values((3, 50, 70), char)
    a[1, :, 7] = 0
    with dc.options(**EAGER):
        for f in (lambda: np.linalg.solve(dc.asarray(a), b), lambda: np.linalg.inv(dc.asarray(a))):
            with pytest.raises(np.linalg.LinAlgError, match="Singular"):
                f()
    assert len(calls) == 2


def test_what_is_not_served(calls: list[Any], same: Callable[..., None]) -> None:
    a, b = values((30, 30), "d") + 9 * np.eye(30), values((30, 64), "d")
    with dc.options(**EAGER):
        for p, q in [
            (a, b[:, 0]), (a, b[:20]), (a[:, :20], b), (a, b.astype("D")), (a, np.stack([b, b])),
            (a.astype("i8"), b.astype("i8")), (a[:0, :0], b[:0]), (a[:5, :5], b[:5]), (a, b[:, :0]),
        ]:  # fmt: skip
            same(lambda x, y: np.round(np.linalg.solve(x, y), 9), p, q)
        for p in (a[0], a[:3], a[:9, :9], a[:0, :0], a.astype("g")):
            same(lambda x: np.round(np.linalg.inv(x), 9), p)
    assert not calls


def test_the_threads_of_the_library_are_put_back() -> None:
    library = openblas._library()
    before = library.scipy_openblas_get_num_threads64_()
    try:
        library.scipy_openblas_set_num_threads64_(2)
        with openblas.SingleThreaded():
            with openblas.SingleThreaded():
                assert library.scipy_openblas_get_num_threads64_() == 1
            assert library.scipy_openblas_get_num_threads64_() == 1
        assert library.scipy_openblas_get_num_threads64_() == 2
        with openblas.SingleThreaded():
            openblas.SingleThreaded.after_fork()
            assert library.scipy_openblas_get_num_threads64_() == 2
            openblas.SingleThreaded._inside = 1  # as the parent has it
        assert library.scipy_openblas_get_num_threads64_() == 2
        with openblas.SingleThreaded():
            library.scipy_openblas_set_num_threads64_(3)  # as the user may do in another thread
        assert library.scipy_openblas_get_num_threads64_() == 3
    finally:
        library.scipy_openblas_set_num_threads64_(before)
