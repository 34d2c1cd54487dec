"""Rows and columns that an update in place overwrites are read before it."""

from functools import reduce

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from dcarray.ir.passes import Log
from dcarray.ir.passes.portable import copy_in
from dcarray.ir.passes.portable.copy_in import COPY_IN
from dcarray.ir.text import parse
from dcarray.ir.verify import verify


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(copy_in, "MIN_POINTS", 8)
    monkeypatch.setattr(copy_in, "PART", 2)


def test_golden(golden):
    golden(COPY_IN)


def test_elimination_below_a_pivot(check):
    """The sizes may be unknown; a scalar of the array is copied too."""
    check(
        COPY_IN,
        """region(N: int>=3) {
          inout a: f64[N, N];  temp t: f64[N-1, N-1]
          t[i,j] = multiply(divide(a[i+1,0], a[0,0]), a[0,j+1]) for i<N-1, j<N-1
          a[i+1,j+1] = subtract(a[i+1,j+1], t[i,j]) for i<N-1, j<N-1
        }
        """,
        None,
    )
    check(
        COPY_IN,
        """region(N: int>=3) {
          inout a: f64[N, N];  temp t: f64[N, N]
          t[i,j] = multiply(divide(a[i,0], a[0,0]), a[0,j]) for i<N, j<N
          a[i,j] = subtract(a[i,j], t[i,j]) for i<N, j<N
        }
        """,
        """region(N: int>=3) {
          inout a: f64[N, N];  temp t: f64[N, N];  temp s0: f64[N];  temp s1: f64[];  temp s2: f64[N]
          s0[i] = a[i,0] for i<N
          s1[] = a[0,0]
          s2[i] = a[0,i] for i<N
          a[i,j] = subtract(a[i,j], multiply(divide(s0[i], s1[]), s2[j])) for i<N, j<N
        }
        """,
    )


@pytest.mark.parametrize("body", [
    # a shifted whole is not thin
    "t[i,j] = add(p[5-i,j], p[3,j]) for i<6, j<6  p[i,j] = t[i,j] for i<6, j<6",
    # nothing is in the way: fusion's own work
    "t[i,j] = add(p[i,j], q[j]) for i<6, j<6  p[i,j] = t[i,j] for i<6, j<6",
    # it is read twice
    "t[i,j] = add(p[i,j], p[3,j]) for i<6, j<6  p[i,j] = t[i,j] for i<6, j<6  q[i] = t[i,0] for i<6",
    # what is read changes in between
    "t[i,j] = add(p[i,j], q[j]) for i<6, j<6  q[i] = p[i,2] for i<6  p[i,j] = t[i,j] for i<6, j<6",
])  # fmt: skip
def test_left_alone(check, body):
    statements = body.replace("  ", "\n          ")
    check(
        COPY_IN,
        f"""region() {{
          inout p: i32[6, 6];  inout q: i32[6];  temp t: i32[6, 6]
          {statements}
        }}
        """,
        None,
    )


def test_few_points_are_not_worth_it(check, monkeypatch):
    monkeypatch.setattr(copy_in, "MIN_POINTS", 100)
    log = check(
        COPY_IN,
        """region() {
          inout p: i32[6, 6];  temp t: i32[6, 6]
          t[i,j] = minimum(p[i,j], p[3,j]) for i<6, j<6
          p[i,j] = t[i,j] for i<6, j<6
        }
        """,
        None,
    )
    assert "36 points are too few" in str(log)


@settings(max_examples=48, deadline=None, derandomize=True)
@given(st.data())
def test_random_updates(same_meaning, data):
    number = st.integers(0, 4)
    load = st.one_of(
        number.map(lambda k: f"p[i,{k}]"),
        number.map(lambda k: f"p[{k},j]"),
        st.tuples(number, number).map(lambda at: f"p[{at[0]},{at[1]}]"),
        st.sampled_from(["p[i,j]", "p[j,i]", "q[i]", "q[j]", "p[i,5-j]"]),
    )
    tree = st.lists(load, min_size=1, max_size=4).map(lambda x: reduce(lambda a, b: f"add({a}, {b})", x))
    first, second = data.draw(tree), data.draw(st.sampled_from(["p[i,j]", "q[i]", "q[j]"]))
    between = data.draw(st.sampled_from(["", "q[i] = p[2,i] for i<6", "p[1,i] = q[i] for i<6"]))
    before = parse(
        f"""region() {{
          inout p: i32[6, 6];  inout q: i32[6];  temp t: i32[6, 6]
          t[i,j] = {first} for i<6, j<6
          {between}
          p[i,j] = multiply({second}, t[i,j]) for i<6, j<6
        }}
        """
    )
    verify(before)
    after = COPY_IN.fn(before, Log())
    verify(after)
    same_meaning(before, after)
    event("left" if after is before else "copied")
