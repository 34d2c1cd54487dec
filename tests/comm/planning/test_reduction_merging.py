"""Sums over ranks that are only combined linearly: summed once, with the same values."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dcarray as dc
from dcarray import comm
from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Layout
from dcarray.comm.planning.planner import plan
from dcarray.comm.planning.rank_program.steps import Program, Reduce
from dcarray.ir.parse import parse

DECLARED = """region() {
  in A: f64[40, 40];  in B: f64[40, 40];  in x: f64[40];  in c: f64[];  in v: f64[40]
  temp s: f64[40];  temp t: f64[40];  out y: f64[40];  out z: f64[40]
  call blas.matmul(A, x) -> s
  call blas.matmul(B, x) -> t
"""


def planned(body: str, finite: tuple[str, ...] = ("c",), b: tuple[int, int] = (2, 2)) -> Program:
    """The program of rank 0 of four."""
    layouts = {
        "A": Layout.blocks((40, 40), ProcessGrid((2, 2))),
        "B": Layout.blocks((40, 40), ProcessGrid(b)),
    }
    return plan(parse(DECLARED + body + "\n}"), layouts, 4, 0, finite=finite)


def reductions(body: str, finite: tuple[str, ...] = ("c",)) -> int:
    """The number of reductions over ranks of rank 0."""
    return sum(isinstance(step, Reduce) for step in planned(body, finite).steps)


@pytest.mark.parametrize("body", [
    "y[i] = add(multiply(1.5, s[i]), multiply(0.5, t[i])) for i<40",
    "y[i] = subtract(multiply(c[], s[i]), negative(t[i])) for i<40",
    "y[i] = multiply(add(s[i], multiply(t[i], 2.0)), c[]) for i<40",
])  # fmt: skip
def test_sums_that_are_combined_are_added_up_once(body: str) -> None:
    assert reductions(body) == 1


@pytest.mark.parametrize("body", [
    "y[i] = multiply(s[i], t[i]) for i<40",
    "y[i] = add(add(s[i], t[i]), 1.0) for i<40",
    "y[i] = add(add(s[i], t[i]), v[i]) for i<40",
    "y[i] = add(s[i], multiply(v[i], t[i])) for i<40",
    "y[i] = add(s[i], t[39-i]) for i<40",
    "y[i] = add(s[i], t[i]) for i<40\n  z[i] = s[i] for i<40",
    "y[i] = maximum(s[i], t[i]) for i<40",
])  # fmt: skip
def test_other_sums_are_not(body: str) -> None:
    assert reductions(body) == 2


def test_factors_that_may_not_be_finite_are_left_alone() -> None:
    body = "y[i] = add(multiply(c[], s[i]), t[i]) for i<40"
    assert (reductions(body), reductions(body, finite=())) == (1, 2)


def test_sums_over_other_ranks_are_left_alone() -> None:
    made = planned("y[i] = add(s[i], t[i]) for i<40", b=(1, 4))
    assert not any("once they are combined" in note.text for note in made.notes)


GRIDS = {1: (1, 1), 2: (1, 2), 3: (3, 1), 4: (2, 2), 6: (2, 3)}


def on_ranks(ranks: int, program: Any, *wholes: Any) -> tuple[Any, str]:
    def live() -> tuple[Any, str]:
        with dc.options(distribute_above=0, jit="off"):
            grid = GRIDS[ranks]
            given = [dc.distribute(whole, grid if whole.ndim > 1 else None) for whole in wholes]
            dc.evaluate(*given)
            got = program(*given)
            text = str(dc.explain(got))
            return np.asarray(got), text

    return comm.run(ranks, live)[0]


@st.composite
def combinations(draw: Any) -> Any:
    """A linear combination of three products, as a function of them."""
    number = st.sampled_from([1.5, -2.0, 0.25, 3])

    def tree(names: list[int]) -> Any:
        if len(names) == 1:
            k = names[0]
            found = lambda products: products[k]  # noqa: E731
        else:
            cut = draw(st.integers(1, len(names) - 1))
            one, two = tree(names[:cut]), tree(names[cut:])
            if draw(st.booleans()):
                found = lambda products: one(products) + two(products)  # noqa: E731
            else:
                found = lambda products: one(products) - two(products)  # noqa: E731
        if draw(st.booleans()):
            factor = draw(number)
            plain = found
            found = lambda products: factor * plain(products)  # noqa: E731
        return found

    return tree(draw(st.permutations([0, 1, 2])))


@given(combinations(), st.sampled_from([1, 2, 3, 4, 6]), st.integers(0, 99))
@settings(max_examples=10, deadline=None, derandomize=True)
def test_combined_products_have_numpys_values(combine: Any, ranks: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrices, x = [rng.normal(size=(12, 16)) for _ in range(3)], rng.normal(size=16)

    def program(a: Any, b: Any, c: Any, x: Any) -> Any:
        return combine([a @ x, b @ x, c @ x])

    got, text = on_ranks(ranks, program, *matrices, x)
    np.testing.assert_allclose(got, program(*matrices, x), rtol=1e-12, atol=1e-12)
    assert ("once they are combined" in text) == (ranks in (4, 6))


def test_infinite_factors_make_no_nan() -> None:
    a, b, x = np.ones((6, 8)), np.ones((6, 8)), np.ones(8)
    a[:, 4:] = -0.5  # the second rank's part has the other sign

    def program(a: Any, b: Any, x: Any) -> Any:
        return np.inf * (a @ x) + 1.0 * (b @ x)

    got, text = on_ranks(4, program, a, b, x)
    assert "once they are combined" not in text
    np.testing.assert_array_equal(got, np.full(6, np.inf))
