"""Statements that may be run once more although they have overwritten something."""

import random

import numpy as np
import pytest

from dcarray.ir import interp
from dcarray.ir.analysis.idempotence import idempotent_arrays
from dcarray.ir.text import dump, parse
from dcarray.ir.verify import VerifyError, verify

HEAD = "in A: f64[9, 9];  inout B: f64[9, 9];  inout v: f64[9];  temp t: f64[9];  temp c: f64[]"


def found(*lines: str) -> frozenset[str]:
    region = parse(f"region() {{\n{HEAD}\n" + "\n".join(lines) + "\n}")
    verify(region)
    return idempotent_arrays(region)


@pytest.mark.parametrize("lines", [
    ["v[i] = A[0,i] for i<9"],
    ["v[i] = A[0,i] for i<9", "v[i] = add(v[i], 1.0) for i<9"],
    # a column is made of the one before, like the first sweep of the Thomas algorithm
    ["for k in range(1, 9, 1) {", "B[i,k] = A[i,k] for i<9",
     "B[i,k] = add(B[i,k], B[i,k-1]) for i<9", "}"],
    ["for k in range(7, -1, -1) {", "B[i,k] = multiply(A[i,k], B[i,k+1]) for i<9", "}"],
    ["for k in range(0, 9, 1) {", "t[i] = A[k,i] for i<9", "v[k] = t[3]", "}"],
    # sums that nobody has read before
    ["for k in range(0, 9, 1) {", "v[k] = 0.0",
     "for j in range(0, 9, 1) {", "v[k] = add(v[k], A[k,j])", "}", "}"],
    ["for k in range(1, 9, 1) {", "for j in range(0, k, 1) {",
     "B[k,j] = add(B[k-1,j], A[k,j])", "}", "}"],
    ["for k in range(0, 3, 1) {", "v[2*k] = v[2*k+1]", "}"],
])  # fmt: skip
def test_what_is_read_as_it_was_is_not_overwritten(lines):
    assert found(*lines) >= {"B", "v"}


@pytest.mark.parametrize(("lines", "name"), [
    (["v[i] = add(v[i], 1.0) for i<9"], "v"),
    (["t[i] = v[i+1] for i<8", "v[i] = t[i] for i<8"], "v"),
    (["t[i] = v[i] for i<9", "v[i] = A[0,i] for i<9"], "v"),
    (["v[i] = A[0,i] for i<8", "c[] = v[8]", "v[8] = c[]"], "v"),
    (["for k in range(0, 8, 1) {", "v[k] = v[k+1]", "}"], "v"),  # a later iteration overwrites it
    (["for k in range(8, 0, -1) {", "v[k] = v[k-1]", "}"], "v"),
    (["for k in range(0, 9, 1) {", "v[0] = add(v[0], A[k,k])", "}"], "v"),
    (["for k in range(0, 4, 1) {", "t[k] = v[2*k]", "v[k+2] = t[k]", "}"], "v"),
    (["for n in range(0, 3, 1) {", "for k in range(1, 9, 1) {", "B[k,0] = B[k-1,0]", "}",
      "B[0,0] = A[n,n]", "}"], "B"),
    # a sum that decides may differ in its last bit when NumPy makes it
    (["if less(A[0,0], 0.0) {", "v[0] = 1.0", "}"], "v"),
    (["c[] = 0.0", "while less(c[], 3.0) {", "v[0] = c[]", "c[] = add(c[], 1.0)", "}"], "v"),
])  # fmt: skip
def test_what_is_read_as_it_was_and_overwritten(lines, name):
    assert name not in found(*lines)


def test_no_array_next_to_library_calls():
    region = parse(
        "region() {\nin A: f64[9, 9];  inout D: f64[9, 9];  inout w: f64[9]\n"
        "w[i] = 0.0 for i<9\ncall linalg.inv(A) -> D\n}"
    )
    assert not idempotent_arrays(region)


@pytest.mark.parametrize("seed", range(300))
def test_a_second_run_finds_what_the_first_did(seed):
    rng = random.Random(seed)

    def place(var: str) -> str:
        kind = rng.random()
        if kind < 0.7:
            return f"{var}+{rng.randint(0, 3)}"
        return str(rng.randint(0, 8)) if kind < 0.85 else f"{4 + rng.randint(0, 3)}-{var}"

    def window() -> str:
        return f"B[{place('k')},{rng.choice(['i', 'i+1', 'i+4'])}]"

    def statement() -> str:
        kind = rng.random()
        if kind < 0.4:
            return f"{window()} = add({window()}, {window()}) for i<4"
        if kind < 0.7:
            return f"{window()} = A[{place('k')},i] for i<4"
        target = f"v[{place('k')}]"
        source = rng.choice([f"v[{place('k')}]", "A[k,k]"])
        return f"{target} = {source}"

    lines = [statement() for _ in range(rng.randint(1, 3))]
    bounds = rng.choice(["0, 5, 1", "4, -1, -1", "1, 5, 2", "0, 1, 1"])
    body = f"for k in range({bounds}) {{\n" + "\n".join(lines) + "\n}"
    if rng.random() < 0.3:
        body = f"for n in range(0, 2, 1) {{\n{body}\n}}"
    region = parse(f"region() {{\n{HEAD}\n{body}\n}}")
    try:
        verify(region)
    except VerifyError:  # a statement that reads what it overwrites elsewhere
        return
    state = np.random.default_rng(seed)
    data = {"A": state.random((9, 9)), "B": state.random((9, 9)), "v": state.random(9)}
    once = interp.run(region, {name: a.copy() for name, a in data.items()})
    left = idempotent_arrays(region)
    assert left <= {"B", "v"}
    twice = {name: (once[name] if name in left else a).copy() for name, a in data.items()}
    again = interp.run(region, twice)
    for name in ("B", "v"):
        np.testing.assert_array_equal(again[name], once[name], dump(region))
