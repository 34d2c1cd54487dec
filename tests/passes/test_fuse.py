"""Producers go into their consumers through any window, unless that would change the answer or cost more."""

from dcarray.ir.passes.portable.fuse import FUSE


def test_chain_with_shared_values(check):
    check(
        FUSE,
        """region() {
          in x: f64[8];  in c: f64[];  out y: f64[8];  temp t: f64[8];  temp u: f64[8];  temp v: f64[8]
          t[i] = add(x[i], c[]) for i<8
          u[i] = exp(t[i]) for i<8
          v[i] = multiply(t[i], u[i]) for i<8
          y[i] = subtract(v[i], u[i]) for i<8
        }
        """,
        """region() {
          in x: f64[8];  in c: f64[];  out y: f64[8];  temp t: f64[8];  temp u: f64[8];  temp v: f64[8]
          y[i] = subtract(multiply($0, $1), $1) with $0 = add(x[i], c[]), $1 = exp($0) for i<8
        }
        """,
    )


def test_any_window(check):
    check(
        FUSE,
        """region() {
          in a: f64[4, 6];  out y: f64[3, 2];  temp t: f64[6, 4]
          t[j,3-i] = negative(a[i,j]) for i<4, j<6
          y[i,j] = sqrt(t[2*i+1,2*j]) for i<3, j<2
        }
        """,
        """region() {
          in a: f64[4, 6];  out y: f64[3, 2];  temp t: f64[6, 4]
          y[i,j] = sqrt(negative(a[3-2*j,2*i+1])) for i<3, j<2
        }
        """,
    )


def test_shifted_reads_and_symbols(check):
    check(
        FUSE,
        """region(N: int>=4) {
          in a: f64[N];  out y: f64[N-2];  temp t: f64[N-1]
          t[i] = subtract(a[i+1], a[i]) for i<N-1
          y[i] = subtract(t[i+1], t[i]) for i<N-2
        }
        """,
        """region(N: int>=4) {
          in a: f64[N];  out y: f64[N-2];  temp t: f64[N-1]
          y[i] = subtract(subtract(a[i+2], a[i+1]), subtract(a[i+1], a[i])) for i<N-2
        }
        """,
    )


def test_several_writers_of_one_temporary(check):
    log = check(
        FUSE,
        """region() {
          in a: f64[8];  out y: f64[4];  out z: f64[8];  temp t: f64[8]
          t[i] = negative(a[i]) for i<4
          t[i+4] = sqrt(a[i]) for i<4
          y[i] = add(t[i], t[i+4]) for i<4
          t[i] = absolute(a[i]) for i<8
          z[i] = rint(t[7-i]) for i<8
        }
        """,
        """region() {
          in a: f64[8];  out y: f64[4];  out z: f64[8];  temp t: f64[8]
          y[i] = add(negative(a[i]), sqrt(a[i])) for i<4
          z[i] = rint(absolute(a[7-i])) for i<8
        }
        """,
    )
    assert "refused" not in str(log)


def test_updates_in_place(check):
    check(
        FUSE,
        """region() {
          inout a: f64[8];  in b: f64[8];  out y: f64[8]
          a[i] = add(a[i], b[i]) for i<8
          y[i] = sqrt(a[7-i]) for i<8
          a[i] = multiply(a[i], b[i]) for i<8
        }
        """,
        """region() {
          inout a: f64[8];  in b: f64[8];  out y: f64[8]
          y[i] = sqrt(add(a[7-i], b[7-i])) for i<8
          a[i] = multiply(add(a[i], b[i]), b[i]) for i<8
        }
        """,
    )


def test_only_a_part_was_written(check):
    log = check(
        FUSE,
        """region() {
          in a: f64[8];  out y: f64[8];  temp t: f64[8]
          t[i] = negative(a[i]) for i<8
          t[2*i] = sqrt(a[i]) for i<4
          y[i] = rint(t[i]) for i<8
        }
        """,
        None,
    )
    assert "partly overwritten" in str(log)
    assert "may not have written it" in str(log)


def test_operand_that_changes_in_between(check):
    log = check(
        FUSE,
        """region() {
          inout a: f64[8];  out y: f64[8];  temp t: f64[8]
          t[i] = negative(a[i]) for i<8
          a[i+1] = 0.0 for i<7
          y[i] = sqrt(t[i]) for i<8
        }
        """,
        None,
    )
    assert "a changes before t is read" in str(log)


def test_change_of_what_is_not_read_any_more(check):
    check(
        FUSE,
        """region() {
          inout a: f64[8];  out y: f64[4];  temp t: f64[8]
          t[i] = negative(a[i]) for i<8
          a[2*i] = 0.0 for i<4
          y[i] = sqrt(t[2*i+1]) for i<4
        }
        """,
        """region() {
          inout a: f64[8];  out y: f64[4];  temp t: f64[8]
          a[2*i] = 0.0 for i<4
          y[i] = sqrt(negative(a[2*i+1])) for i<4
        }
        """,
    )


def test_shifted_update_keeps_its_temporary(check):
    log = check(
        FUSE,
        """region() {
          inout a: f64[8];  in b: f64[8];  temp t: f64[7]
          t[i] = add(a[i], b[i+1]) for i<7
          a[i+1] = t[i] for i<7
        }
        """,
        None,
    )
    assert "a is written at other points than it is read for t" in str(log)


def test_into_reductions_but_no_reduction_into_others(check):
    log = check(
        FUSE,
        """region() {
          in a: f64[4, 6];  out y: f64[4];  temp t: f64[4, 6];  temp s: f64[4]
          t[i,j] = square(a[i,j]) for i<4, j<6
          s[i] add= t[i,j] init 0.0 for i<4, j<6
          y[i] = sqrt(s[i]) for i<4
        }
        """,
        """region() {
          in a: f64[4, 6];  out y: f64[4];  temp t: f64[4, 6];  temp s: f64[4]
          s[i] add= square(a[i,j]) init 0.0 for i<4, j<6
          y[i] = sqrt(s[i]) for i<4
        }
        """,
    )
    assert "refused" not in str(log)


def test_target_of_a_fold_is_not_an_operand(check):
    log = check(
        FUSE,
        """region() {
          inout s: f64[4];  in a: f64[4, 6];  temp t: f64[4, 6]
          t[i,j] = multiply(a[i,j], s[i]) for i<4, j<6
          s[i] add= t[i,j] init 0.0 for i<4, j<6
        }
        """,
        None,
    )
    assert "s is written at other points" in str(log)


def test_expensive_values_are_computed_once(check):
    log = check(
        FUSE,
        """region() {
          in a: f64[9];  out y: f64[8];  temp t: f64[9]
          t[i] = exp(a[i]) for i<9
          y[i] = subtract(t[i+1], t[i]) for i<8
        }
        """,
        None,
    )
    assert "t is expensive" in str(log)


def test_values_along_a_missing_axis(check):
    log = check(
        FUSE,
        """region() {
          in a: f64[4, 6];  in r: f64[4];  in q: f64[6];  in c: f64[];  out y: f64[4, 6]
          temp t: f64[4];  temp u: f64[6];  temp v: f64[]
          t[i] = reciprocal(r[i]) for i<4
          u[i] = reciprocal(q[i]) for i<6
          v[] = sqrt(c[])
          y[i,j] = multiply(multiply(a[i,j], t[i]), multiply(u[j], v[])) for i<4, j<6
        }
        """,
        """region() {
          in a: f64[4, 6];  in r: f64[4];  in q: f64[6];  in c: f64[];  out y: f64[4, 6]
          temp t: f64[4];  temp u: f64[6];  temp v: f64[]
          u[i] = reciprocal(q[i]) for i<6
          y[i,j] = multiply(multiply(a[i,j], reciprocal(r[i])), multiply(u[j], sqrt(c[]))) for i<4, j<6
        }
        """,
    )
    assert "u would be computed again along a whole axis" in str(log)


def test_operands_of_contractions_are_stored(check):
    log = check(
        FUSE,
        """region() {
          in a: f64[16, 16];  in b: f64[16, 16];  out y: f64[16, 16];  temp t: f64[16, 16]
          t[i,j] = negative(a[i,j]) for i<16, j<16
          y[i,j] add= multiply(t[i,k], b[k,j]) init 0.0 for i<16, j<16, k<16
        }
        """,
        None,
    )
    assert "operand of a contraction" in str(log)


def test_data_dependent_reads_need_memory(check):
    log = check(
        FUSE,
        """region() {
          in a: f64[8];  in k: i64[4];  out y: f64[4];  temp t: f64[8];  temp g: f64[4]
          t[i] = negative(a[i]) for i<8
          g[i] = gather(t, bitwise_and(k[i], 7)) for i<4
          y[i] = sqrt(g[3-i]) for i<4
        }
        """,
        """region() {
          in a: f64[8];  in k: i64[4];  out y: f64[4];  temp t: f64[8];  temp g: f64[4]
          t[i] = negative(a[i]) for i<8
          y[i] = sqrt(gather(t, bitwise_and(k[3-i], 7))) for i<4
        }
        """,
    )
    assert "more than a plain load" in str(log)


def test_other_geometry_of_the_memory(check):
    log = check(
        FUSE,
        """region() {
          in a: f64[2, 4];  out y: f64[8];  temp t: f64[2, 4];  temp r: f64[8] base t
          t[i,j] = negative(a[i,j]) for i<2, j<4
          y[i] = sqrt(r[i]) for i<8
        }
        """,
        None,
    )
    assert "t is read as r" in str(log)


def test_inside_loops(check):
    log = check(
        FUSE,
        """region() {
          inout a: f64[8, 8];  temp t: f64[8];  temp u: f64[8];  temp w: f64[8]
          w[i] = 0.0 for i<8
          for k in range(1, 8, 1) {
            t[i] = add(a[k,i], a[k-1,i]) for i<8
            u[i] = exp(multiply(t[i], t[7-i])) for i<8
            a[k,i] = add(u[i], w[i]) for i<8
            w[i] = negative(u[i]) for i<8
          }
        }
        """,
        """region() {
          inout a: f64[8, 8];  temp t: f64[8];  temp u: f64[8];  temp w: f64[8]
          w[i] = 0.0 for i<8
          for k in range(1, 8, 1) {
            u[i] = exp(multiply(add(a[k,i], a[k-1,i]), add(a[k,7-i], a[k-1,7-i]))) for i<8
            a[k,i] = add(u[i], w[i]) for i<8
            w[i] = negative(u[i]) for i<8
          }
        }
        """,
    )
    assert "u is expensive" in str(log)


def test_size_is_bounded(check):
    lines = ["t0[i] = add(x[i], c[0]) for i<8"]
    lines += [f"t{k}[i] = add(t{k - 1}[i], c[{k}]) for i<8" for k in range(1, 99)]
    temps = "\n".join(f"temp t{k}: f64[8]" for k in range(99))
    text = f"region() {{\nin x: f64[8]\nin c: f64[99]\nout y: f64[8]\n{temps}\n" + "\n".join(lines)
    text += "\ny[i] = sqrt(t98[i]) for i<8\n}"
    from dcarray.ir.passes import Log
    from dcarray.ir.text import parse

    log = Log()
    after = FUSE.fn(parse(text), log)
    assert len(after.body) == 2
    assert "would load from" in str(log)
