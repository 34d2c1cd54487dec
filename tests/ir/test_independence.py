"""Loops whose iterations need nothing of one another."""

import random

import numpy as np
import pytest

from dcarray.ir import interp
from dcarray.ir.analysis import effects
from dcarray.ir.analysis.independence import iteration_conflict, privatisable
from dcarray.ir.dims import evaluate
from dcarray.ir.nodes import Loop
from dcarray.ir.text import dump, parse
from dcarray.ir.verify import VerifyError, verify

HEAD = "in A: f64[9, 9];  inout B: f64[9, 9];  inout v: f64[9];  temp t: f64[9];  temp c: f64[]"


def loop(*lines: str):
    region = parse(f"region() {{\n{HEAD}\n" + "\n".join(lines) + "\n}")
    verify(region)
    return region.body[0], region


def reason(*lines: str) -> str | None:
    found = iteration_conflict(*loop(*lines))
    return None if found is None else found.text


@pytest.mark.parametrize("lines", [
    ["for k in range(0, 9, 1) {", "B[k,i] = add(B[k,i], A[i,k]) for i<9", "}"],
    ["for k in range(0, 9, 1) {", "B[k,i] = add(B[k,i], 1.0) for i<k+1", "}"],
    # the lower and the upper triangle, as a covariance writes them
    ["for k in range(0, 9, 1) {", "B[k+i,k] = A[k,i] for i<9-k", "B[k,k+i] = A[k,i] for i<9-k", "}"],
    # columns of rows in strips
    ["for s in range(0, 7, 4) {", "for k in range(1, 9, 1) {",
     "B[i+s+1,k] = multiply(B[i+s+1,k-1], 2.0) for i<min(4, 7-s)", "}", "}"],
    ["for k in range(0, 4, 1) {", "v[2*k] = v[8]", "}"],
    ["for k in range(8, -1, -1) {", "t[i] = A[k,i] for i<9", "c[] = t[3]",
     "B[k,i] = add(t[i], c[]) for i<9", "}"],
    ["for k in range(0, 9, 1) {", "for m in range(0, 9, 1) {", "t[m] = A[m,k]", "}",
     "B[i,k] = t[i] for i<9", "}"],
])  # fmt: skip
def test_nothing_passes_from_iteration_to_iteration(lines):
    assert reason(*lines) is None
    stmt, region = loop("parallel " + lines[0], *lines[1:])
    assert stmt.parallel and parse(dump(region)) == region


@pytest.mark.parametrize(("lines", "name"), [
    (["for k in range(1, 9, 1) {", "v[k] = v[k-1]", "}"], "v"),
    (["for k in range(1, 9, 1) {", "v[k-1] = v[k]", "}"], "v"),
    (["for k in range(0, 9, 1) {", "v[0] = A[k,k]", "}"], "v"),
    (["for k in range(0, 4, 2) {", "c[] = v[4]", "v[2*k] = c[]", "}"], "v"),
    (["for k in range(0, 9, 1) {", "c[] = v[8-k]", "v[k] = c[]", "}"], "v"),
    (["for s in range(0, 7, 4) {", "v[i+s] = 0.0 for i<min(5, 7-s)", "}"], "v"),
    (["for k in range(1, 9, 1) {", "for m in range(0, k, 1) {", "v[m] = A[k,m]", "}", "}"], "v"),
    # only a part of it is made anew in every iteration
    (
        ["for k in range(0, 9, 1) {", "if less(A[k,k], 0.0) {", "c[] = A[k,0]", "}", "v[k] = c[]", "}"],
        "c",
    ),
    (["for k in range(0, 9, 1) {", "t[k] = A[k,k]", "v[k] = t[0]", "}"], "t"),
])  # fmt: skip
def test_what_stands_in_the_way_is_named(lines, name):
    found = reason(*lines)
    assert found is not None and name in found.split()
    with pytest.raises(VerifyError, match="parallel"):
        loop("parallel " + lines[0], *lines[1:])


def test_what_is_used_elsewhere_is_no_iterations_own():
    lines = ["for k in range(0, 9, 1) {", "c[] = A[k,k]", "v[k] = c[]", "}"]
    stmt, region = loop(*lines)
    assert privatisable(stmt.body, region) == {"c"}
    stmt, region = loop(*lines, "B[0,0] = c[]")
    assert privatisable(stmt.body, region) == set()


@pytest.mark.parametrize("seed", range(150))
def test_against_all_iterations_one_by_one(seed):
    """What is said to be independent gives the same in the other direction."""
    rng = random.Random(seed)

    def place(room: int) -> str:
        kind = rng.random()
        if kind < 0.6:
            return f"{rng.choice(['', '2*'])}k+{rng.randint(0, room)}"
        return str(rng.randint(0, 12)) if kind < 0.8 else f"{8 + rng.randint(0, 4)}-k"

    def window() -> str:
        return f"B[{place(4)},{place(4)}]" if rng.random() < 0.5 else f"B[{place(4)},i+{rng.randint(0, 9)}]"

    lines = []
    for _ in range(rng.randint(1, 2)):
        target = window()
        source = rng.choice([target, window()])
        lines.append(f"t[{'i' if 'i' in target else '0'}] = {source} for i<4"
                     if "i" in target and "i" in source else "t[0] = 1.0")  # fmt: skip
        lines.append(f"{target} = add(t[{'i' if 'i' in target else '0'}], size:f64(k))"
                     + (" for i<4" if "i" in target else ""))  # fmt: skip
    bounds = rng.choice([("0, 4, 1", "3, -1, -1"), ("0, 5, 2", "4, -1, -2")])
    text = "region() {{\ninout B: f64[13, 13];  temp t: f64[4]\nfor k in range({}) {{\n" + "\n".join(lines)
    one, other = (parse(text.format(b) + "\n}\n}") for b in bounds)
    verify(one)
    (stmt,) = one.body
    assert isinstance(stmt, Loop)
    if iteration_conflict(stmt, one) is not None:
        return
    start = np.random.default_rng(seed).normal(size=(13, 13))
    results = [interp.run(region, {"B": start.copy()})["B"] for region in (one, other)]
    assert np.array_equal(*results), dump(one)
    # and iteration by iteration, no element that one iteration writes is touched by another
    touched = []
    for k in range(*(evaluate(d, {}) for d in stmt.bounds)):
        iteration = parse(dump(one).replace("for k in range(" + bounds[0], f"for k in range({k}, {k + 1}, 1"))
        after = interp.run(iteration, {"B": start.copy()})["B"]
        touched.append(set(zip(*np.nonzero(after != start), strict=True)))
    assert sum(map(len, touched)) == len(set().union(*touched))
    assert effects.writes(stmt)


def test_what_is_written_side_by_side_is_written():
    region = parse(
        """region(N: int>=4) {
          inout x: f64[N, 6];  temp r: f64[N, 6];  temp q: f64[N, 6]
          for k in range(0, 3, 1) {
            r[i,j+2] = x[i,j] for i<N, j<4
            r[i+1,j] = x[i,j] for i<N-1, j<2
            r[0,j] = x[1,j] for j<2
            q[i,j+2] = x[i,j] for i<N, j<4
            q[i+1,j] = x[i,j] for i<N-1, j<2
            x[i,j] = add(r[i,j], q[i,j]) for i<N, j<6
          }
        }"""
    )
    (stmt,) = region.body
    assert privatisable(stmt.body, region) == {"r"}
