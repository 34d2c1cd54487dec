"""Memory that is written in one shape and read in another is gone over in the finer one."""

import pytest

from dcarray.ir import dims
from dcarray.ir.passes.portable.reshapes import RESHAPES, axis_groups


def test_golden(golden):
    golden(RESHAPES)


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
