"""What users rely on: well-known statements become the few loops that one would write by hand.

The regions are as recorded: every call makes an array, an assignment copies it, scalars are arrays
without axes.
"""

from collections.abc import Callable

from dcarray.ir.nodes import Nest, Region, Stmt
from dcarray.ir.passes import Log
from dcarray.ir.passes.cpu.pipeline import CPU
from dcarray.ir.text import dump, parse

Same = Callable[[Region, Region], None]


def run(text: str, same_meaning: Same) -> tuple[Region, Log]:
    before, log = parse(text), Log()
    after = CPU.run(before, log, debug=True)
    same_meaning(before, after)
    return after, log


def temps(region: Region) -> list[str]:
    return [array.name for array in region.arrays if array.role == "temp"]


def statements(stmt: Stmt) -> int:
    return len(stmt.body) if isinstance(stmt, Nest) else 1


def test_five_point_stencil(check: Callable[..., Log]) -> None:
    check(
        lambda region, log: CPU.run(region, log, debug=True),
        """region(N: int>=3, M: int>=3) {
          in A: f64[N, M];  inout B: f64[N, M];  in c: f64[]
          temp t1: f64[N-2, M-2];  temp t2: f64[N-2, M-2];  temp t3: f64[N-2, M-2];  temp t4: f64[N-2, M-2]
          temp t5: f64[N-2, M-2]
          t1[i,j] = add(A[i+1,j+1], A[i+1,j]) for i<N-2, j<M-2
          t2[i,j] = add(t1[i,j], A[i+1,j+2]) for i<N-2, j<M-2
          t3[i,j] = add(t2[i,j], A[i+2,j+1]) for i<N-2, j<M-2
          t4[i,j] = add(t3[i,j], A[i,j+1]) for i<N-2, j<M-2
          t5[i,j] = multiply(c[], t4[i,j]) for i<N-2, j<M-2
          B[i+1,j+1] = t5[i,j] for i<N-2, j<M-2
        }
        """,
        """region(N: int>=3, M: int>=3) {
          in A: f64[N, M];  inout B: f64[N, M];  in c: f64[]
          B[i+1,j+1] = multiply(c[], add(add(add(add(A[i+1,j+1], A[i+1,j]), A[i+1,j+2]), A[i+2,j+1]),
            A[i,j+1])) for i<N-2, j<M-2
        }
        """.replace("\n            A", " A"),
    )


FDTD = """region() {
  inout ex: f64[9, 9];  inout ey: f64[9, 9];  inout hz: f64[9, 9];  in f: f64[];  in c: f64[];  in d: f64[]
  temp t1: f64[8, 9];  temp t2: f64[8, 9];  temp t3: f64[9, 8];  temp t4: f64[9, 8]
  temp t5: f64[8, 8];  temp t6: f64[8, 8];  temp t7: f64[8, 8];  temp t8: f64[8, 8]
  ey[0,j] = f[] for j<9
  t1[i,j] = subtract(hz[i+1,j], hz[i,j]) for i<8, j<9
  t2[i,j] = multiply(c[], t1[i,j]) for i<8, j<9
  ey[i+1,j] = subtract(ey[i+1,j], t2[i,j]) for i<8, j<9
  t3[i,j] = subtract(hz[i,j+1], hz[i,j]) for i<9, j<8
  t4[i,j] = multiply(c[], t3[i,j]) for i<9, j<8
  ex[i,j+1] = subtract(ex[i,j+1], t4[i,j]) for i<9, j<8
  t5[i,j] = subtract(ex[i,j+1], ex[i,j]) for i<8, j<8
  t6[i,j] = add(t5[i,j], ey[i+1,j]) for i<8, j<8
  t7[i,j] = subtract(t6[i,j], ey[i,j]) for i<8, j<8
  t8[i,j] = multiply(d[], t7[i,j]) for i<8, j<8
  hz[i,j] = subtract(hz[i,j], t8[i,j]) for i<8, j<8
}
"""


def test_fdtd_2d(same_meaning: Same) -> None:
    after, _ = run(FDTD, same_meaning)
    assert len(after.body) == 4
    assert not temps(after)


HDIFF = """region() {
  in f: f64[12, 11, 5];  in co: f64[8, 7, 5];  inout res: f64[8, 7, 5];  in c4: f64[];  in zero: f64[]
  temp n: f64[10, 9, 5];  temp p1: f64[10, 9, 5];  temp p2: f64[10, 9, 5];  temp p3: f64[10, 9, 5]
  temp lap: f64[10, 9, 5]
  temp rx: f64[9, 7, 5];  temp dx: f64[9, 7, 5];  temp mx: f64[9, 7, 5];  temp gx: bool[9, 7, 5]
  temp flx: f64[9, 7, 5]
  temp ry: f64[8, 8, 5];  temp dy: f64[8, 8, 5];  temp my: f64[8, 8, 5];  temp gy: bool[8, 8, 5]
  temp fly: f64[8, 8, 5]
  temp s1: f64[8, 7, 5];  temp s2: f64[8, 7, 5];  temp s3: f64[8, 7, 5];  temp s4: f64[8, 7, 5]
  temp s5: f64[8, 7, 5]
  n[i,j,k] = multiply(c4[], f[i+1,j+1,k]) for i<10, j<9, k<5
  p1[i,j,k] = add(f[i+2,j+1,k], f[i,j+1,k]) for i<10, j<9, k<5
  p2[i,j,k] = add(p1[i,j,k], f[i+1,j+2,k]) for i<10, j<9, k<5
  p3[i,j,k] = add(p2[i,j,k], f[i+1,j,k]) for i<10, j<9, k<5
  lap[i,j,k] = subtract(n[i,j,k], p3[i,j,k]) for i<10, j<9, k<5
  rx[i,j,k] = subtract(lap[i+1,j+1,k], lap[i,j+1,k]) for i<9, j<7, k<5
  dx[i,j,k] = subtract(f[i+2,j+2,k], f[i+1,j+2,k]) for i<9, j<7, k<5
  mx[i,j,k] = multiply(rx[i,j,k], dx[i,j,k]) for i<9, j<7, k<5
  gx[i,j,k] = greater(mx[i,j,k], zero[]) for i<9, j<7, k<5
  flx[i,j,k] = where(gx[i,j,k], zero[], rx[i,j,k]) for i<9, j<7, k<5
  ry[i,j,k] = subtract(lap[i+1,j+1,k], lap[i+1,j,k]) for i<8, j<8, k<5
  dy[i,j,k] = subtract(f[i+2,j+2,k], f[i+2,j+1,k]) for i<8, j<8, k<5
  my[i,j,k] = multiply(ry[i,j,k], dy[i,j,k]) for i<8, j<8, k<5
  gy[i,j,k] = greater(my[i,j,k], zero[]) for i<8, j<8, k<5
  fly[i,j,k] = where(gy[i,j,k], zero[], ry[i,j,k]) for i<8, j<8, k<5
  s1[i,j,k] = subtract(flx[i+1,j,k], flx[i,j,k]) for i<8, j<7, k<5
  s2[i,j,k] = add(s1[i,j,k], fly[i,j+1,k]) for i<8, j<7, k<5
  s3[i,j,k] = subtract(s2[i,j,k], fly[i,j,k]) for i<8, j<7, k<5
  s4[i,j,k] = multiply(co[i,j,k], s3[i,j,k]) for i<8, j<7, k<5
  s5[i,j,k] = subtract(f[i+2,j+2,k], s4[i,j,k]) for i<8, j<7, k<5
  res[i,j,k] = s5[i,j,k] for i<8, j<7, k<5
}
"""


def test_horizontal_diffusion(same_meaning: Same) -> None:
    after, _ = run(HDIFF, same_meaning)
    assert len(after.body) == 1
    assert not temps(after)


def test_row_softmax(check: Callable[..., Log]) -> None:
    check(
        lambda region, log: CPU.run(region, log, debug=True),
        """region() {
          in x: f64[9, 7];  out y: f64[9, 7]
          temp m: f64[9, 1];  temp d: f64[9, 7];  temp e: f64[9, 7];  temp s: f64[9, 1]
          m[i,0] maximum= x[i,j] init f64(-inf) for i<9, j<7
          d[i,j] = subtract(x[i,j], m[i,0]) for i<9, j<7
          e[i,j] = rint(exp(d[i,j])) for i<9, j<7
          s[i,0] add= e[i,j] init 0.0 for i<9, j<7
          y[i,j] = divide(e[i,j], s[i,0]) for i<9, j<7
        }
        """,
        """region() {
          in x: f64[9, 7];  out y: f64[9, 7]
          temp m: f64[9, 1];  temp e: f64[9, 7];  temp s: f64[9, 1]
          m[i,0] maximum= x[i,j] init f64(-inf) for i<9, j<7
          nest {
            e[i,j] = rint(exp(subtract(x[i,j], m[i,0]))) for i<9, j<7
            s[i,0] add= e[i,j] init 0.0 for i<9, j<7
          }
          y[i,j] = divide(e[i,j], s[i,0]) for i<9, j<7
        }
        """,
    )


def test_matrix_product_with_an_epilogue(same_meaning: Same) -> None:
    after, _ = run(
        """region() {
          in a: f64[9, 8];  in b: f64[8, 10];  in c: f64[10];  out y: f64[9, 10];  temp t: f64[9, 10]
          call blas.matmul(a, b) -> t
          y[i,j] = add(t[i,j], c[j]) for i<9, j<10
        }
        """,
        same_meaning,
    )
    assert len(after.body) == 2


def test_chain_of_slices(same_meaning: Same) -> None:
    after, _ = run(
        """region() {
          in x: f64[40];  out y: f64[3];  temp t: f64[20];  temp u: f64[10]
          t[i] = x[39-2*i] for i<20
          u[i] = t[2*i] for i<10
          y[i] = add(u[i+1], u[3*i]) for i<3
        }
        """,
        same_meaning,
    )
    assert "y[i] = add(x[-4*i+35], x[-12*i+39]) for i<3" in dump(after)
    assert not temps(after)


def test_updates_that_overlap_keep_their_temporary(same_meaning: Same) -> None:
    after, log = run(
        """region() {
          inout a: f64[9];  in b: f64[9];  inout q: f64[9, 9];  temp t: f64[8];  temp r: f64[9]
          temp s: f64[9, 9]
          t[i] = add(a[i], b[i+1]) for i<8
          a[i+1] = t[i] for i<8
          r[i] = a[8-i] for i<9
          a[i] = r[i] for i<9
          s[i,j] = add(q[i,j], q[j,i]) for i<9, j<9
          q[i,j] = s[i,j] for i<9, j<9
        }
        """,
        same_meaning,
    )
    assert temps(after) == ["t", "r", "s"]
    assert "a is written at other points than it is read for t" in str(log)


def test_standardise_reads_three_times(same_meaning: Same) -> None:
    after, _ = run(
        """region() {
          in x: f64[9, 7];  in n: f64[];  out y: f64[9, 7];  temp s: f64[];  temp m: f64[]
          temp d: f64[9, 7];  temp q: f64[9, 7];  temp v: f64[];  temp w: f64[];  temp r: f64[]
          s[] add= x[i,j] init 0.0 for i<9, j<7
          m[] = rint(divide(s[], n[]))
          d[i,j] = subtract(x[i,j], m[]) for i<9, j<7
          q[i,j] = multiply(d[i,j], d[i,j]) for i<9, j<7
          v[] add= q[i,j] init 0.0 for i<9, j<7
          w[] = divide(v[], n[])
          r[] = sqrt(w[])
          y[i,j] = divide(d[i,j], r[]) for i<9, j<7
        }
        """,
        same_meaning,
    )
    assert len(after.body) == 3
    assert temps(after) == ["s", "v"]


def test_growing_window_with_symbols(same_meaning: Same) -> None:
    after, _ = run(
        """region(N: int>=1, K: int>=0) where K<=N-1 {
          inout y: f64[N];  in a: f64[N];  in x: f64[N];  temp t: f64[K]
          t[i] = multiply(a[K], x[i]) for i<K
          y[i] = add(y[i], t[i]) for i<K
        }
        """,
        same_meaning,
    )
    assert len(after.body) == 1
    assert not temps(after)


def test_time_steps_in_a_loop(same_meaning: Same) -> None:
    after, _ = run(
        """region(N: int>=3) {
          inout A: f64[N];  inout B: f64[N];  in c: f64[];  temp t: f64[N-2];  temp u: f64[N-2]
          for k in range(0, 4, 1) {
            t[i] = add(A[i], A[i+2]) for i<N-2
            u[i] = multiply(t[i], c[]) for i<N-2
            B[i+1] = u[i] for i<N-2
            t[i] = add(B[i], B[i+2]) for i<N-2
            A[i+1] = t[i] for i<N-2
          }
        }
        """,
        same_meaning,
    )
    assert [len(stmt.body) for stmt in after.body if hasattr(stmt, "body")] == [2]
    assert not temps(after)
