"""Copies and fills of which parts are overwritten later, in programs."""

import random

import numpy as np
import pytest

import dcarray as dc
from dcarray.execution import executor
from dcarray.ir.passes.portable import partial_dead_stores
from dcarray.recording import session


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(partial_dead_stores, "MIN_POINTS", 4)
    monkeypatch.setattr(partial_dead_stores, "PART", 1)
    dc.evaluate()
    monkeypatch.setattr(session, "EXECUTOR", executor.Executor())
    with dc.options(eager_below=0, jit="eager", debug=True):
        yield


def smooth(z):
    out = z.copy()
    out[1:-1, 1:-1] = 0.25 * (z[1:-1, :-2] + z[1:-1, 2:] + z[2:, 1:-1] + z[:-2, 1:-1])
    out[0] = out[1]
    return out


def fill(z):
    out = np.zeros_like(z)
    out[1:-1, 1:-1] = z[1:-1, 1:-1] ** 2
    out[:, -1] = 7
    return out


def product(z):
    out = np.ones_like(z)
    out[:, 2:] = z @ z.T[:, 2:]
    return out


@pytest.mark.parametrize("f", [smooth, fill, product])
def test_usual_programs(f):
    for shape in ((5, 5), (9, 9), (9, 9), (6, 6)):
        a = np.arange(float(shape[0] * shape[1])).reshape(shape)
        np.testing.assert_array_equal(np.asarray(f(dc.asarray(a))), f(a))
    text = str(dc.explain(lambda: f(dc.asarray(a))))
    assert "only the border is written" in text


def part(rng, n):
    kind = rng.random()
    if kind < 0.2:
        return rng.choice((0, -1, 1, n // 2))
    low = rng.randrange(0, 3)
    high = rng.choice((n, n, n - 1, n - 2, n - low))
    return slice(low, high, 2 if kind > 0.9 else 1)


def step(rng, n):
    """A line on arrays ``x``, ``y`` and ``z``."""
    a, b = rng.sample("xyz", 2)
    keys = [part(rng, n), part(rng, n)]
    text = ", ".join(f"{k.start}:{k.stop}:{k.step}" if isinstance(k, slice) else str(k) for k in keys)
    return rng.choice(
        (
            f"{a} = {b}.copy()", f"{a} = {b}.copy()", f"{a} = np.full_like({b}, {rng.randrange(9)})",
            f"{a}[...] = {b}", f"{a}[{text}] = {b}[{text}] + 1", f"{a}[{text}] = {b}[{text}]",
            f"{a}[{text}] = {rng.randrange(9)}", f"{a}[{text}] += {a}[0, 0]",
            f"{a}[1:, :] = {a}[:-1, :] * 2", f"{a} = {a}.T",
        )
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(120))
def test_random_programs(seed):
    rng = random.Random(seed)
    n = rng.choice((4, 5, 7))
    lines = [step(rng, n) for _ in range(12)]
    plain = {name: np.arange(float(n * n)).reshape(n, n) * k for k, name in enumerate("xyz", 1)}
    ours = {name: dc.asarray(a.copy()) for name, a in plain.items()}
    for line in lines:
        for names in (plain, ours):
            exec(line, {"np": np}, names)
    for name in "xyz":
        np.testing.assert_array_equal(np.asarray(ours[name]), plain[name], err_msg="\n".join(lines))
