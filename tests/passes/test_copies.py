"""Copies that nobody needs go; those that keep NumPy's answer stay."""

import pytest

from dcarray.ir.passes.cpu.in_place_results import IN_PLACE_RESULTS
from dcarray.ir.passes.portable.copies import COPIES


def test_chain_of_slices_is_no_copy(check):
    check(
        COPIES,
        """region() {
          in x: f64[20, 6];  out y: f64[3, 4];  temp t: f64[9, 6];  temp u: f64[6, 4];  temp v: f64[3, 4]
          t[i,j] = x[2*i+1,j] for i<9, j<6
          u[i,j] = t[8-2*j,i] for i<6, j<4
          v[i,j] = u[2*i,j] for i<3, j<4
          y[i,j] = negative(v[i,j]) for i<3, j<4
        }
        """,
        """region() {
          in x: f64[20, 6];  out y: f64[3, 4];  temp t: f64[9, 6];  temp u: f64[6, 4];  temp v: f64[3, 4]
          y[i,j] = negative(x[17-4*j,2*i]) for i<3, j<4
        }
        """,
    )


def test_source_that_changes(check):
    log = check(
        COPIES,
        """region() {
          inout a: f64[8];  out y: f64[8];  temp t: f64[8];  temp u: f64[8]
          t[i] = a[i] for i<8
          a[i] = negative(a[i]) for i<8
          y[i] = add(a[i], t[i]) for i<8
        }
        """,
        None,
    )
    assert "a changes before its copy is read" in str(log)


def test_reversal_in_place_needs_its_copy(check):
    log = check(
        COPIES,
        """region() {
          inout a: f64[8];  temp t: f64[8]
          t[i] = a[7-i] for i<8
          a[i] = t[i] for i<8
        }
        """,
        None,
    )
    assert "written at other points" in str(log)


def test_source_that_changes_under_another_name(check):
    log = check(
        COPIES,
        """region() {
          out a: f64[2, 4];  out b: f64[8] base a;  out y: f64[8];  temp t: f64[8]
          b[i] = 1.0 for i<8
          t[i] = b[i] for i<8
          a[i,j] = negative(a[i,j]) for i<2, j<4
          y[i] = sqrt(t[i]) for i<8
        }
        """,
        None,
    )
    assert "b changes before its copy is read" in str(log)


def test_copy_that_is_changed_in_place(check):
    check(
        COPIES,
        """region() {
          in x: f64[8];  out y: f64[8]
          y[i] = x[i] for i<8
          y[i] = add(y[i], x[7-i]) for i<8
        }
        """,
        """region() {
          in x: f64[8];  out y: f64[8]
          y[i] = add(x[i], x[7-i]) for i<8
        }
        """,
    )


def test_calls_and_nests_read_the_source(check):
    check(
        COPIES,
        """region() {
          in a: f64[4, 8];  in b: f64[5, 4];  out y: f64[4, 4];  out z: f64[4, 4];  out w: f64[4, 4]
          temp t: f64[4, 4];  temp u: f64[4, 4]
          t[i,j] = a[i,2*j] for i<4, j<4
          u[i,j] = b[j,i] for i<4, j<4
          call blas.matmul(t, u) -> y
          nest {
            z[i,j] = negative(t[i,j]) for i<4, j<4
            w[i,j] = add(z[i,j], t[i,j]) for i<4, j<4
          }
        }
        """,
        """region() {
          in a: f64[4, 8];  in b: f64[5, 4];  out y: f64[4, 4];  out z: f64[4, 4];  out w: f64[4, 4]
          temp t: f64[4, 4];  temp u: f64[4, 4]
          call blas.matmul(a[i,2*j for i<4, j<4], b[j,i for i<4, j<4]) -> y
          nest {
            z[i,j] = negative(a[i,2*j]) for i<4, j<4
            w[i,j] = add(z[i,j], a[i,2*j]) for i<4, j<4
          }
        }
        """,
    )


def test_made_in_the_final_place(check):
    check(
        COPIES,
        """region() {
          in x: f64[4, 6];  in a: f64[4, 4];  inout B: f64[6, 6];  out s: f64[4];  out z: f64[2, 4]
          temp m: f64[4];  temp e: f64[4, 4];  temp p: f64[4, 4]
          m[i] add= x[i,j] init 0.0 for i<4, j<6
          s[i] = m[3-i] for i<4
          e[i,j] = exp(a[i,j]) for i<4, j<4
          B[j+1,i+1] = e[i,j] for i<4, j<4
          z[i,j] = e[2*i,j] for i<2, j<4
          call blas.matmul(a, a) -> p
          B[i,j] = p[i,j] for i<4, j<4
        }
        """,
        """region() {
          in x: f64[4, 6];  in a: f64[4, 4];  inout B: f64[6, 6];  out s: f64[4];  out z: f64[2, 4]
          temp m: f64[4];  temp e: f64[4, 4];  temp p: f64[4, 4]
          s[3-i] add= x[i,j] init 0.0 for i<4, j<6
          B[j+1,i+1] = exp(a[i,j]) for i<4, j<4
          z[i,j] = B[j+1,2*i+1] for i<2, j<4
          call blas.matmul(a, a) -> B[i,j for i<4, j<4]
        }
        """,
    )


def test_place_in_use(check):
    log = check(
        COPIES,
        """region() {
          in x: f64[8];  inout a: f64[8];  out y: f64[8];  temp t: f64[8]
          t[i] = exp(x[i]) for i<8
          y[i] = negative(a[i]) for i<8
          a[i] = t[i] for i<8
        }
        """,
        None,
    )
    assert "a is in use before the copy" in str(log)


def test_place_that_changes_before_the_last_read(check):
    log = check(
        COPIES,
        """region() {
          in x: f64[8];  inout a: f64[8];  out y: f64[8];  temp t: f64[8]
          t[i] = exp(x[i]) for i<8
          a[i] = t[i] for i<8
          a[2*i] = 0.0 for i<4
          y[i] = negative(t[i]) for i<8
        }
        """,
        None,
    )
    assert "a changes before t is last read" in str(log)


def test_product_over_its_first_factor(check):
    log = check(
        IN_PLACE_RESULTS,
        """region() {
          inout a: f64[5, 6, 8];  in b: f64[8, 8];  temp t: f64[5, 6, 1, 8]
          call blas.matmul(a[i,j,l for i<5, j<6, k<1, l<8], b) -> t
          a[i,j,k] = t[i,j,0,k] for i<5, j<6, k<8
        }
        """,
        """region() {
          inout a: f64[5, 6, 8];  in b: f64[8, 8];  temp t: f64[5, 6, 1, 8]
          call blas.matmul(a[i,j,l for i<5, j<6, k<1, l<8], b) -> a[i,j,l for i<5, j<6, k<1, l<8]
        }
        """,
    )
    assert "t is made in its final place, a" in str(log)


@pytest.mark.parametrize(
    "statements",
    [
        "call blas.matmul(b, a) -> t\na[i,j] = t[i,j] for i<6, j<6",  # every row needs all of it
        "call blas.matmul(a, a) -> t\na[i,j] = t[i,j] for i<6, j<6",
        "call blas.matmul(a, b) -> t\na[i,j] = t[j,i] for i<6, j<6",
        "call blas.matmul(a, b) -> t\na[i,j] = t[5-i,j] for i<6, j<6",
        "call blas.matmul(a, b) -> t\na[i,j] = negative(a[i,j]) for i<6, j<6\na[i,j] = t[i,j] for i<6, j<6",
    ],
)
def test_products_that_are_not_made_over_their_factor(check, statements):
    check(
        IN_PLACE_RESULTS,
        f"region() {{\n  inout a: f64[6, 6];  in b: f64[6, 6];  temp t: f64[6, 6]\n{statements}\n}}\n",
        None,
    )


def test_ranks_keep_a_product_apart_from_its_factors(check):
    check(
        COPIES,
        """region() {
          inout a: f64[6, 6];  in b: f64[6, 6];  temp t: f64[6, 6]
          call blas.matmul(a, b) -> t
          a[i,j] = t[i,j] for i<6, j<6
        }
        """,
        None,
    )
