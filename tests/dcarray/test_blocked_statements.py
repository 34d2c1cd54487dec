"""Blocked statements: what a group of element-wise statements gives is what NumPy gives, one by one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from dcarray.core.native import BUILT
from dcarray.execution import blocked_statements, executor, statement_groups
from dcarray.recording import session

pytestmark = [
    pytest.mark.skipif(not BUILT, reason="the C module runs them"),
    pytest.mark.one_process("several ranks run parts of the statements"),
]


@pytest.fixture(autouse=True)
def ran(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Small arrays form groups, and nothing has a plan; the numbers of statements that ran together."""
    dc.evaluate()
    for name in ("LEAST", "ALONE", "ROUNDED"):
        monkeypatch.setattr(statement_groups, name, 1)
    monkeypatch.setattr(blocked_statements, "SHARED", 1)
    monkeypatch.setattr(session, "EXECUTOR", executor.Executor())
    monkeypatch.setattr(executor.Executor, "plan_for", lambda *_: None)
    counts: list[int] = []
    run = blocked_statements.Group.run

    def noted(self: Any, *args: Any) -> bool:
        done = run(self, *args)
        if done:
            counts.append(self.length)
        return done

    monkeypatch.setattr(blocked_statements.Group, "run", noted)
    with dc.options(eager_below=0, jit="background", threads=2, debug=True):
        yield counts


def outcome(f: Callable[..., Any], arrays: Any) -> tuple[list[Any], list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = f(*arrays)
        results = [np.asarray(r) for r in (*made, *arrays)]
    return results, [str(w.message) for w in caught]


def agree(f: Callable[..., Any], *arrays: np.ndarray, close: bool = False) -> None:
    """The same bytes and the same warnings, in what is returned and in the arrays that were given."""
    want, told = outcome(f, [a.copy(order="K") for a in arrays])
    got, said = outcome(f, [dc.asarray(a.copy(order="K")) for a in arrays])
    for ours, numpys in zip(got, want, strict=True):
        assert ours.dtype == numpys.dtype and ours.shape == numpys.shape
        if close and ours.ndim == 0 and ours.dtype.kind in "fc":
            np.testing.assert_allclose(ours, numpys, rtol=1e-5 if ours.dtype.char in "fF" else 1e-12)
        else:
            np.testing.assert_array_equal(ours, numpys)
    assert sorted(set(said)) == sorted(set(told))


def matrices(dtype: str, shape: tuple[int, ...] = (70, 111), order: Any = "C") -> list[np.ndarray]:
    rng = np.random.default_rng(4)
    made = []
    for _ in range(2):
        a = rng.normal(0, 20, shape) + (1j * rng.normal(size=shape) if dtype in "FD" else 0)
        a = np.abs(a) if dtype in "BHIL" else a
        made.append(np.asarray(a > 3 if dtype == "?" else a.astype(dtype), order=order))
    return made


PROGRAMS: dict[str, Callable[..., Any]] = {
    "chain": lambda x, y: ((x * 2 + y) * (x - y),),
    "two results": lambda x, y: ((a := x * y + 3), a - x),
    "windows": lambda x, y: (x[1:, 1:] + y[:-1, :-1] * x[:-1, 1:], x[::2, ::-1] - y[::2]),
    "rows and columns": lambda x, y: (x * y[0] + y[:, :1], x[:, 0][:, None] * y[2]),
    "transposed": lambda x, y: (x.T + y.T * 2, (x.T * 3 + 1)[::-1]),
    "choice": lambda x, y: (np.where(x > y, x - y, y), np.where(x > 1, x, 0), np.where(y < 2, 1, y * y)),
    "converted": lambda x, y: (
        (x * 2).astype(np.float32) + y,
        (x > y).astype(np.int8),
        (x + y).astype(np.int64),
    ),
    "sums": lambda x, y: ((x * y).sum(), np.abs(x - y).max(), (x[1:] + y[1:]).min(), np.mean(x * x)),
    "truths": lambda x, y: ((x > 2) & (y < 3) | ~(x == y), np.count_nonzero((x > y) ^ (y > 0))),
}


@pytest.mark.parametrize("dtype", ["d", "f", "l", "i", "B", "h"])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_programs(name: str, dtype: str, order: str, ran: list[int]) -> None:
    agree(PROGRAMS[name], *matrices(dtype, order=order), close=True)
    assert sum(ran) > 1


@pytest.mark.parametrize("name", ["chain", "windows", "rows and columns", "transposed", "sums"])
def test_complex_numbers(name: str, ran: list[int]) -> None:
    program = PROGRAMS[name] if name != "sums" else lambda x, y: ((x * y).sum(), (x + y - 1j).prod())
    small = 0.01 if name == "sums" else 1
    agree(program, *[a * small for a in matrices("D")], close=True)
    assert ran


def test_in_place_and_overlapping(ran: list[int]) -> None:
    """Statements that read elsewhere what another one of them writes are no group."""

    def program(x: Any, y: Any) -> Any:
        x += y
        x *= 2
        x[1:] = x[:-1] * 0.5 + 1
        x[:, 1:-1] += 0.1 * (x[:, 2:] + x[:, :-2] - 2 * x[:, 1:-1])
        z = x * y
        z[2:5] = y[2:5] - 1
        z[:2] += z[5:7] + z[2:4]
        y[::2] -= y[1::2]
        w = z + y
        z += w
        return z, w, w - x

    agree(program, *matrices("d"))
    assert max(ran) > 2


def test_exceptions_belong_to_their_statements(ran: list[int]) -> None:
    def program(x: Any, y: Any) -> Any:
        a = np.sqrt(x) + y / 0.0
        with np.errstate(invalid="ignore"):
            b = np.log(x) * 2
        c = np.exp(np.abs(y) * 100) - 1
        return a, b, c, c.astype(np.int32)

    agree(program, *matrices("d"))
    with (
        pytest.raises(FloatingPointError, match="divide by zero encountered in divide"),
        np.errstate(divide="raise"),
    ):
        x, y = map(dc.asarray, matrices("d"))
        dc.evaluate((x + 1) / (y * 0))
    assert ran


@pytest.mark.parametrize(
    "shape", [(1,), (5000,), (9001, 3), (3, 9001), (2, 3, 4, 5), (64, 2, 300), (1, 7, 1), (1, 50000)]
)
def test_shapes(shape: tuple[int, ...], ran: list[int]) -> None:
    """Blocks of many rows, of parts of a row, and strips across short rows."""

    def program(x: Any, y: Any) -> Any:
        a = x * y[..., :1] + 1
        return a, a[..., ::-1] - y, np.where(a > 0, a, y), (a - y).sum()

    agree(program, *matrices("d", shape), close=True)
    agree(program, *matrices("f", shape, "F"), close=True)
    assert ran


def test_short_rows_that_are_broadcast(ran: list[int]) -> None:
    agree(lambda x, y: ((x[:, None] - y[:6]) ** 2 + 1,), *matrices("d", (900, 3)))
    assert ran == [3]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_sums_do_not_depend_on_the_number_of_threads(threads: int, ran: list[int]) -> None:
    x, y = matrices("f", (300, 211))
    found = set()
    with dc.options(threads=threads):
        for _ in range(5):
            found.add(float((dc.asarray(x) * y - 0.1).sum()))
    with dc.options(threads=1):
        found.add(float((dc.asarray(x) * y - 0.1).sum()))
    assert len(found) == 1 and ran


def test_sums_of_negative_zeros() -> None:
    agree(lambda x: ((x * 1).sum(), (-x).sum()), np.full(9000, -0.0))


def test_conversions(ran: list[int]) -> None:
    """Between all dtypes, numbers that do not fit among them; those to unsigned ones are the processor's."""
    special = [
        0, 1, -1, 2.5, -2.5, 127, 128, 255, 256, 65535.9, 2**31 - 1, 2**31, -(2**31), 2**53, 1e30,
        np.nan, np.inf,
    ]  # fmt: skip
    for source in "?bBhHiIlLfdD":
        with np.errstate(all="ignore"):
            a = np.resize(np.array(special).astype(source), 5000)
        for target in "?bBhHiIlLfdFD":
            agree(
                lambda x, target=target: (
                    (x + x.dtype.type(1)).astype(target) if x.dtype != bool else x.astype(target),
                ),
                a,
            )
    assert ran


WHAT = ["add", "subtract", "multiply", "maximum", "less", "where", "cast", "update", "window"]


def _random_program(rng: np.random.Generator) -> Callable[..., Any]:
    """A program of some statements on arrays and on windows of them, some of them in place."""
    lines: list[tuple[Any, ...]] = []
    for _ in range(rng.integers(3, 14)):
        lines.append((str(rng.choice(WHAT)), *rng.integers(0, 1 << 30, 3), float(rng.normal())))

    def program(*given: Any) -> Any:
        known = list(given)
        for what, i, j, k, number in lines:
            a, b = known[i % len(known)], known[j % len(known)]
            if what == "where":
                known.append(np.where(a > number, a, b))
            elif what == "cast":
                known.append((a * 2).astype([np.float32, np.float64, np.int16, np.int64][k % 4]))
            elif what == "less":
                known.append((a < b) + number)
            elif what == "update" and a.dtype.kind == "f":
                if k % 3 == 0:
                    a += b * number
                elif k % 3 == 1:
                    a[1:] -= a[:-1] * b[1:]
                else:
                    a[:, k % 5 :: 2] *= b[:, k % 5 :: 2]
            elif what == "window":
                known.append(np.concatenate([a[k % 7 :], b[: k % 7]]) * number)
            elif what in ("add", "subtract", "multiply", "maximum"):
                known.append(getattr(np, what)(a, b if k % 3 else number))
        return known

    return program


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed: int, ran: list[int]) -> None:
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(20, 90)), int(rng.integers(9, 300)))
    arrays = [rng.normal(size=shape), rng.normal(size=shape).astype("f"), rng.integers(-9, 9, shape)]
    if seed % 3 == 0:
        arrays = [np.asfortranarray(a) for a in arrays]
    agree(_random_program(rng), *arrays)
    assert ran
