"""Reductions, searches and scans of the op-by-op interpreter in parts: NumPy's, to the bit."""

from __future__ import annotations

import itertools
import os
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from callers import call_beside_each_other

import dcarray as dc
from dcarray.core import parts
from dcarray.core.native import BUILT
from dcarray.execution import axis_parts

pytestmark = pytest.mark.one_process("several ranks share the processors")

RNG = np.random.default_rng(17)
FOLDS = {
    "d": ("add", "multiply", "maximum", "minimum", "fmax", "hypot"), "f": ("add", "multiply", "maximum"),
    "e": ("add", "minimum"), "D": ("add", "multiply", "maximum"), "l": ("add", "bitwise_xor", "minimum"),
    "i": ("multiply", "maximum"), "B": ("add", "bitwise_or"), "?": ("logical_and", "logical_or", "add"),
}  # fmt: skip
SHAPES = [
    (2, 5), (4, 9000), (9000, 4), (300, 70), (70, 300), (5, 6, 7), (40, 3, 200), (3, 40, 50), (4, 9, 3, 11),
    (17, 1, 90), (1, 500, 3), (2000, 7), (90, 70, 2), (3, 2, 1100), (600, 31),
]  # fmt: skip


@pytest.fixture(autouse=True)
def three(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """However little there is to do, three threads do it, whatever help has cost earlier tests."""
    monkeypatch.setattr(parts, "_ACCOUNT", parts._Account())
    monkeypatch.setattr(parts, "LEAST", 1e-12)
    monkeypatch.setattr(axis_parts, "_RUN", 1)
    monkeypatch.setattr(axis_parts, "_SCANNED", 1)
    monkeypatch.setattr(axis_parts, "_SHORT_RUN", 1)
    with dc.options(threads=3, eager_below=0, jit="off"):
        yield


def made(shape: tuple[int, ...], char: str) -> np.ndarray:
    a = RNG.normal(size=shape) * 10.0 ** RNG.integers(-3, 3, shape)
    if char == "D":
        return a + 1j * RNG.normal(size=shape)
    if char in "dfe":
        a[RNG.random(shape) < 0.01] = -0.0
        a[RNG.random(shape) < 0.002] = np.nan
        return a.astype(char)
    return (a > 0) if char == "?" else RNG.integers(0, 99, shape).astype(char)


def laid_out(shape: tuple[int, ...], char: str) -> Iterator[np.ndarray]:
    """Arrays of a shape in many kinds of memory."""
    n = len(shape)
    yield made(shape, char)
    for order in list(itertools.permutations(range(n)))[1:4]:
        back = [order.index(k) for k in range(n)]
        yield made(tuple(shape[k] for k in order), char).transpose(back)
    yield made(shape, char)[::-1, ..., ::-1]
    yield made((*shape[:-1], 2 * shape[-1]), char)[..., ::2]
    yield made((2 * shape[0], *shape[1:]), char)[1::2]
    yield np.broadcast_to(made((1, *shape[1:]), char), shape)
    raw = np.empty(made(shape, char).nbytes + 1, np.uint8)
    odd = raw[1:].view(char).reshape(shape)  # not aligned
    odd[...] = made(shape, char)
    yield odd


@pytest.mark.parametrize("char", list(FOLDS))
def test_reductions(char: str, numbers: list[int]) -> None:
    for shape in SHAPES:
        for a in laid_out(shape, char):
            for name in FOLDS[char]:
                ufunc: Any = getattr(np, name)
                many = (1,) if name == "hypot" else range(1, a.ndim + 1)
                for axes in itertools.chain(*[itertools.combinations(range(a.ndim), k) for k in many]):
                    for keepdims in (False, True):
                        with np.errstate(all="ignore"):
                            want = np.asarray(ufunc.reduce(a, axes, None, None, keepdims)).copy("C")
                            ufunc.reduce(a, axes, None, want, keepdims)  # its order may be that of the result
                            got = np.empty_like(want)
                            axis_parts.reduce(ufunc, a, axes, want.dtype, got, keepdims)
                        assert got.tobytes() == want.tobytes(), (shape, a.strides, name, axes)
    assert numbers and max(numbers) > 1


@pytest.mark.skipif(not BUILT, reason="scans in parts are in the C module")
@pytest.mark.parametrize("char", ["d", "f", "l", "B", "?", "D"])
def test_searches_and_scans(char: str, numbers: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[bool] = []
    lines = axis_parts.accumulate_lines
    monkeypatch.setattr(axis_parts, "accumulate_lines", lambda *a: served.append(lines(*a)) or served[-1])
    for shape in SHAPES:
        for a in laid_out(shape, char):
            for axis in range(a.ndim):
                for name in ("argmax", "argmin"):
                    find: Any = getattr(np, name)
                    for keepdims in (False, True):
                        want = find(a, axis, keepdims=keepdims)
                        got = np.empty_like(want, order="C")
                        axis_parts.search(find, a, axis, got, keepdims)
                        assert got.tobytes() == want.tobytes(), (shape, a.strides, name, axis)
                for ufunc in (np.add, np.multiply, np.maximum):
                    with np.errstate(all="ignore"):
                        want = ufunc.accumulate(a, axis)
                        got = np.empty(want.shape, want.dtype)
                        axis_parts.accumulate(ufunc, a, axis, want.dtype, got)
                    assert got.tobytes() == want.tobytes(), (shape, a.strides, ufunc, axis)
    assert numbers and min(numbers) > 1
    assert not BUILT or sum(served) > len(served) // 3


@pytest.mark.parametrize("char", ["d", "l", "B", "D"])
def test_sorts(char: str, numbers: list[int]) -> None:
    for shape in SHAPES:
        for a in laid_out(shape, char):
            for axis in range(-1, a.ndim):
                for kind in (None, "stable"):
                    x = dc.asarray(a.copy("K"))
                    whole = np.asarray(x)
                    want = np.sort(a, axis, kind)
                    assert x.sort(axis, kind) is None
                    assert np.asarray(x).tobytes() == want.tobytes(), (shape, a.strides, axis)
                    assert np.shares_memory(np.asarray(x), whole)
    assert numbers and min(numbers) > 1


def test_sorts_that_are_numpys(numbers: list[int]) -> None:
    a = made((40, 30), "d")
    x = dc.asarray(a.copy())
    for wrong in ({"axis": 2}, {"kind": "bubble"}, {"kind": "stable", "stable": True}, {"order": "x"}):
        told = []
        for b in (a.copy(), x):
            with pytest.raises((ValueError, TypeError)) as caught:
                b.sort(**wrong)
            told.append((caught.type, str(caught.value)))
        assert told[0] == told[1]
        np.testing.assert_array_equal(np.asarray(x), a)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        x.sort()
    del numbers[:]
    y = dc.asarray(a.copy())[::2, ::3]
    y.sort(0)
    np.testing.assert_array_equal(np.asarray(y), np.sort(a[::2, ::3], 0))
    z = dc.asarray(a.copy()) + 1
    z.sort(0)
    np.testing.assert_array_equal(np.asarray(z), np.sort(a + 1, 0))
    assert len(numbers) == 1


def test_programs(numbers: list[int]) -> None:
    a = made((60, 50), "d")
    a[:] = np.nan_to_num(a)
    programs = {
        "sum": lambda x: (x * 2).sum(axis=1), "mean": lambda x: (x + 1).mean(axis=0, keepdims=True),
        "max": lambda x: (x - 1).max(axis=0), "any": lambda x: (x > 0).all(axis=1),
        "count": lambda x: (x > 0).sum(axis=0), "argmax": lambda x: (x * 3).argmax(axis=0),
        "argmin": lambda x: np.argmin(x + 0.5, axis=1, keepdims=True), "scan": lambda x: np.cumsum(x * 2, 1),
        "products": lambda x: np.cumprod((x * 1.5).T, 1), "var": lambda x: (x * 2).var(axis=0),
    }  # fmt: skip
    for name, program in programs.items():
        del numbers[:]
        want, got = program(a.copy()), np.asarray(program(dc.asarray(a.copy())))
        assert got.dtype == want.dtype and got.tobytes() == want.tobytes(), name
        assert numbers or name in ("scan", "products"), name


@pytest.mark.parametrize("mode", ["warn", "raise", "ignore", "call"])
def test_floating_point_exceptions_are_told_once(mode: Any) -> None:
    a = RNG.normal(size=(40, 30))
    a[7] = 1e308
    a[30, 4:6] = np.inf, -np.inf

    def told(x: Any, threads: int = 3) -> Any:
        heard: list[tuple[str, int]] = []
        with (
            warnings.catch_warnings(record=True) as caught,
            np.errstate(all=mode, under="ignore"),
            dc.options(threads=threads),
        ):
            warnings.simplefilter("always")
            np.seterrcall(lambda *what: heard.append(what))
            try:
                found = np.asarray((x * 1).sum(axis=1)).tolist(), np.asarray(np.cumsum(x * 1, 0)).tolist()
            except FloatingPointError as error:
                found = str(error)
        return str(found), heard, [str(w.message) for w in caught], [(w.filename, w.lineno) for w in caught]

    assert told(dc.asarray(a))[:3] == told(a)[:3]
    assert told(dc.asarray(a)) == told(dc.asarray(a), 1)


def test_nothing_is_cut_for_one_thread_or_little_work(
    numbers: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = dc.asarray(made((60, 50), "l"))
    with dc.options(threads=1):
        np.asarray((x * 2).sum(axis=1))
    np.asarray((x * 2).sum())
    np.asarray(np.cumsum(x[0] * 2))
    with monkeypatch.context() as patch:
        patch.setattr(parts, "LEAST", 1.0)
        np.asarray(np.cumsum(x * 2, 0))
    assert not numbers


def test_a_result_over_its_operand_is_not_cut(numbers: list[int]) -> None:
    a = made((40, 30), "l")
    want = np.add.accumulate(a, 0)
    axis_parts.accumulate(np.add, a, 0, a.dtype, a)
    assert not numbers
    np.testing.assert_array_equal(a, want)


# ---- the threads -------------------------------------------------------------------------------------
def test_all_jobs_run_once_in_the_context_of_the_caller() -> None:
    seen: list[tuple[int, Any, int]] = []
    barrier = threading.Barrier(3)  # three threads have a job at the same time

    def job(k: int) -> None:
        if k < 3:
            barrier.wait(60)
        seen.append((k, np.geterr()["over"], dc.core.config.current().eager_below))

    with np.errstate(over="ignore"), dc.options(eager_below=123):
        assert parts.run([lambda k=k: job(k) for k in range(12)])  # type: ignore[misc]
    assert sorted(seen) == [(k, "ignore", 123) for k in range(12)]


def test_errors_end_a_call() -> None:
    def fails() -> None:
        raise KeyError

    ran: list[int] = []
    assert not parts.run([fails, *[lambda k=k: ran.append(k) for k in range(100)]])  # type: ignore[misc]
    assert not parts.run([lambda: np.float64(1e308) * 10, lambda: None])
    assert parts.run([lambda: None] * 5)


def test_an_interrupt_waits_for_the_helpers() -> None:
    begun, ended = threading.Event(), threading.Event()

    def one() -> None:
        begun.wait(60)
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        ended.wait(0.2)
        ended.set()

    def other() -> None:
        begun.set()
        one()

    with pytest.raises(KeyboardInterrupt):
        parts.run([one, other])
    assert ended.is_set()
    assert parts.run([lambda: None] * 5)


def test_callers_share_the_helpers() -> None:
    a = made((64, 50), "l")
    wrong: list[Any] = []

    def call() -> None:
        with dc.options(threads=3):
            for _ in range(50):
                out = np.empty(64, a.dtype)
                axis_parts.reduce(np.add, a, (1,), a.dtype, out, False)
                if not np.array_equal(out, a.sum(1)):
                    wrong.append(out)

    call_beside_each_other(call)
    assert not wrong


def test_no_thread_is_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(parts, "start_new_thread", refuse)
    monkeypatch.setattr(parts, "_HELPERS", parts._Helpers())
    a = made((30, 40), "d")
    out = np.empty(30)
    axis_parts.reduce(np.maximum, a, (1,), a.dtype, out, False)
    np.testing.assert_array_equal(out, a.max(1))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_child_has_helpers_of_its_own() -> None:
    assert parts.run([lambda: None] * 4)
    child = os.fork()
    if not child:
        barrier = threading.Barrier(3)
        os._exit(0 if parts.run([lambda: barrier.wait(60)] * 3) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_helpers_keep_nothing() -> None:
    class Kept:
        pass

    import weakref

    kept = Kept()
    dead = weakref.ref(kept)
    assert parts.run([lambda kept=kept: None] * 6)  # type: ignore[misc]
    del kept
    for _ in range(3):  # a helper that wakes up late
        assert parts.run([lambda: None] * 6)
    assert dead() is None
