"""Statements over one domain share a nest when point by point is the same as one after the other."""

from dcarray.ir.passes.portable.siblings import SIBLINGS


def test_outputs_and_a_fold_in_one_nest(check):
    log = check(
        SIBLINGS,
        """region() {
          in x: f64[4, 6];  in m: f64[4];  out e: f64[4, 6];  out s: f64[4];  out z: f64[4, 6]
          out o: f64[4, 6]
          e[i,j] = exp(subtract(x[i,j], m[i])) for i<4, j<6
          s[i] add= e[i,j] init 0.0 for i<4, j<6
          z[i,j] = negative(x[i,j]) for i<4, j<6
          o[i,j] = divide(e[i,j], s[i]) for i<4, j<6
        }
        """,
        """region() {
          in x: f64[4, 6];  in m: f64[4];  out e: f64[4, 6];  out s: f64[4];  out z: f64[4, 6]
          out o: f64[4, 6]
          nest {
            e[i,j] = exp(subtract(x[i,j], m[i])) for i<4, j<6
            s[i] add= e[i,j] init 0.0 for i<4, j<6
            z[i,j] = negative(x[i,j]) for i<4, j<6
          }
          o[i,j] = divide(e[i,j], s[i]) for i<4, j<6
        }
        """,
    )
    assert "s is complete only after the whole loop" in str(log)


def test_moved_up_or_down_over_others(check):
    check(
        SIBLINGS,
        """region() {
          in x: f64[8];  in k: f64[5];  inout a: f64[8];  out y: f64[8];  out z: f64[8];  inout w: f64[5]
          y[i] = negative(x[i]) for i<8
          w[i] = add(w[i], k[i]) for i<5
          z[i] = sqrt(x[i]) for i<8
          a[i] = add(a[i], w[2]) for i<8
          w[i] = a[i] for i<5
          a[i] = multiply(a[i], w[1]) for i<8
        }
        """,
        """region() {
          in x: f64[8];  in k: f64[5];  inout a: f64[8];  out y: f64[8];  out z: f64[8];  inout w: f64[5]
          nest {
            y[i] = negative(x[i]) for i<8
            z[i] = sqrt(x[i]) for i<8
          }
          w[i] = add(w[i], k[i]) for i<5
          a[i] = add(a[i], w[2]) for i<8
          w[i] = a[i] for i<5
          a[i] = multiply(a[i], w[1]) for i<8
        }
        """,
    )


def test_moved_down(check):
    check(
        SIBLINGS,
        """region() {
          in x: f64[8];  in k: f64[5];  inout w: f64[5];  out y: f64[8];  out z: f64[8]
          y[i] = negative(x[i]) for i<8
          w[i] = add(w[i], k[i]) for i<5
          z[i] = add(x[i], w[1]) for i<8
        }
        """,
        """region() {
          in x: f64[8];  in k: f64[5];  inout w: f64[5];  out y: f64[8];  out z: f64[8]
          w[i] = add(w[i], k[i]) for i<5
          nest {
            y[i] = negative(x[i]) for i<8
            z[i] = add(x[i], w[1]) for i<8
          }
        }
        """,
    )


def test_other_points(check):
    log = check(
        SIBLINGS,
        """region() {
          in x: f64[8];  out y: f64[8];  out z: f64[8]
          y[i] = negative(x[i]) for i<8
          z[i] = add(x[i], y[7-i]) for i<8
        }
        """,
        None,
    )
    assert "y is read and written at different points" in str(log)


def test_old_value_of_a_fold(check):
    log = check(
        SIBLINGS,
        """region() {
          in x: f64[4, 6];  out y: f64[4, 6];  inout s: f64[4]
          y[i,j] = add(x[i,j], s[i]) for i<4, j<6
          s[i] add= x[i,j] init 0.0 for i<4, j<6
        }
        """,
        None,
    )
    assert "s is complete only after" in str(log)


def test_folds_along_different_axes_and_nothing_in_common(check):
    log = check(
        SIBLINGS,
        """region() {
          in x: f64[4, 6];  in y: f64[4, 6];  in m: f64[4];  out s: f64[4];  out t: f64[6];  out u: f64[4, 6]
          s[i] add= x[i,j] init 0.0 for i<4, j<6
          t[j] add= x[i,j] init 0.0 for i<4, j<6
          u[i,j] = add(y[i,j], m[i]) for i<4, j<6
        }
        """,
        None,
    )
    assert "they fold along different axes" in str(log)
    assert "no data in common" in str(log)


def test_other_geometry_of_the_memory(check):
    check(
        SIBLINGS,
        """region() {
          in x: f64[8];  out a: f64[8];  out b: f64[8] base a;  out y: f64[8]
          a[i] = negative(x[i]) for i<8
          y[i] = add(b[i], x[i]) for i<8
        }
        """,
        None,
    )


def test_folds_over_the_same_elements(check):
    check(
        SIBLINGS,
        """region() {
          in x: f64[6];  in y: f64[6];  in m: f64[4];  out s: f64[4];  out t: i64[4]
          s[i] add= where(less(x[j], m[i]), y[j], 0.0) init 0.0 for i<4, j<6
          t[i] add= cast:i64(less(x[j], m[i])) init 0 for i<4, j<6
        }
        """,
        """region() {
          in x: f64[6];  in y: f64[6];  in m: f64[4];  out s: f64[4];  out t: i64[4]
          nest {
            s[i] add= where(less(x[j], m[i]), y[j], 0.0) init 0.0 for i<4, j<6
            t[i] add= cast:i64(less(x[j], m[i])) init 0 for i<4, j<6
          }
        }
        """,
    )


def test_folds_of_more_than_they_have_in_common(check):
    log = check(
        SIBLINGS,
        """region() {
          in x: f64[6];  in a: f64[4, 6];  in b: f64[4, 6];  out s: f64[4];  out t: f64[4]
          s[i] add= multiply(x[j], a[i,j]) init 0.0 for i<4, j<6
          t[i] add= multiply(x[j], b[i,j]) init 0.0 for i<4, j<6
        }
        """,
        None,
    )
    assert "no data in common" in str(log)
