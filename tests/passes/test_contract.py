"""Sums of products become matrix products, when that is what they are."""

from dcarray.ir.passes.portable.contract import CONTRACT


def test_golden(golden):
    golden(CONTRACT)


def test_refusals(check):
    log = check(
        CONTRACT,
        """region() {
          in a: f64[20, 20];  in v: f64[20];  in n: i64[20, 20];  out d: f64[];  out w: f64[20]
          out t: f64[2, 20];  out m: i64[20, 20];  inout g: f64[20, 20];  out h: f64[20, 20]
          d[] add= multiply(v[i], v[i]) init 0.0 for i<20
          w[i] add= multiply(a[i,k], v[k]) init 0.0 for i<20, k<20
          t[i,j] add= multiply(a[i,k], a[k,j]) init 0.0 for i<2, j<20, k<20
          m[i,j] add= multiply(n[i,k], n[k,j]) init 0 for i<20, j<20, k<20
          g[i,j] add= multiply(a[i,k], a[k,j]) for i<20, j<20, k<20
          h[i,j] add= multiply(a[i,i], a[k,j]) init 0.0 for i<20, j<20, k<20
        }
        """,
        None,
    )
    text = str(log)
    for words in (
        "d is not a matrix product: it is a product with a vector",
        "w is not a matrix product: it is a product with a vector",
        "too small",
        "no product of int64",
        "does not start from zero",
        "diagonal",
    ):
        assert words in text
