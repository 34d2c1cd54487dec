"""What nobody reads goes, and what somebody may read stays."""

from dcarray.ir.passes.portable.dead import DEAD


def test_unread_temporaries_and_overwritten_values(check):
    log = check(
        DEAD,
        """region() {
          in x: f64[8];  out y: f64[8];  temp t: f64[8];  temp u: f64[8];  temp v: f64[8];  temp w: f64[8]
          t[i] = exp(x[i]) for i<8
          u[i] = negative(t[i]) for i<8
          v[i] = x[i] for i<8
          y[i] = sqrt(v[i]) for i<8
          y[7-i] = add(v[i], v[i]) for i<8
        }
        """,
        """region() {
          in x: f64[8];  out y: f64[8];  temp v: f64[8]
          v[i] = x[i] for i<8
          y[7-i] = add(v[i], v[i]) for i<8
        }
        """,
    )
    assert "u is never read" in str(log)


def test_what_checks_its_values_stays(check):
    check(
        DEAD,
        """region() {
          in x: f64[8];  in b: bool[8];  out y: f64[8];  temp t: f64[8]
          t[i] = checked(b[i], x[i]) for i<8
          y[i] = add(checked(b[i], x[i]), x[i]) for i<8
          y[i] = x[i] for i<8
        }
        """,
        None,
    )


def test_partly_overwritten_stays(check):
    check(
        DEAD,
        """region() {
          in x: f64[8];  out y: f64[8]
          y[i] = sqrt(x[i]) for i<8
          y[i+1] = x[i] for i<6
        }
        """,
        None,
    )


def test_another_geometry_keeps_its_memory(check):
    check(
        DEAD,
        """region() {
          in x: f64[2, 4];  out y: f64[8];  temp t: f64[2, 4];  temp r: f64[8] base t
          t[i,j] = negative(x[i,j]) for i<2, j<4
          y[i] = r[i] for i<8
        }
        """,
        None,
    )


def test_carried_by_a_loop(check):
    check(
        DEAD,
        """region() {
          in x: f64[8];  out y: f64[8];  temp t: f64[8];  temp u: f64[8]
          t[i] = x[i] for i<8
          for k in range(0, 8, 1) {
            y[k] = t[k]
            t[i] = add(t[i], x[i]) for i<8
            u[i] = x[i] for i<8
          }
        }
        """,
        """region() {
          in x: f64[8];  out y: f64[8];  temp t: f64[8]
          t[i] = x[i] for i<8
          for k in range(0, 8, 1) {
            y[k] = t[k]
            t[i] = add(t[i], x[i]) for i<8
          }
        }
        """,
    )


def test_read_by_the_next_iteration_at_another_place(check):
    check(
        DEAD,
        """region() {
          in x: f64[8];  out y: f64[8];  temp t: f64[9]
          t[i] = 0.0 for i<9
          y[i] = 0.0 for i<8
          for k in range(0, 8, 1) {
            t[k+1] = x[k]
            y[k] = t[k]
          }
        }
        """,
        None,
    )


def test_overwritten_in_a_branch_stays(check):
    check(
        DEAD,
        """region() {
          in x: f64[8];  in p: bool[];  out y: f64[8]
          y[i] = sqrt(x[i]) for i<8
          if p[] { y[i] = x[i] for i<8 }
        }
        """,
        None,
    )


def test_parts_of_a_nest(check):
    check(
        DEAD,
        """region() {
          in x: f64[8];  out y: f64[8];  temp t: f64[8];  temp u: f64[8]
          nest {
            t[i] = exp(x[i]) for i<8
            u[i] = negative(t[i]) for i<8
            y[i] = add(t[i], x[i]) for i<8
          }
        }
        """,
        """region() {
          in x: f64[8];  out y: f64[8];  temp t: f64[8]
          nest {
            t[i] = exp(x[i]) for i<8
            y[i] = add(t[i], x[i]) for i<8
          }
        }
        """,
    )
