"""The interpreter against a point-by-point evaluation, and what it promises beyond the values."""

from contextlib import contextmanager
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from ir_regions import assert_agree, cases, make_case

from dcarray.ir import interp
from dcarray.ir.dims import evaluate
from dcarray.ir.nodes import Apply, Branch, Call, Compute, Const, Gather, Iota, Load, Loop, Nest, Size, While
from dcarray.ir.ops import CALLS, OPS, const_value
from dcarray.ir.text import parse
from dcarray.ir.verify import verify

F8 = np.dtype(np.float64)


# ---- the slow evaluation ----------------------------------------------------------------------------
class Slow:
    """Every statement point by point, from the definitions."""

    def __init__(self, region, memory, values):
        self.values = dict(values)
        self.env = dict(memory)
        for a in region.arrays:
            if a.name in self.env:
                continue
            shape = self.shape(a.shape)
            if a.base is None:
                self.env[a.name] = np.empty(shape, a.dtype)
            else:
                self.env[a.name] = self.env[a.base].reshape(-1).view(a.dtype).reshape(shape)
        for stmt in region.body:
            self.run(stmt)

    def shape(self, dims):
        return tuple(evaluate(n, self.values) for n in dims)

    def place(self, window, point):
        return tuple(
            evaluate(ix.offset, self.values)
            + (0 if ix.axis is None else evaluate(ix.stride, self.values) * point[ix.axis])
            for ix in window.index
        )

    def value(self, node, point, memo):
        if node in memo:
            return memo[node]
        match node:
            case Load(window, dtype):
                made = self.env[window.array][self.place(window, point)]
            case Gather(window, index, _):
                made = self.env[window.array][tuple(int(self.value(i, point, memo)) for i in index)]
            case Const():
                made = const_value(node)
            case Size(dim, dtype):
                made = np.array(evaluate(dim, self.values)).astype(dtype)[()]
            case Iota(axis, dtype):
                made = np.array(point[axis]).astype(dtype)[()]
            case Apply("cast", (arg,), dtype):
                x = self.value(arg, point, memo)
                made = (x.real if x.dtype.kind == "c" and dtype.kind not in "cb" else x).astype(dtype)
            case Apply(op, args, dtype):
                # one-element arrays: the loops of arrays, not those of scalars
                made = OPS[op].reference(*[np.array([self.value(a, point, memo)]) for a in args])[0]
                assert made.dtype == dtype
        memo[node] = made
        return made

    def run(self, stmt):
        match stmt:
            case Compute():
                self.compute(stmt)
            case Call():
                views = [self.points(w) for w in stmt.reads]
                out = self.points(stmt.writes[0])
                CALLS[stmt.op].reference((out,), tuple(views), dict(stmt.attrs))
                w = stmt.writes[0]
                for point in product(*map(range, self.shape(w.shape))):
                    self.env[w.array][self.place(w, point)] = out[point]
            case Nest(body):
                for inner in body:
                    self.run(inner)
            case Loop(var, bounds, body):
                for k in range(*self.shape(bounds)):
                    self.values[var] = k
                    for inner in body:
                        self.run(inner)
            case While(cond, body):
                while self.value(cond, (), {}):
                    for inner in body:
                        self.run(inner)
            case Branch(cond, then, orelse):
                for inner in then if self.value(cond, (), {}) else orelse:
                    self.run(inner)

    def points(self, window):
        out = np.empty(self.shape(window.shape), self.env[window.array].dtype)
        for point in np.ndindex(out.shape):
            out[point] = self.env[window.array][self.place(window, point)]
        return out

    def compute(self, stmt):
        target = self.env[stmt.target.array]
        domain = list(product(*map(range, self.shape(stmt.target.shape))))
        body = [self.value(stmt.body, point, {}) for point in domain]
        if stmt.combine is None:
            for point, x in zip(domain, body, strict=True):
                target[self.place(stmt.target, point)] = x
            return
        if stmt.init is not None:
            shape = self.shape(stmt.target.shape)
            used = {ix.axis for ix in stmt.target.index}
            for point in product(*(range(n if k in used else 1) for k, n in enumerate(shape))):
                target[self.place(stmt.target, point)] = self.value(stmt.init, point, {})
        for point, x in zip(domain, body, strict=True):
            place = self.place(stmt.target, point)
            target[place] = OPS[stmt.combine].reference(np.array([target[place]]), np.array([x]))[0]


def check(case):
    if not case.values:  # with symbols, what holds for these values need not be provable
        verify(case.region)
    with np.errstate(all="ignore"):
        given_memory = case.memory()
        got = interp.run(case.region, given_memory, case.values)
        want = Slow(case.region, case.memory(), case.values).env
    assert_agree(got, want, zero_signs=case.zero_signs)
    for array in case.region.arrays:  # what exists is changed in place
        if array.role == "inout":
            assert got[array.name] is given_memory[array.name]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(cases())
def test_agrees_point_by_point(case):
    check(case)


@settings(max_examples=16, deadline=None, derandomize=True)
@given(cases(symbolic=True))
def test_agrees_with_symbols(case):
    check(case)


def test_floating_point_sums_are_numpys_own():
    region = parse(
        "region() {\n in A: f32[300, 1000]; out r: f32[300]; out c: f32[1000]\n"
        "out t: f32[]; out k: f32[300, 1]\n"
        "r[i] add= A[i,j] init f32(0.0) for i<300, j<1000\n"
        "c[j] add= A[i,j] init f32(0.0) for i<300, j<1000\n"
        "t[] add= A[i,j] init f32(0.0) for i<300, j<1000\n"
        "k[i,0] add= multiply(A[i,j], A[i,j]) init f32(0.0) for i<300, j<1000\n}"
    )
    a = np.random.default_rng(1).standard_normal((300, 1000)).astype(np.float32)
    for memory in (a, np.asfortranarray(a), a[::-1]):
        out = interp.run(region, {"A": memory})
        assert np.array_equal(out["r"], memory.sum(1))
        assert np.array_equal(out["c"], memory.sum(0))
        assert np.array_equal(out["t"], memory.sum())
        assert np.array_equal(out["k"], (memory * memory).sum(1, keepdims=True))


# ---- aliasing ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(("statement", "numpy"), [
    ("a[i+1] = add(a[i], b[i+1]) for i<7", lambda a, b: a[:-1] + b[1:]),
    ("a[i+1] = a[i] for i<7", lambda a, b: a[:-1]),
    ("a[i+1] = cast:f64(a[i]) for i<7", lambda a, b: a[:-1]),
    ("a[i+1] = where(less(a[i], b[i]), a[i], 0.0) for i<7", lambda a, b: np.where(a < b, a, 0.0)[:-1]),
    ("a[i+1] = negative(add(a[i], a[-i+7])) for i<7", lambda a, b: -(a[:-1] + a[:0:-1])),
])  # fmt: skip
def test_the_right_side_is_read_first(statement, numpy):
    region = parse(f"region() {{\n inout a: f64[8]; in b: f64[8]\n {statement}\n}}")
    a, b = np.arange(8.0), np.arange(8.0)[::-1] - 3
    want = a.copy()
    want[1:] = numpy(a.copy(), b)
    interp.run(region, {"a": a, "b": b})
    assert np.array_equal(a, want)


def test_an_operand_that_something_still_views_is_not_overwritten():
    region = parse(
        "region() {\n in z: c128[5]; out o: f64[5]\n"
        "o[i] = add($1, real(square($0))) with $0 = negative(z[i]), $1 = real($0) for i<5\n}"
    )
    z = np.arange(5) + 1j
    got = interp.run(region, {"z": z})["o"]
    assert np.array_equal(got, (-z).real + np.square(-z).real)


def test_negative_in_place_with_a_large_stride():
    region = parse("region() {\n inout a: f64[5]\n a[i] = negative(a[i]) for i<5\n}")
    a = np.zeros(40)[::8]
    a[:] = range(5)
    interp.run(region, {"a": a})
    assert a.tolist() == [-0.0, -1, -2, -3, -4]


def test_bases():
    region = parse(
        "region() {\n inout a: f64[2, 6]; inout v: f64[4] strides[3] base a\n"
        "temp t: f64[4]; temp u: f64[2, 2] base t; out o: f64[2]\n"
        "v[i] = 7.0 for i<4\n t[i] = a[0,i] for i<4\n o[i] = add(u[i,0], u[0,i]) for i<2\n}"
    )
    a = np.arange(12.0).reshape(2, 6)
    out = interp.run(region, {"a": a, "v": a.reshape(-1)[::3]})
    assert a[:, ::3].tolist() == [[7, 7], [7, 7]]
    assert out["o"].tolist() == [14.0, 3.0]


# ---- the rest of the contract -----------------------------------------------------------------------
def test_around_wraps_each_statement():
    region = parse("region() {\n inout a: f64[2]\n a[i] = divide(a[i], 0.0) for i<2\n a[0] = 1.0\n}")
    first, second = region.body
    from dataclasses import replace

    region = replace(region, body=(replace(first, loc=3), replace(second, loc=4)))
    seen = []

    @contextmanager
    def around(loc):
        seen.append(loc)
        with np.errstate(divide="raise" if loc == 3 else "ignore"):
            yield

    with pytest.raises(FloatingPointError, match="divide by zero encountered in divide"):
        interp.run(region, {"a": np.ones(2)}, around=around)
    assert seen == [3]


def test_loops_and_conditions():
    region = parse(
        "region(N: int>=1) {\n inout s: f64[N]; inout n: i64[]\n"
        "for k in range(1, N, 1) {\n s[k] = add(s[k], s[k-1])\n }\n"
        "while less(n[], 10) {\n n[] = multiply(n[], 3)\n }\n"
        "if greater(n[], 20) {\n s[0] = -1.0\n } else {\n s[0] = -2.0\n }\n}"
    )
    s = np.ones(5)
    out = interp.run(region, {"s": s, "n": np.array(1)}, {"N": 5})
    assert s.tolist() == [-1, 2, 3, 4, 5]
    assert out["n"] == 27


def test_a_fold_over_nothing():
    region = parse(
        "region(N: int>=0) {\n in A: f64[3, N]; inout s: f64[3]; out t: f64[3]\n"
        "s[i] maximum= A[i,j] for i<3, j<N\n t[i] add= A[i,j] init s[i] for i<3, j<N\n}"
    )
    s = np.arange(3.0)
    out = interp.run(region, {"A": np.empty((3, 0)), "s": s}, {"N": 0})
    assert s.tolist() == [0, 1, 2] and out["t"].tolist() == [0, 1, 2]


def test_out_arrays_of_the_caller_are_filled():
    region = parse("region() {\n in a: f64[4]; out o: f64[4]\n o[i] = a[-i+3] for i<4\n}")
    o = np.zeros(8)[::2]
    assert interp.run(region, {"a": np.arange(4.0), "o": o})["o"] is o
    assert o.tolist() == [3, 2, 1, 0]


def test_results_do_not_share_memory_with_inputs():
    region = parse(
        "region() {\n in a: f64[4]; out o: f64[4]; out p: f64[4]\n"
        "o[i] = a[i] for i<4\n p[i] = o[i] for i<4\n}"
    )
    a = np.arange(4.0)
    out = interp.run(region, {"a": a})
    assert not np.shares_memory(out["o"], a) and not np.shares_memory(out["p"], out["o"])


def test_memory_is_checked():
    region = parse("region() {\n in a: f64[4]; out o: f64[4]\n o[i] = a[i] for i<4\n}")
    with pytest.raises(ValueError, match="a was not given"):
        interp.run(region, {})
    with pytest.raises(ValueError, match="but float32"):
        interp.run(region, {"a": np.zeros(4, np.float32)})


def test_reaching_out_is_an_error():
    region = parse("region() {\n in a: f64[4]; out o: f64[4]\n o[i] = a[i+1] for i<4\n}")
    with pytest.raises(IndexError):
        interp.run(region, {"a": np.zeros(4)})


def test_temporaries_go_away_after_their_last_use(monkeypatch):
    n = 100_000
    lines = [f"t{k + 1}[i] = add(t{k}[i], 1.0) for i<{n}" for k in range(20)]
    temps = "; ".join(f"temp t{k}: f64[{n}]" for k in range(1, 20))
    region = parse(f"region() {{\n in t0: f64[{n}]; {temps}; out t20: f64[{n}]\n" + "\n".join(lines) + "\n}")
    import tracemalloc

    a = np.zeros(n)
    tracemalloc.start()
    out = interp.run(region, {"t0": a})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (out["t20"] == 20).all()
    assert peak < 3 * a.nbytes


def test_an_interpreter_is_reusable():
    case = make_case(11, 6)
    machine = interp.Interpreter(case.region)
    with np.errstate(all="ignore"):
        first = machine.run(case.memory())
        second = machine.run(case.memory())
    assert_agree(first, second)
