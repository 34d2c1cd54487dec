"""Products of a matrix and a vector become sums where others go over the matrix."""

import numpy as np
import pytest
from plan_runs import agree, interpreted, whole_numbers

from dcarray.ir.nodes import Call, Compute, Rows
from dcarray.ir.passes import Log
from dcarray.ir.passes.cpu.pipeline import CPU
from dcarray.ir.passes.cpu.shared_matvec import SHARED_MATVEC
from dcarray.ir.text import dump, parse
from dcarray.ir.verify import verify

ARRAYS = """in A: f64[300, 400];  in x: f64[400];  in r: f64[300];  inout y: f64[400];  inout t: f64[300];
  in B: f64[400, 300];  temp T: f64[300, 400];  in F: f64[300, 400] strides [1, 300];
  in e: c128[300, 400];  in q: c128[400];  inout p: c128[300];  inout u: f64[100]"""

AX, RA = "call blas.matmul(A, x) -> t", "call blas.matmul(r, A) -> y"


def products(text):
    region = parse(f"region() {{\n {ARRAYS}\n {text} }}")
    verify(region)
    log = Log()
    made = SHARED_MATVEC.fn(region, log)
    verify(made)
    given = whole_numbers(region)
    given["F"] = np.asfortranarray(given["F"])
    agree(interpreted(made, given), interpreted(region, given))
    return made, log


TAKEN = {
    f"{AX}\n {RA}": ["t[i] add= multiply(A[i,j], x[j])", "y[j] add= multiply(r[i], A[i,j])"],
    f"{AX}\n call blas.matmul(t, A) -> y": ["t[i] add= ", "y[j] add= multiply(t[i], A[i,j])"],
    "call blas.matmul(B[j,i for i<300, j<400], x) -> t\n call blas.matmul(B, r) -> y": [
        "t[j] add= multiply(B[i,j], x[i])",
        "y[i] add= multiply(B[i,j], r[j])",
    ],
    "call blas.matmul(F, x) -> t\n call blas.matmul(r, F) -> y": [
        "t[j] add= multiply(F[j,i], x[i])",
        "y[i] add= multiply(r[j], F[j,i])",
    ],
    "T[i,j] = multiply(A[i,j], 2.0) for i<300, j<400\n call blas.matmul(T, x) -> t": [
        "T[i,j] = ",
        "t[i] add= multiply(T[i,j], x[j])",
    ],
}


@pytest.mark.parametrize("text", TAKEN)
def test_taken_apart(text):
    made, _ = products(text)
    lines = [line.strip() for line in dump(made).splitlines()]
    for start in TAKEN[text]:
        assert any(line.startswith(start) for line in lines), (start, lines)
    assert not any(isinstance(stmt, Call) for stmt in made.body)


def test_large_matrices_are_read_side_by_side():
    text = """region() {
      in A: f64[4096, 1024];  in B: f64[4096, 1024];  in F: f64[4096, 1024] strides [1, 4096]
      in x: f64[1024];  in w: f64[1024];  in S: f64[65536, 64];  in T: f64[65536, 64];  in v: f64[64]
      out a: f64[4096];  out b: f64[4096];  out s: f64[65536];  out t: f64[65536]
      call blas.matmul(A, x) -> a
      call blas.matmul(OTHER) -> b
      call blas.matmul(S, v) -> s
      call blas.matmul(T, v) -> t
    }"""
    made = SHARED_MATVEC.fn(parse(text.replace("OTHER", "B, x")), Log())
    verify(made)
    lines = [line.strip() for line in dump(made).splitlines()]
    for start in "a[i] add= multiply(A[i,j], x[j])", "b[i] add= multiply(B[i,j], x[j])":
        assert any(line.startswith(start) for line in lines), (start, lines)
    for left in "S, v) -> s", "T, v) -> t":  # their rows are short
        assert f"call blas.matmul({left}" in lines
    for alone in "B, w", "F, x":  # another vector; rows that lie the other way round
        region = parse(text.replace("OTHER", alone))
        assert SHARED_MATVEC.fn(region, Log()) is region


LEFT = {
    f"{AX}": None,
    f"{AX}\n call blas.matmul(B, r) -> y": None,
    "call blas.matmul(e, q) -> p\n call blas.matmul(e, q) -> p": "as the library does",
    "call blas.matmul(A[i,j for i<100, j<100], x[i for i<100]) -> t[i for i<100]\n"
    + "u[i] add= A[i,j] init 0.0 for i<100, j<100": "A is small",
}


@pytest.mark.parametrize("text", LEFT)
def test_left_to_the_library(text):
    made, log = products(text)
    assert any(isinstance(stmt, Call) for stmt in made.body)
    assert LEFT[text] is None or LEFT[text] in str(log)


def test_both_products_in_one_pass():
    text = """region() {
      in A: f64[9000, 500];  in x: f64[500];  out y: f64[500];  temp t: f64[9000]
      call blas.matmul(A, x) -> t
      call blas.matmul(t, A) -> y
    }"""
    made = CPU.run(parse(text))
    assert len(made.body) == 1 and isinstance(made.body[0], Rows)


def test_what_makes_the_matrix_is_computed_in_the_sum():
    text = """region() {
      in A: f64[900, 500];  in x: f64[500];  in s: f64[];  temp T: f64[900, 500];  out y: f64[900]
      T[i,j] = multiply(s[], A[i,j]) for i<900, j<500
      call blas.matmul(T, x) -> y
    }"""
    made = CPU.run(parse(text))
    (only,) = made.body
    assert isinstance(only, Compute) and "multiply(multiply(s[], A[i,j]), x[j])" in dump(made)


MATRICES = """in P: c128[2, 2];  in Q: c128[2, 20000];  inout R: c128[2, 20000];  in L: f64[300, 4]
  in S: f64[4, 200];  inout M: f64[300, 200];  in K: f64[200, 300];  in V: f64[1, 3000]
  temp H: f64[4, 200];  inout E: f64[2, 3, 3000];  in U: f64[2, 3, 1];  inout O: f64[300, 300]"""

WRITTEN = {
    "call blas.matmul(P, Q) -> R": "R[i,j] = add(multiply(P[i,0], Q[0,j]), multiply(P[i,1], Q[1,j]))",
    "call blas.matmul(P, Q[i,-j+19999 for i<2, j<20000]) -> R": "multiply(P[i,1], Q[1,-j+19999])",
    "call blas.matmul(L[i,2*j+1 for i<300, j<2], S[3*i,j for i<2, j<200]) -> M": "multiply(L[i,3], S[3,j])",
    "H[i,j] = multiply(S[i,j], 2.0) for i<4, j<200\n call blas.matmul(L, H) -> M": "multiply(L[i,3], H[3,j])",
    "call blas.matmul(U, V) -> E": "E[i,j,k] = multiply(U[i,j,0], V[0,k])",
}


@pytest.mark.parametrize("text", WRITTEN)
def test_written_out(text: str) -> None:
    region = parse(f"region() {{\n {MATRICES}\n {text} }}")
    made = SHARED_MATVEC.fn(region, Log())
    verify(made)
    assert WRITTEN[text] in dump(made)
    given = whole_numbers(region)
    agree(interpreted(made, given), interpreted(region, given))


@pytest.mark.parametrize("text", [
    "call blas.matmul(P, Q[i,j for i<2, j<100]) -> R[i,j for i<2, j<100]",  # little
    "call blas.matmul(M, K) -> O",  # many terms
])  # fmt: skip
def test_not_written_out(text: str) -> None:
    region = parse(f"region() {{\n {MATRICES}\n {text} }}")
    assert SHARED_MATVEC.fn(region, Log()) is region
