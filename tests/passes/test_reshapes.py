"""Memory that is written in one shape and read in another is gone over in the finer one."""

import pytest

from dcarray.ir import dims
from dcarray.ir.passes.portable.reshapes import RESHAPES, axis_groups


def test_a_reshaped_temporary_is_made_in_the_shape_in_which_it_is_read(check):
    check(
        RESHAPES,
        """region() {
          in x: f64[24];  temp t: f64[24];  temp u: f64[2, 3, 4] base t;  out z: f64[3, 2, 4]
          t[i] = negative(x[i]) for i<24
          z[i,j,k] = negative(u[j,i,k]) for i<3, j<2, k<4
        }
        """,
        """region() {
          in x: f64[24];  temp u: f64[2, 3, 4];  out z: f64[3, 2, 4];  temp x_1: f64[2, 3, 4] base x
          u[i,j,k] = negative(x_1[i,j,k]) for i<2, j<3, k<4
          z[i,j,k] = negative(u[j,i,k]) for i<3, j<2, k<4
        }
        """,
    )


def test_and_is_read_in_the_shape_in_which_it_was_made(check):
    check(
        RESHAPES,
        """region() {
          in x: f64[3, 2, 4];  in w: f64[6, 1];  temp t: f64[2, 3, 4];  temp u: f64[6, 4] base t
          out z: f64[6, 4]
          t[i,j,k] = x[j,i,k] for i<2, j<3, k<4
          z[i,j] = multiply(u[i,j], w[i,0]) for i<6, j<4
        }
        """,
        """region() {
          in x: f64[3, 2, 4];  in w: f64[6, 1];  temp t: f64[2, 3, 4];  out z: f64[6, 4]
          temp z_1: f64[2, 3, 4] base z;  temp w_1: f64[2, 3, 1] base w
          t[i,j,k] = x[j,i,k] for i<2, j<3, k<4
          z_1[i,j,k] = multiply(t[i,j,k], w_1[i,j,0]) for i<2, j<3, k<4
        }
        """,
    )


def test_axes_of_one_element_come_and_go(check):
    check(
        RESHAPES,
        """region() {
          in x: f64[5, 4];  temp t: f64[5, 4];  temp u: f64[5, 1, 4, 1] base t;  out z: f64[5, 4]
          t[i,j] = negative(x[i,j]) for i<5, j<4
          z[i,j] = negative(u[i,0,j,0]) for i<5, j<4
        }
        """,
        """region() {
          in x: f64[5, 4];  temp u: f64[5, 1, 4, 1];  out z: f64[5, 4]
          u[i,0,j,0] = negative(x[i,j]) for i<5, j<4
          z[i,j] = negative(u[i,0,j,0]) for i<5, j<4
        }
        """,
    )


def test_sizes_may_be_symbols(check):
    check(
        RESHAPES,
        """region(N: int>=2, M: int>=2) {
          in x: f64[N*M];  temp t: f64[N*M];  temp u: f64[N, M] base t;  out z: f64[N]
          t[i] = negative(x[i]) for i<N*M
          z[i] add= u[i,j] init 0.0 for i<N, j<M
        }
        """,
        """region(N: int>=2, M: int>=2) {
          in x: f64[N*M];  temp u: f64[N, M];  out z: f64[N];  temp x_1: f64[N, M] base x
          u[i,j] = negative(x_1[i,j]) for i<N, j<M
          z[i] add= u[i,j] init 0.0 for i<N, j<M
        }
        """,
    )


REFUSED = {
    "a part is read": ("f64[12]", "z[i] = t[2*i] for i<12"),
    "another part is read beside it": ("f64[12]", "z[i] = add(t[i+1], x[i+2]) for i<12"),
    "its coordinates count": ("f64[24]", "z[i] = multiply(t[i], iota:f64(i)) for i<24"),
    "the order of a fold is kept": ("f64[]", "z[] add= t[i] init 0.0 for i<24"),
    "places that depend on data": ("f64[24]", "z[i] = gather(t, bitwise_and(k[i], 7)) for i<24"),
    "it is reversed": ("f64[24]", "z[i] = t[23-i] for i<24"),
    "it is used in both shapes": ("f64[6, 4]", "z[i,j] = add(u[i,j], t[j]) for i<6, j<4"),
    "a library reads it": ("f64[]", "call blas.matmul(t, x) -> z"),
    "it is a scan": ("f64[24]", "z[i] scan i add= t[i] init 0.0 for i<24"),
}


@pytest.mark.parametrize(("kind", "line"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_taken_apart_stays(check, kind, line):
    check(
        RESHAPES,
        f"""region() {{
          in x: f64[24];  in k: i64[24];  temp t: f64[24];  temp u: f64[6, 4] base t;  out z: {kind}
          out y: f64[6, 4]
          t[i] = negative(x[i]) for i<24
          y[i,j] = negative(u[i,j]) for i<6, j<4
          {line}
        }}
        """,
        None,
    )


def test_shapes_of_which_neither_is_finer_stay(check):
    check(
        RESHAPES,
        """region() {
          in x: f64[6, 4];  temp t: f64[6, 4];  temp u: f64[4, 6] base t;  out z: f64[4, 6]
          t[i,j] = negative(x[i,j]) for i<6, j<4
          z[i,j] = negative(u[i,j]) for i<4, j<6
        }
        """,
        None,
    )


def test_memory_that_is_given_in_two_shapes_stays(check):
    """One may begin somewhere in the other."""
    check(
        RESHAPES,
        """region() {
          inout x: f64[24];  inout v: f64[6, 4] base x;  out z: f64[6, 4]
          x[i] = negative(x[i]) for i<24
          z[i,j] = negative(v[i,j]) for i<6, j<4
        }
        """,
        None,
    )


def test_groups_of_axes():
    n, m = dims.symbol("N"), dims.symbol("M")
    assert axis_groups((2, 3, 4), (24,)) == ((0, 1, 2),)
    assert axis_groups((2, 3, 4), (6, 4)) == ((0, 1), (2,))
    assert axis_groups((2, 1, 3, 1), (1, 2, 3)) == ((), (0,), (2,))
    assert axis_groups((2, 3), (3, 2)) is None
    assert axis_groups((6,), (2, 3)) is None
    assert axis_groups((0, 3), (0,)) is None  # nothing to win
    assert axis_groups((n, m), (n * m,)) == ((0, 1),)
    assert axis_groups((n, m), (n,)) is None
