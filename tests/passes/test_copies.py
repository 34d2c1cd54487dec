"""Copies that nobody needs go; those that keep NumPy's answer stay."""

import pytest

from dcarray.ir.passes.cpu.in_place_results import IN_PLACE_RESULTS
from dcarray.ir.passes.portable.copies import COPIES


def test_golden(golden):
    golden(COPIES, "copies")
    golden(IN_PLACE_RESULTS, "in_place_results")


@pytest.mark.parametrize("statements", [
    "call blas.matmul(b, a) -> t\na[i,j] = t[i,j] for i<6, j<6",  # every row needs all of it
    "call blas.matmul(a, a) -> t\na[i,j] = t[i,j] for i<6, j<6",
    "call blas.matmul(a, b) -> t\na[i,j] = t[j,i] for i<6, j<6",
    "call blas.matmul(a, b) -> t\na[i,j] = t[5-i,j] for i<6, j<6",
    "call blas.matmul(a, b) -> t\na[i,j] = negative(a[i,j]) for i<6, j<6\na[i,j] = t[i,j] for i<6, j<6",
])  # fmt: skip
def test_products_that_are_not_made_over_their_factor(check, statements):
    check(
        IN_PLACE_RESULTS,
        f"region() {{\n  inout a: f64[6, 6];  in b: f64[6, 6];  temp t: f64[6, 6]\n{statements}\n}}\n",
        None,
    )


def test_a_function_changes_the_array_that_it_is_given(check):
    """An argument that is written, too, is not replaced by what was copied to it."""
    function = """
  function f {
    inout x: f64[4];  in n: i64[];  out r: f64[]
    r[] = 0.0
    x[0] = add(x[0], 1.5)
  }
"""
    check(
        COPIES,
        "region() {\n  inout a: f64[4];  inout b: f64[4];  in n: i64[];  out k: f64[]"
        f"{function}  a[i] = b[i] for i<4\n  call function.call(a, n) -> a, k {{name: 'f'}}\n}}\n",
        None,
    )
