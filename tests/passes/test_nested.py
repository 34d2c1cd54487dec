"""Bodies of loops and branches are regions of their own."""

from dataclasses import replace

import numpy as np

from dcarray.ir import interp
from dcarray.ir.nodes import Loop
from dcarray.ir.passes.base import Pass
from dcarray.ir.passes.cpu.pipeline import CPU
from dcarray.ir.text import parse


def _all(region, log):
    return replace(CPU, final=()).run(region, log)


ALL = Pass("all", _all)


def test_what_a_iteration_makes_for_itself_needs_no_memory(check):
    check(
        ALL,
        """region() {
          in a: f64[8, 9];  inout b: f64[8, 9];  temp t: f64[8];  temp u: f64[8];  temp w: f64[8]
          for k in range(1, 9, 1) {
            t[i] = add(a[i,k], a[i,k-1]) for i<8
            u[i] = multiply(t[i], b[i,k-1]) for i<8
            w[i] = subtract(u[i], t[i]) for i<8
            b[i,k] = w[i] for i<8
          }
        }
        """,
        """region() {
          in a: f64[8, 9];  inout b: f64[8, 9]
          for k in range(1, 9, 1) {
            b[i,k] = subtract(multiply($0, b[i,k-1]), $0) with $0 = add(a[i,k], a[i,k-1]) for i<8
          }
        }
        """,
    )


def test_what_passes_to_the_next_iteration_is_stored(check):
    """The second loop keeps the copy: in the next iteration ``t`` is what ``a`` was."""
    check(
        ALL,
        """region() {
          inout a: f64[8];  inout b: f64[8];  temp t: f64[8];  temp u: f64[8]
          t[i] = 0.0 for i<8
          for k in range(0, 3, 1) {
            b[i] = add(b[i], t[i]) for i<8
            u[i] = multiply(a[i], 2.0) for i<8
            t[i] = u[i] for i<8
            a[i] = add(a[i], 1.0) for i<8
          }
        }
        """,
        """region() {
          inout a: f64[8];  inout b: f64[8];  temp t: f64[8]
          t[i] = 0.0 for i<8
          for k in range(0, 3, 1) {
            nest {
              b[i] = add(b[i], t[i]) for i<8
              t[i] = multiply(a[i], 2.0) for i<8
              a[i] = add(a[i], 1.0) for i<8
            }
          }
        }
        """,
    )


def test_rows_and_columns_are_copied_in_every_iteration(check):
    check(
        ALL,
        """region() {
          inout p: f64[200, 200];  temp t: f64[200, 200];  temp u: f64[200, 200]
          for k in range(0, 200, 1) {
            t[i,j] = add(p[i,k], p[k,j]) for i<200, j<200
            u[i,j] = minimum(p[i,j], t[i,j]) for i<200, j<200
            p[i,j] = u[i,j] for i<200, j<200
          }
        }
        """,
        """region() {
          inout p: f64[200, 200];  temp s0: f64[200];  temp s1: f64[200]
          for k in range(0, 200, 1) {
            s0[i] = p[i,k] for i<200
            s1[i] = p[k,i] for i<200
            p[i,j] = minimum(p[i,j], add(s0[i], s1[j])) for i<200, j<200
          }
        }
        """,
    )


def test_a_result_of_the_region_outlives_the_loop(check):
    check(
        ALL,
        """region() {
          in a: f64[8];  out o: f64[8];  temp t: f64[8]
          for k in range(0, 4, 1) {
            t[i] = multiply(a[i], 2.0) for i<8
            if less(t[k], 0.0) {
              o[i] = t[i] for i<8
            } else {
              o[i] = add(t[i], 1.0) for i<8
            }
          }
        }
        """,
        None,
    )


def test_what_got_an_axis_inside_keeps_it_outside():
    region = parse("""region() {
      in x: f64[12, 12, 9];  in w: f64[3, 3, 9, 5];  inout y: f64[10, 10, 5];  temp t: f64[5]
      for i in range(0, 10, 1) {
        for j in range(0, 10, 1) {
          t[c] add= multiply(x[a+i,b+j,k], w[a,b,k,c]) init 0.0 for a<3, b<3, k<9, c<5
          y[i,j,c] = subtract(t[c], 1.0) for c<5
        }
      }
    }""")
    made = CPU.run(region, debug=True)
    assert not any(isinstance(stmt, Loop) for stmt in made.body)
    rng = np.random.default_rng(0)
    given = {a.name: rng.standard_normal(a.shape) for a in region.arrays if a.role != "temp"}
    want, got = (interp.run(one, {k: v.copy() for k, v in given.items()})["y"] for one in (region, made))
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_sums_of_a_triangle_are_an_axis_of_their_own(check):
    """Also where an iteration has nothing to add up: the sum is written all the same.  The sums have room for
    the longest row, since their memory is there before the loop begins."""
    check(
        ALL,
        """region() {
          in a: f64[8, 8];  inout b: f64[8, 8];  temp t: f64[]
          for i in range(0, 8, 1) {
            for j in range(i, 8, 1) {
              t[] add= multiply(a[i,k], b[k,j]) init 0.0 for k<i
              b[i,j] = subtract(b[i,j], t[])
            }
          }
        }
        """,
        """region() {
          in a: f64[8, 8];  inout b: f64[8, 8];  temp t: f64[8]
          for i in range(0, 8, 1) {
            t[i0] add= multiply(a[i,i1], b[i1,i+i0]) init 0.0 for i0<8 - i, i1<i
            b[i,i+i0] = subtract(b[i,i+i0], t[i0]) for i0<8 - i
          }
        }
        """,
    )
