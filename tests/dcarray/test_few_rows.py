"""Sums of few rows that all take from one operand, which is read once for all of them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dcarray as dc


def numbers(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    r = np.random.default_rng(seed)
    return (
        r.integers(-50, 50, shape).astype(dtype) if dtype in "ilq" else r.uniform(-1, 1, shape).astype(dtype)
    )


@given(
    st.integers(1, 17), st.sampled_from([1, 3, 8, 127, 128, 129, 300]),
    st.sampled_from([1, 7, 1023, 1025, 2100]), st.sampled_from("fdq"),
    st.sampled_from(["product", "shifted", "largest", "own", "turned"]), st.integers(0, 9),
)  # fmt: skip
@settings(max_examples=16, deadline=None)
@example(100, 3, 2100, "d", "product", 0)
@example(100, 3, 4100, "f", "turned", 0)
@example(17, 300, 1025, "d", "largest", 0)
def test_few_rows(m: int, k: int, n: int, dtype: str, kind: str, seed: int) -> None:
    a, b, own = (
        numbers((m, k), dtype, seed),
        numbers((k, n), dtype, seed + 1),
        numbers((m, k, n), dtype, seed + 2),
    )

    def compute(a: Any, b: Any, own: Any) -> Any:
        if kind == "largest":
            return np.maximum.reduce(a[:, :, None] - b[None], axis=1)
        if kind == "own":  # each row of the result has rows of its own
            return (own * a[:, :, None]).sum(axis=1)
        if kind == "turned":
            return (a[:, :, None] * b[None]).sum(axis=1).T
        if kind == "shifted":
            return 3 + (a[:, :, None] * (b[None] + 1) + 2).sum(axis=1)
        return (a[:, :, None] * b[None]).sum(axis=1)

    want = compute(*(x.astype("f8") if dtype in "fd" else x for x in (a, b, own)))
    with dc.options(jit="eager", eager_below=0):
        got = np.asarray(compute(*map(dc.asarray, (a, b, own))))
    assert got.shape == want.shape and got.dtype == compute(a, b, own).dtype
    if dtype == "q" or kind == "largest":
        np.testing.assert_array_equal(got, compute(a, b, own))
    else:
        np.testing.assert_allclose(
            got, want, rtol=1e-3 if dtype == "f" else 1e-10, atol=1e-3 if dtype == "f" else 1e-10
        )


@pytest.mark.parametrize("sizes", [((2, 7), (2, 1025), (3, 2100)), ((2, 1025), (2, 7), (90, 1030), (90, 5))])
def test_plans_of_other_sizes(sizes: tuple[tuple[int, int], ...]) -> None:
    """What was chosen for one size is right for all that the plan serves."""
    with dc.options(jit="eager", eager_below=0, cache_dir=None):
        for m, n in sizes * 2:
            a, b = numbers((m, 3), "d", 0), numbers((3, n), "d", 1)
            x, y = dc.asarray(a), dc.asarray(b)
            np.testing.assert_allclose((x[:, :, None] * y[None]).sum(axis=1), a @ b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_result_does_not_depend_on_threads(threads: int) -> None:
    a, b = numbers((5, 700), "f", 1), numbers((700, 5000), "f", 2)
    with dc.options(jit="eager", eager_below=0, threads=threads):
        got = np.asarray((dc.asarray(a)[:, :, None] * dc.asarray(b)[None]).sum(axis=1))
    np.testing.assert_allclose(got, a.astype("f8") @ b.astype("f8"), rtol=1e-3, atol=1e-4)
    with dc.options(jit="eager", eager_below=0, threads=2):
        again = np.asarray((dc.asarray(a)[:, :, None] * dc.asarray(b)[None]).sum(axis=1))
    np.testing.assert_array_equal(got, again)
