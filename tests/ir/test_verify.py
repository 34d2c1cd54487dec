"""Each rule of the verifier, by a region that breaks it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from ir_regions import cases

from dcarray.ir.analysis.effects import nest_conflict
from dcarray.ir.dims import Guards, symbol
from dcarray.ir.nodes import Apply, Array, Call, Compute, Gather, Index, Load, Nest, Region, Size, Window
from dcarray.ir.ops import const
from dcarray.ir.text import parse
from dcarray.ir.verify import VerifyError, verify

F8 = np.dtype(np.float64)
HEAD = """region(N: int>=2) {
  in A: f64[6, 6]; inout B: f64[6]; inout V: f64[3] strides[2] base B; in G: i64[6]; in X: f64[N]
  out s: f64[]; out o: f64[6]; temp t: f64[6]; temp u: f64[2, 3] base t; in f: f32[6]; out m: f64[6, 6]
  out p: f64[N]
  %s
}"""


def region(*lines: str) -> Region:
    return parse(HEAD % "\n".join(lines))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(cases(rounding=True))
def test_random_regions_pass(case):
    verify(case.region)


GOOD = [
    ["o[i] = add(B[i], A[i,i]) for i<6"],
    ["B[i] = multiply(B[i], 2.0) for i<6"],
    ["B[i] = B[i+3] for i<3"],
    ["B[2*i] = B[2*i+1] for i<3"],
    ["s[] add= A[i,j] init 0.0 for i<6, j<6"],
    ["B[i] add= A[i,j] for i<6, j<6"],
    ["t[i] = B[i] for i<6", "o[i] = u[0,0] for i<6"],
    ["o[i] = gather(B, remainder(G[i], 6)) for i<6"],
    ["p[i] = X[-i+N-1] for i<N"],
    ["for k in range(0, N-1, 1) {", "p[k] = X[k+1]", "p[k+1] = p[k]", "}"],
    ["for k in range(5, 0, -1) {", "B[k] = B[k-1]", "}"],
    ["for k in range(1, 6, 1) {", "B[i] = add(B[i], A[k,i]) for i<k", "}"],
    ["if less(B[0], 1.0) {", "B[0] = 1.0", "}"],
    ["nest {", "o[i] = B[i] for i<6", "t[i] = o[i] for i<6", "s[] add= t[i] init 0.0 for i<6", "}"],
    ["call blas.matmul(A, A) -> m"],
    ["o[i] = A[7,i] for i<0"],
]


@pytest.mark.parametrize("lines", GOOD)
def test_good_regions_pass(lines):
    verify(region(*lines))


BAD = [
    (["o[i] = B[i+1] for i<6"], "reaches out"),
    (["o[i] = B[-i+4] for i<6"], "reaches out"),
    (["o[i] = B[6] for i<6"], "reaches out"),
    (["p[i] = X[i+1] for i<N"], "reaches out"),
    (["p[i] = X[i] for i<6"], "is not proved to stay inside"),
    (["for k in range(0, N, 1) {", "p[k] = X[k+1]", "}"], "is not proved to stay inside"),
    (["o[i] = f[i] for i<6"], "a float32 is stored in a float64 array"),
    (["s[] = A[i,j] for i<6, j<6"], "touches every element once"),
    (["o[0] = A[i,0] for i<6"], "touches every element once"),
    (["s[] subtract= A[i,j] init 0.0 for i<6, j<6"], "subtract cannot fold values"),
    (["s[] bitwise_or= A[i,j] init 0.0 for i<6, j<6"], "does not fold float64"),
    (["s[] add= A[i,j] init f32(0.0) for i<6, j<6"], "the start value has the target's dtype"),
    (["s[] add= A[i,j] init B[i] for i<6, j<6"], "does not depend on the folded axes"),
    (["s[] add= A[i,j] init cast:f64(iota(i)) for i<6, j<6"], "does not depend on the folded axes"),
    (["s[] add= A[i,j] for i<6, j<6"], "s is read before it is written"),
    (["s[] = 1.0", "s[] add= s[] init 0.0 for i<6"], "reads s, which it writes"),
    (["B[i+1] = B[i] for i<5"], "the body reads B, which it writes"),
    (["B[i] = B[-i+5] for i<6"], "the body reads B, which it writes"),
    (["B[i] = V[0] for i<6"], "the body reads V, which it writes"),
    (["B[i] = gather(B, G[i]) for i<6"], "the body reads B, which it writes"),
    (["o[i] = t[i] for i<6"], "t is read before it is written"),
    (["t[i] = 0.0 for i<3", "o[i] = t[i+3] for i<3"], "t is read before it is written"),
    (["if less(o[0], 1.0) {", "B[0] = 1.0", "}"], "o is read before it is written"),
    (["A[0,0] = 1.0"], "A is read-only"),
    (["if B[0] {", "B[0] = 1.0", "}"], "a condition is a bool"),
    (["for k in range(0, 4, 0) {", "B[k] = 1.0", "}"], "step is not 0"),
    (["for N in range(0, 4, 1) {", "B[N] = 1.0", "}"], "'N' is declared twice"),
    (["nest {", "o[i] = B[i] for i<6", "t[i] = B[i] for i<3", "}"], "one domain"),
    (["nest {", "o[i] = B[i] for i<6", "t[i] = o[-i+5] for i<6", "}"], "in order"),
    (["nest {", "t[i] = o[i] for i<6", "o[i] = B[i] for i<6", "}"], "read before it is written"),
    (["nest {", "t[i] = B[-i+5] for i<6", "B[i] = A[i,0] for i<6", "}"], "in order"),
    (["nest {", "s[] add= B[i] init 0.0 for i<6", "o[i] = s[] for i<6", "}"], "in order"),
    (["nest {", "B[i] = 0.0 for i<6", "o[i] = V[0] for i<6", "}"], "in order"),
    (["call blas.matmul(A, m) -> m"], "which it also touches as m"),
    (["call blas.nothing(A, A) -> m"], "there is no call"),
]


@pytest.mark.parametrize(("lines", "rule"), BAD)
def test_bad_regions_are_refused(lines, rule):
    with pytest.raises(VerifyError, match=rule):
        verify(region(*lines))


def test_the_message_shows_the_statement():
    with pytest.raises(VerifyError, match=r"in: o\[i\] = B\[i\+1\] for i<6"):
        verify(region("o[i] = B[i+1] for i<6"))


# ---- what the text form cannot say ------------------------------------------------------------------
A4, O4 = Array("a", F8, (4,), "in"), Array("o", F8, (4,), "out")
WHOLE = (Index(0, 1, 0),)


def build(body, *, target=WHOLE, arrays=(A4, O4)):
    return Region((), arrays, (Compute(Window("o", (4,), target), body),))


def load(index=WHOLE, shape=(4,), dtype=F8, name="a"):
    return Load(Window(name, shape, index), dtype)


@pytest.mark.parametrize(("made", "rule"), [
    (build(load(), arrays=(A4, A4, O4)), "'a' is declared twice"),
    (build(load(), arrays=(A4, O4, Array("for", F8, ()))), "cannot be a name"),
    (build(load(), arrays=(A4, O4, Array("z", np.dtype(object), ()))), "has the dtype object"),
    (build(load(), arrays=(A4, O4, Array("z", np.dtype(">f8"), ()))), "has the dtype >f8"),
    (build(load(), arrays=(A4, O4, Array("z", F8, (-1,)))), "negative size"),
    (build(load(), arrays=(A4, O4, Array("z", F8, (symbol("N"),)))), "uses N, which is not declared"),
    (build(load(), arrays=(A4, O4, Array("z", F8, (4,), "in", (1, 1)))), "one stride per axis"),
    (build(load(), arrays=(A4, O4, Array("z", F8, (4,), base="y"))), "the base y"),
    (build(load(), arrays=(A4, O4, Array("z", F8, (4,), base="z"))), "its own base"),
    (build(load(), arrays=(A4, O4, Array("z", F8, (5,), "out", base="o"))), "not as large"),
    (build(load(), arrays=(A4, O4, Array("z", F8, (4,), "in", base="o"))), "differ in role"),
    (build(load(name="q")), "q is not declared"),
    (build(load(shape=(3,))), "another domain"),
    (build(load(dtype=np.dtype("f4"))), "a is no float32"),
    (build(load(index=())), "one index per axis"),
    (build(load(index=(Index(0, 1, None),))), "without an axis has no stride"),
    (build(load(index=(Index(0, 0, 0),))), "with an axis moves"),
    (build(load(index=(Index(0, 1, 3),))), "no axis 3"),
    (build(load(index=(Index(symbol("N")),))), "uses N"),
    (build(Size(symbol("N"), F8)), "uses N"),
    (build(Apply("add", (load(), const(1, "f4")), F8)), "add has no loop"),
    (build(Apply("add", (load(), load()), np.dtype("f4"))), "is float64, not float32"),
    (build(Apply("plus", (load(),), F8)), "no operation 'plus'"),
    (build(Apply("cast", (load(), load()), F8)), "a cast has one argument"),
    (build(Gather(Window("a", (4,), WHOLE), (const(0, "i8"),), F8)), "has no index"),
    (build(Gather(Window("a", (4,), ()), (const(0, "f8"),), F8)), "an index is an integer"),
    (build(Gather(Window("a", (4,), ()), (), F8)), "one index per axis"),
    (
        Region((), (O4,), (Compute(Window("o", (4,), WHOLE), const(0, F8), None, const(0, F8)),)),
        "only a fold",
    ),
    (Region((), (O4,), (Nest(()),)), "a nest needs statements"),
    (Region((), (O4,), (Call("blas.matmul", (), (Window("q", (), ()),)),)), "q is not declared"),
])  # fmt: skip
def test_malformed_regions_are_refused(made, rule):
    with pytest.raises(VerifyError, match=rule):
        verify(made)


# ---- guards -----------------------------------------------------------------------------------------
def test_bounds_may_follow_from_the_guards_of_the_region():
    bad = region("p[i] = X[i] for i<6")
    verify(replace(bad, guards=(symbol("N", 2) >= 6,)))


def test_bounds_may_be_recorded_as_guards():
    bad = region("p[i] = X[i] for i<6", "for k in range(0, 3, 1) {", "p[k+1] = X[2*k]", "}")
    with Guards({"N": 7}) as guards:
        verify(bad)
    assert guards.holds({"N": 6}) and not guards.holds({"N": 5})
    verify(replace(bad, guards=tuple(guards.recorded)))
    with pytest.raises(VerifyError, match="reaches out"), Guards({"N": 5}):
        verify(bad)


def test_nest_conflict_gives_the_windows():
    first, second = region("o[i] = B[i] for i<5", "t[i] = o[i+1] for i<5").body
    reason = nest_conflict((first, second), region())
    assert reason is not None and [w.array for w in reason.windows] == ["o", "o"]


def test_a_loops_variable_means_nothing_after_it():
    """Another loop may have one of the same name: what the first one wrote is not what that comes by now."""
    verify(
        parse(
            """region() {
              out b: f64[4]
              for k in range(0, 3, 1) {
                b[k+1] = 0.0
              }
              for k in range(1, 4, 1) {
                b[k] = add(b[k], 1.0)
              }
            }"""
        )
    )


@pytest.mark.parametrize("statement", [
    "s[i] scan i add= A[i,0] for i<4",
    "s[i] scan i add= A[0,0] init 0.0 for i<4, j<4",
    "s[0] scan i add= A[i,0] init 0.0 for i<4",
])  # fmt: skip
def test_scans_fold_from_a_start_and_write_each_element_once(statement):
    with pytest.raises(VerifyError):
        verify(parse(f"region() {{ in A: f64[4, 4];  out s: f64[4]\n  {statement}\n}}"))
