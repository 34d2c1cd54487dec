"""Temporaries that only live inside one nest need no memory."""

from dcarray.ir.passes.portable.locals import LOCALS


def test_becomes_a_value(check):
    check(
        LOCALS,
        """region() {
          in x: f64[8];  out y: f64[8];  out z: f64[8];  temp t: f64[8];  temp u: f64[8]
          nest {
            t[i] = exp(x[i]) for i<8
            u[i] = negative(t[i]) for i<8
            y[i] = add(t[i], u[i]) for i<8
            z[i] = subtract(u[i], x[i]) for i<8
          }
        }
        """,
        """region() {
          in x: f64[8];  out y: f64[8];  out z: f64[8];  temp t: f64[8];  temp u: f64[8]
          nest {
            y[i] = add($0, negative($0)) with $0 = exp(x[i]) for i<8
            z[i] = subtract(negative(exp(x[i])), x[i]) for i<8
          }
        }
        """,
    )


def test_one_statement_left(check):
    check(
        LOCALS,
        """region() {
          in x: f64[8];  out s: f64[];  temp t: f64[8]
          nest {
            t[i] = square(x[i]) for i<8
            s[] add= t[i] init 0.0 for i<8
          }
        }
        """,
        """region() {
          in x: f64[8];  out s: f64[];  temp t: f64[8]
          s[] add= square(x[i]) init 0.0 for i<8
        }
        """,
    )


def test_needed_elsewhere_or_made_from_what_changes(check):
    check(
        LOCALS,
        """region() {
          inout x: f64[8];  out y: f64[8];  out z: f64[8];  temp t: f64[8];  temp u: f64[8]
          nest {
            t[i] = exp(x[i]) for i<8
            u[i] = negative(x[i]) for i<8
            x[i] = 0.0 for i<8
            y[i] = add(t[i], x[i]) for i<8
          }
          z[i] = u[7-i] for i<8
        }
        """,
        None,
    )
