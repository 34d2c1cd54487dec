"""Sums of products become matrix products, when that is what they are."""

from dcarray.ir.passes.portable.contract import CONTRACT


def test_matrix_product(check):
    check(
        CONTRACT,
        """region(N: int>=1, M: int>=1, K: int>=1) {
          in a: f64[N, K];  in b: f64[M, K];  out c: f64[N, M]
          c[i,j] add= multiply(a[i,k], b[j,k]) init 0.0 for i<N, j<M, k<K
        }
        """,
        """region(N: int>=1, M: int>=1, K: int>=1) {
          in a: f64[N, K];  in b: f64[M, K];  out c: f64[N, M]
          call blas.matmul(a, b[j,i for i<K, j<M]) -> c
        }
        """,
    )


def test_operands_in_any_order_windows_and_stacks(check):
    check(
        CONTRACT,
        """region() {
          in a: f32[2, 3, 20, 9];  in b: f32[2, 9, 10];  inout c: f32[3, 2, 10, 10]
          c[t,s,j,i] add= multiply(b[s,k,j], a[s,t,2*i,8-k]) init f32(0.0) for k<9, i<10, j<10, s<2, t<3
        }
        """,
        """region() {
          in a: f32[2, 3, 20, 9];  in b: f32[2, 9, 10];  inout c: f32[3, 2, 10, 10]
          call blas.matmul(b[i,l,k for i<2, j<1, k<10, l<9], a[i,j,2*l,8-k for i<2, j<3, k<9, l<10]) -> """
        """c[j,i,k,l for i<2, j<3, k<10, l<10]
        }
        """,
    )


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
        "d is no matrix product: it is a product with a vector",
        "w is no matrix product: it is a product with a vector",
        "too small",
        "no product of int64",
        "does not start from zero",
        "diagonal",
    ):
        assert words in text
