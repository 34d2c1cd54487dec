"""The text form: golden, and there and back."""

import numpy as np
import pytest
from hypothesis import given, settings
from ir_regions import cases

from dcarray.ir.nodes import Apply, Array, Compute, Const, Load, Region
from dcarray.ir.ops import const
from dcarray.ir.text import ParseError, dump, parse
from dcarray.ir.windows import identity

quick = settings(max_examples=60, deadline=None, derandomize=True)

SAMPLE = """\
region(N: int>=3) {
  in A: f64[N, N];  temp t: f64[N-2, N-2];  out s: f64[N]
  t[i,j] = multiply(0.25, add(A[i,j+1], A[i+2,j+1])) for i<N-2, j<N-2
  A[i+1,j+1] = t[i,j] for i<N-2, j<N-2
  s[i] add= A[i,j] init 0.0 for i<N, j<N
  t[i,j] scan j maximum= A[i,j] init -inf for i<N-2, j<N-2
}
"""

EVERYTHING = """\
region(N: int>=3, M: int>=0) where N <= M, M != 2*N+1 {
  in A: f64[N, N];  inout s: f64[N];  in c: f64[];  inout q: i32[40]
  inout z: c64[((N+1)//2), 10] strides[1, N+2] base q at 'gpu:0' layout ('x', 2)
  s[-i+N-1] = add($0, multiply($0, where(less($0, size:f64(N)), -0.0, c[]))) with $0 = exp(A[i,i]) for i<N
  q[-2*i+39] = cast:i32(add(cast:f32(A[0,1]), f32(0.1))) for i<20
  s[i] = gather(A, iota(i), cast:i64(q[0])) for i<N
  s[0] = nan
  nest {
    s[i] = inf for i<N
    s[i] multiply= bits:f64(0x7ff8000000000001) for i<N
  }
  for k in range(0, N, 1) {
    s[i] = A[k,i] for i<k+1
    while less(s[k], 1.0) {
      s[k] = add(s[k], 0.5)
    }
    if true {
      call blas.matmul(A, A[j,i for i<N, j<N]) -> z {alpha: 1.0, t: 'no', x: None, d: dim(N-1), q: (1, (2,))}
    } else {
      z[0,i] = c64(1.0, -0.0) for i<10
    }
  }
}
"""


@pytest.mark.parametrize("text", [SAMPLE, EVERYTHING])
def test_golden(text):
    assert dump(parse(text)) == text


def test_layout_of_the_text_is_free():
    spread = SAMPLE.replace("[i,j]", "[ i , j ]").replace(";  ", "\n ").replace("add(A", "add(\n   A")
    assert parse("# a comment\n" + spread) == parse(SAMPLE)


def test_axis_names_avoid_the_names_of_the_region():
    region = parse("region(i: int>=1) {\n in j: f64[i]; out o: f64[i]\n o[a] = j[a] for a<i\n}")
    assert "o[k] = j[k] for k<i" in dump(region)
    assert parse(dump(region)) == region


@quick
@given(cases())
def test_round_trip(case):
    assert parse(dump(case.region)) == case.region


@settings(max_examples=16, deadline=None, derandomize=True)
@given(cases(symbolic=True))
def test_round_trip_with_symbols(case):
    assert parse(dump(case.region)) == case.region


@pytest.mark.parametrize("char", "?bhilBHILefdFD")
def test_constants_keep_their_bits(char):
    dtype = np.dtype(char)
    rng = np.random.default_rng(0)
    patterns = [rng.integers(0, 256, dtype.itemsize, dtype=np.uint8).tobytes() for _ in range(200)]
    if char == "?":
        patterns = [b"\0", b"\1"]
    values = [0, 1] + ([-0.0, np.nan, np.inf, -np.inf, 0.1, 1e-5] if dtype.kind in "fc" else [])
    with np.errstate(over="ignore"):
        nodes = [Const(bits, dtype) for bits in patterns] + [const(value, dtype) for value in values]
    out = Array("o", dtype, (), "out")
    region = Region((), (out,), tuple(Compute(identity(out), node) for node in nodes))
    again = parse(dump(region))
    for old, new in zip(region.body, again.body, strict=True):
        assert old.body is new.body


def test_shared_and_deep_expressions_stay_small():
    a, o = Array("a", np.dtype("f8"), (3,), "in"), Array("o", np.dtype("f8"), (3,), "out")
    node = Load(identity(a), a.dtype)
    for _ in range(60):
        node = Apply("add", (node, node), a.dtype)
    for _ in range(2000):
        node = Apply("negative", (node,), a.dtype)
    region = Region((), (a, o), (Compute(identity(o), node),))
    text = dump(region)
    assert len(text) < 60_000
    assert parse(text) == region


@pytest.mark.parametrize(("old", "new", "message"), [
    ("multiply(", "multiplied(", "line 3: no operation 'multiplied'"),
    ("A[i,j+1]", "B[i,j+1]", "line 3: no array 'B' is declared"),
    ("f64[N-2", "f65[N-2", "line 2: a dtype expected"),
    ("A[i,j+1]", "A[i,j+l]", "line 3: a dimension expected"),
    ("A[i,j+1]", "A[i,j+i]", "line 3: an index with one axis expected"),
    ("0.25", "f32(0.25)", "line 3: multiply has no loop"),
    ("init 0.0", "init $1", "is not defined before its use"),
    ("}", "", "expected"),
    ("}", "} }", "the end expected"),
    ("add(", "add(?", "unexpected '?'"),
])  # fmt: skip
def test_mistakes_are_named(old, new, message):
    with pytest.raises(ParseError, match=message.replace("?", r"\?")):
        parse(SAMPLE.replace(old, new))
