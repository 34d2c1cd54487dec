"""Threads of the user's: operands that they share, and what one has made in the hands of another."""

import contextlib
import gc
import itertools
import queue
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any
from weakref import ref

import numpy as np
import pytest
from callers import together

import dcarray as dc
from dcarray.core.store import Registry, store_of

pytestmark = pytest.mark.one_process("ranks compare which of their threads has its turn")

OPERATIONS: list[Callable[[Any, Any], Any]] = [
    lambda p, q: p + q, lambda p, q: p - q * 2, lambda p, q: -p * q, lambda p, q: (p - q) ** 2,
    lambda p, q: np.sqrt(np.abs(p)) + q, lambda p, q: np.where(p > q, p, -q), lambda p, q: p[::-1] * q,
    lambda p, q: np.sum(p * q) / p.size + q, lambda p, q: np.maximum(p, q).mean() + p, lambda p, q: p.copy(),
    lambda p, q: np.concatenate([p[1:], q[:1]]), lambda p, q: np.sort(p), lambda p, q: p * (q > 0),
    lambda p, q: p.reshape(1, -1)[0] + q, lambda p, q: np.roll(p, 1) + q, lambda p, q: np.exp(-p * p),
    lambda p, q: p - p.mean(), lambda p, q: np.clip(p, -1, 1), lambda p, q: p + p[p > 1].sum() / p.size,
    lambda p, q: np.cumsum(p) / p.size - q,
]  # fmt: skip


def add(p: Any, q: Any) -> None:
    p += q


def halve(p: Any, q: Any) -> None:
    p *= 0.5


def shift(p: Any, q: Any) -> None:
    p[1:] = q[:-1]


def cut(p: Any, q: Any) -> None:
    p[p > 2] = 0


def choose(p: Any, q: Any) -> None:
    p[q > 1] = q[q > 1]


WRITES = [add, halve, shift, cut, choose]


@pytest.fixture(autouse=True)
def _many_turns() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("n", [500, 5_000, 40_000])
def test_each_call_is_its_own(n: int) -> None:
    calls: list[Callable[[Any], Any]] = [
        lambda x: -x, lambda x: abs(x), lambda x: x * x, lambda x: x + 2, lambda x: 2 - x, lambda x: x > 1,
        np.negative, np.sqrt, np.square, np.floor, lambda x: x - x, lambda x: np.minimum(x, 1),
    ]  # fmt: skip
    numbers = np.random.default_rng(1).random(n) * 9
    plain = [numbers.astype(dtype) for dtype in ("f8", "f4", "i8", "i4", "i2", "u4")]
    cases = [(dc.asarray(a), call, call(a)) for a in plain for call in calls]

    def work(k: int) -> None:
        draw = random.Random(k)
        for turn in range(2_000):
            x, call, expected = draw.choice(cases)
            np.testing.assert_array_equal(np.asarray(call(x)), expected, f"{turn}")

    together(4, work)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("text", ["(x - y) ** 2", "np.sqrt(abs(x)) * y - 1", "(x + y)[1:] * 2"])
def test_operands_may_be_shared(text: str, known: bool) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.random(40_001) * 9 - 3, rng.random(40_001) * 9 - 3
    sys.setswitchinterval(0.005)
    for _ in range(15):
        scope: dict[str, Any] = {"np": np}
        exec(compile(f"def f(x, y):\n    r = {text}\n    return r", __file__, "exec"), scope)
        f, x, y = scope["f"], dc.asarray(a), dc.asarray(b)
        want = f(a, b).sum()
        for _ in range(5 * known):  # there may be a plan, or NumPy works at once from then on
            f(x, y).sum()
        together(3, lambda _, f=f, x=x, y=y, want=want: [  # type: ignore[misc]
            np.testing.assert_allclose(np.sum(f(x, y)), want, rtol=1e-11) for _ in range(50)
        ])  # fmt: skip


def test_families_are_dropped_while_another_thread_adds_one() -> None:
    """Callbacks of the garbage collector are where threads take turns."""
    registry, store, added = Registry(), store_of(np.ones(3)), itertools.count(1000)
    registry.families.update({k: ref(store) for k in range(600)})
    callback = lambda *_: registry.families.update({next(added): ref(store)})  # noqa: E731
    gc.callbacks.append(callback)
    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        registry.forget()
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(callback)
    assert len(registry.families) >= 600


@pytest.mark.parametrize("jit", ["background", "eager", "off"])
@pytest.mark.parametrize("below", [0, 16384])
@pytest.mark.parametrize("seed", range(3))
def test_random_programs(seed: int, below: int, jit: str) -> None:
    """Each thread has arrays of its own, reads two that all have, and hands some on, which may be pending."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([50, 5_000, 20_001, 40_001]))
    a, b = rng.random(n) * 9 - 3, rng.random(n) * 9 - 3
    handed: queue.Queue[Any] = queue.Queue(maxsize=6)

    def same(got: Any, want: Any) -> None:
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6, atol=1e-6)

    def work(thread: int) -> None:
        draw = random.Random(10 * seed + thread)
        pairs = [(x + thread, a + thread), (y * 1.0, b * 1.0)]
        for turn in range(80):
            # what has grown large would not be compared to the point
            pairs = [p if np.abs(p[1]).max() < 1e4 else (x + turn, a + turn) for p in pairs]
            p, q = draw.choice([*pairs, (x, a)]), draw.choice([*pairs, (y, b)])
            kind = draw.random()
            if kind < 0.55:
                operation = draw.choice(OPERATIONS)
                pairs = [*pairs, (operation(p[0], q[0]), operation(p[1], q[1]))][-5:]
            elif kind < 0.75:
                write, own = draw.choice(WRITES), draw.choice(pairs)
                for k in range(2):
                    write(own[k], q[k])
            elif kind < 0.85:
                with contextlib.suppress(queue.Full):
                    handed.put_nowait((p[0] + 0.5, p[1] + 0.5))
            else:
                with contextlib.suppress(queue.Empty):
                    same(*handed.get_nowait())
        for pair in pairs:
            same(*pair)

    with dc.options(eager_below=below, jit=jit):
        x, y = dc.asarray(a.copy()), dc.asarray(b.copy())

    def under(thread: int) -> None:
        with dc.options(eager_below=below, jit=jit):
            work(thread)

    together(3, under)
    np.testing.assert_array_equal(np.asarray(x), a)
    np.testing.assert_array_equal(np.asarray(y), b)
