"""NumPy's functions of sequences, ranges, scans, places and borders in traced code."""

from typing import Any

import numpy as np
import pytest
from loop_requests import check, request

from dcarray.core.errors import Untraceable
from dcarray.jit.loops.tracing.trace import trace

A = np.arange(12.0).reshape(3, 4) ** 1.3
Y = np.array([3.0, 1.0, 9.0, 2.0, 9.0])
NAMES: dict[str, Any] = dict(
    A=A,
    M=A.astype("f4"),
    x=np.array([3.0, -1.0, np.nan, 2.0, -0.0]),
    y=Y,
    s=np.float64(2.5),
    f=1.25,
    z=Y + 1j * Y[::-1],
    n=3,
    i=np.arange(5) * 7 % 5,
    np=np,
)

EXACT = """
np.array([s, f, 1])
np.array([[f, s], [1.0, -2]])
np.array([y, y * 2, y[::-1]])
np.array((A[0], A[1]), dtype=np.float32)
np.array([1, 2, n])
np.array([True, n > 2])
np.array(A)
np.array(A, dtype=int)
np.asarray([f, 2])
np.argmin(y)
np.argmax(x)
np.argmax(A, axis=0)
A.argmin(axis=1)
np.argmin((f, s, 1.0))
np.argmax(A)
np.argmax(y > 2)
np.cumsum(y)
np.cumsum(A, axis=0)
np.cumsum(M, 1)
np.cumprod(y)
np.cumsum(i)
np.cumsum(y > 2)
np.add.accumulate(y)
np.maximum.accumulate(A)
np.diff(y)
np.diff(A, axis=0)
np.cross(y[:3], A[0, :3])
np.round(A, 2)
np.round(y)
np.round(s)
M.round(1)
np.real(z * 2) + np.imag(z)
z.real * 2
np.angle(z)
A.flatten()
A.flatten()[1:] * 2
y.ravel() * 2
s.item() + 1
np.linspace(0, 1, 11)
np.linspace(0.1, 7, 50, endpoint=False)
np.linspace(3, -2.5, 7)
np.arange(0, 1, 0.1)
np.arange(0.3, 9.7, 0.7)
np.arange(5, 1, -1)
np.pad(A, 1)
np.pad(A, ((1, 2), (0, 1)), mode="edge")
np.pad(A, 2, mode="wrap")
np.pad(y, 2, mode="reflect")
np.pad(y, (1, 3), "symmetric")
np.pad(A, 1, "reflect")
np.pad(A, 1, constant_values=2.5)
np.max((f, s))
np.sum(-0.0 * s)
np.sum(f)
np.max(s)
y[np.array([i, i[::-1]])]
y[np.stack([i, i])] * 2
A[i[:3] % 3] * 2
np.clip(y, 1, 3)
np.clip(y, f, s)
np.clip(i, 1, 3)
np.clip(x, None, 2)
np.clip(A, 1, None)
np.roll(y, i[1])
np.roll(A, -i[1], axis=1)
np.bincount(i, minlength=5)
np.bincount(i, weights=y, minlength=7)
sum([s, y[0], y[1]])
max(n - i[1].item(), 2)
""".strip().splitlines()


@pytest.mark.parametrize("text", EXACT)
def test_elements_are_numpys(text: str) -> None:
    check(f"r = {text}", NAMES)


@pytest.mark.parametrize("text", [
    "np.linalg.norm(y)",
    "np.linalg.norm(A, axis=1)",
    "np.linalg.norm(A)",
    "np.linalg.norm(A, axis=1, keepdims=True)",
    "np.average(y, weights=y * y)",
    "np.trapezoid(y, y)" if hasattr(np, "trapezoid") else "y",
    "np.trapezoid(y, dx=0.1)" if hasattr(np, "trapezoid") else "y",
    "np.sum([f, s, 2.0])",
    "np.mean([f, 2.0, s])",
    "np.array([f, s]) @ np.array([[1.0, 2.0], [3.0, 4.0]])",
])  # fmt: skip
def test_sums_are_as_accurate(text: str) -> None:
    check(f"r = {text}", NAMES, rtol=1e-14)


@pytest.mark.parametrize("indexing", ["xy", "ij"])
def test_grids(indexing: str) -> None:
    check(f"p, q = np.meshgrid(y, x[:3], indexing='{indexing}')", NAMES)


@pytest.mark.parametrize("statement", [
    "A[i[:3] % 3] = y[:4]", "A[1, i % 4] = 3", "A[i[:2] % 3, i[2:4] % 3] += y[:2]",
    "A[:, i[:3] % 4] = A[:, 1:]", "A[i[1] % 3, i[:3] % 3] *= 2", "np.add.at(y, i % 2, y)",
    "np.subtract.at(A, i % 3, y[:4])", "np.maximum.at(y, (i % 3,), 2.5)",
])  # fmt: skip
def test_writes_at_places(statement: str) -> None:
    check(f"i = i * 1\n{statement}", NAMES)


@pytest.mark.parametrize(
    "text",
    ["np.array([y, A])", "np.array([])", "np.arange(0, f, 0.1)", "np.bincount(i)", "np.linalg.norm(A, 2)"],
)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(Untraceable):
        trace(request(f"r = {text}", NAMES))


def test_elements_at_places_in_another_order() -> None:
    names = {**NAMES, "j": np.asfortranarray(np.arange(6).reshape(2, 3) % 5)}
    with pytest.raises(Untraceable, match="order"):
        trace(request("r = y[j]", names))
    check("r = y[j] + 0", names, live=())


def test_a_value_of_a_loop_that_has_ended_is_forgotten() -> None:
    source = """
for k in range(4):
    for j in range(1, 5):
        m = y[j] - x[j - 1]
        y[j] = m / 2
    x[:4] = y[1:]
    y[i % 3] = x
"""
    check(source.replace("= x\n", "= 2 * x\n"), NAMES)


def test_statements_after_a_condition_that_decides_a_type() -> None:
    source = """
for k in range(1, 4):
    q = 2
    if y[k] > 2:
        q = y[k + 1]
    elif x[k] > 0:
        q = f
    A[0, k] = y[k] >= q
    A[1, k] = q
"""
    check(source, NAMES, live=())
