"""Domain axes of length one vanish."""

from dcarray.ir.passes.portable.collapse import COLLAPSE


def test_axes_vanish(check):
    check(
        COLLAPSE,
        """region(N: int>=1) {
          in x: f64[1, N, 1];  out y: f64[1, N, 1];  out z: f64[N]
          y[i,j,k] = negative(x[i,j,k]) for i<1, j<N, k<1
          z[j] = add(x[0,j,0], iota:f64(i)) for i<1, j<N
        }
        """,
        """region(N: int>=1) {
          in x: f64[1, N, 1];  out y: f64[1, N, 1];  out z: f64[N]
          y[0,i,0] = negative(x[0,i,0]) for i<N
          z[i] = add(x[0,i,0], 0.0) for i<N
        }
        """,
    )


def test_folds_over_one_value(check):
    check(
        COLLAPSE,
        """region() {
          in x: f64[4, 1, 3];  out s: f64[4, 3];  out t: f64[4];  inout u: f64[4, 3]
          s[i,k] add= x[i,j,k] init 0.0 for i<4, j<1, k<3
          t[i] add= x[i,j,k] init 0.0 for i<4, j<1, k<3
          u[i,k] add= x[i,j,k] for i<4, j<1, k<3
        }
        """,
        """region() {
          in x: f64[4, 1, 3];  out s: f64[4, 3];  out t: f64[4];  inout u: f64[4, 3]
          s[i,j] = add(0.0, x[i,0,j]) for i<4, j<3
          t[i] add= x[i,0,j] init 0.0 for i<4, j<3
          u[i,j] = add(u[i,j], x[i,0,j]) for i<4, j<3
        }
        """,
    )


def test_nests_and_loops(check):
    check(
        COLLAPSE,
        """region() {
          in x: f64[1, 3];  out y: f64[3, 3];  out z: f64[1, 3]
          z[i,j] = x[i,j] for i<1, j<3
          for k in range(0, 3, 1) {
            nest {
              y[k+i,j] = x[i,j] for i<1, j<3
              z[i,j] = negative(x[i,j]) for i<1, j<3
            }
          }
        }
        """,
        """region() {
          in x: f64[1, 3];  out y: f64[3, 3];  out z: f64[1, 3]
          z[0,i] = x[0,i] for i<3
          for k in range(0, 3, 1) {
            nest {
              y[k,i] = x[0,i] for i<3
              z[0,i] = negative(x[0,i]) for i<3
            }
          }
        }
        """,
    )


def test_symbolic_sizes_stay(check):
    check(COLLAPSE, "region(N: int>=1) { in x: f64[N]; out y: f64[N]; y[i] = x[i] for i<N }", None)
