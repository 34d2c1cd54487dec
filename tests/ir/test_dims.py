"""Dimensions, proofs about them, and guards."""

from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dcarray.ir import dims
from dcarray.ir.dims import Guards, prove_eq, prove_le, prove_lt, prove_nonneg, symbol
from dcarray.ir.relations import compare

N, M = symbol("N", 3), symbol("M")
K = symbol("k", None)
quick = settings(max_examples=48, deadline=None, derandomize=True)


def test_symbols_are_equal_by_name_and_minimum():
    assert symbol("N", 3) == N
    assert hash(symbol("N", 3)) == hash(N)
    assert symbol("N", 2) != N


def test_simplify_gives_ints_back():
    assert type(dims.simplify(N - N + 2)) is int
    assert dims.simplify(2 * (N + 1)) == 2 * N + 2
    import numpy as np

    assert type(dims.simplify(np.int64(3))) is int


def test_substitute_and_evaluate():
    size = 2 * N * (M + 1) - 5
    assert dims.substitute(size, {"N": M}) == dims.simplify(2 * M * M + 2 * M - 5)
    assert dims.substitute(size, {"N": 4, "M": 1}) == 11
    assert dims.evaluate(size, {"N": 4, "M": 1}) == 11
    assert dims.free_symbols(size) == {"N", "M"}
    with pytest.raises(KeyError):
        dims.evaluate(size, {"N": 4})


def test_proofs():
    assert prove_nonneg(N - 3) is True
    assert prove_nonneg(N - 4) is None
    assert prove_nonneg(2 - N) is False
    assert prove_eq(N, M) is None
    assert prove_eq(N, N + 1) is False
    assert prove_eq(2 * (N + M), 2 * N + 2 * M) is True
    assert prove_le(M, N * M) is True
    assert prove_lt(K + 1, N, {"k": (0, N - 2)}) is True
    assert prove_lt(K, N, {"k": (0, N)}) is None
    assert prove_nonneg(K * M, {"k": (0, N)}) is True


def test_proofs_with_floor_min_and_max():
    assert prove_nonneg(N - 1 - 2 * ((N - 1) // 2)) is True
    assert prove_le(N, dims.maximum(N, M)) is True
    assert prove_le(dims.minimum(N, M), M) is True
    assert prove_le(dims.maximum(N, M), N) is None
    assert prove_nonneg(M % 4) is True
    assert prove_lt((M % 4), 4) is True


@quick
@given(st.lists(st.integers(-3, 3), min_size=5, max_size=5))
def test_no_proof_is_refuted_by_an_example(c):
    expr = c[0] + c[1] * N + c[2] * M + c[3] * N * M + c[4] * K
    bounds = {"k": (1, M + 1)}
    values = [
        c[0] + c[1] * n + c[2] * m + c[3] * n * m + c[4] * k
        for n, m in product(range(3, 7), range(4))
        for k in range(1, m + 2)
    ]
    sign = prove_nonneg(expr, bounds)
    assert sign is None or all((value >= 0) == sign for value in values)
    zero = prove_eq(expr, 0, bounds)
    assert zero is None or all((value == 0) == zero for value in values)


@quick
@given(st.lists(st.integers(-3, 3), min_size=6, max_size=6), st.sampled_from(["floor", "Min", "Max", "Mod"]))
def test_no_proof_with_floor_min_or_max_is_refuted_by_an_example(c, kind):
    inner = c[0] + c[1] * N + c[2] * K
    atom = {
        "floor": lambda: inner // 3,
        "Min": lambda: dims.minimum(inner, M),
        "Max": lambda: dims.maximum(inner, M),
        "Mod": lambda: inner % 3,
    }[kind]()
    expr = dims.simplify(c[3] * atom + c[4] * K + c[5])
    bounds = {"k": (1, M + 1)}
    values = [
        dims.evaluate(expr, {"N": n, "M": m, "k": k})
        for n, m in product(range(3, 7), range(4))
        for k in range(1, m + 2)
    ]
    sign = prove_nonneg(expr, bounds)
    assert sign is None or all((value >= 0) == sign for value in values)


def test_guards_record_what_they_assume():
    with Guards({"N": 10, "M": 10}) as guards:
        assert prove_eq(N, M) is True
        assert prove_eq(M, N) is True
        assert prove_le(M, N) is True
        assert prove_lt(M, N + 1) is True
    assert len(guards.recorded) == 1
    assert guards.holds({"N": 5, "M": 5}) and not guards.holds({"N": 5, "M": 6})
    assert prove_eq(N, M) is None  # not active any more


def test_guards_decide_relations():
    guards = Guards({"N": 10}, facts=[compare("<=", M, N)])
    assert guards.decide(True) is True
    assert guards.decide(compare("<=", M, N + 1)) is True
    assert guards.recorded == []
    assert guards.decide(compare("!=", N, 7)) is True
    assert guards.decide(compare(">", N, 20)) is False
    assert guards.holds({"N": 11}) and not guards.holds({"N": 7}) and not guards.holds({"N": 21})
    with pytest.raises(KeyError):
        guards.decide(compare("<=", K, 3))


def test_loop_variables_are_never_guarded():
    with Guards({"N": 10}) as guards:
        assert prove_le(K, N) is None
    assert guards.recorded == []


def test_facts_combine():
    a, b, c = (symbol(s) for s in "abc")
    with dims.assuming([compare("<=", a, b), compare("<=", b, c)]):
        assert prove_le(a, c) is True
        assert prove_le(c, a) is None


def test_show_is_python():
    size = dims.simplify(((N - 1) // 2) * 3 - M + 2)
    assert eval(dims.show(size), {"N": 8, "M": 5}) == 6
    for size in (N // (3 * M), (N - 1) // (2 * dims.maximum(M, N + 1)), N % (2 * M)):
        exact = dims.substitute(size, {"N": 97, "M": 5})
        assert eval(dims.show(size), {"N": 97, "M": 5, "max": max}) == exact
    assert dims.show(N - 2) == "N-2"
    assert dims.show(compare("<=", N, M)) == "N <= M"


def test_a_guard_follows_its_hints_however_many_facts_there_are() -> None:
    n = dims.symbol("n", 2)
    guards = dims.Guards({"n": 50})
    with guards:
        for k in range(100):
            assert dims.prove_nonneg(n - k) is (k <= 50)
            assert dims.prove_nonneg(n - k) is (k <= 50)  # and says so again
    assert guards.holds({"n": 50}) and not guards.holds({"n": 49}) and not guards.holds({"n": 51})


def test_ranging() -> None:
    i, j, n = dims.symbol("i", None), dims.symbol("j", None), dims.symbol("n", 2)
    assert dims.prove_le(j, n) is None
    with dims.ranging("i", (1, n, 1)), dims.ranging("j", (i, 0, -1)):
        assert dims.prove_lt(j, n) is True
        assert dims.prove_lt(0, j) is True
        assert dims.prove_eq(j, n) is False
        assert dims.prove_nonneg(j, {}) is None
    assert dims.prove_le(j, n) is None
    assert dims.loop_range(0, n, n - n + 2) == (0, n - 1)


def test_a_strip_ends_with_what_is_cut():
    s, n = symbol("s", None), symbol("N", 1)
    height = dims.minimum(8, n - s)
    with dims.ranging("s", (0, n, 1)):
        assert prove_nonneg(height - 1) is True
        assert prove_nonneg(n - s - height) is True
        assert prove_nonneg(n - s - height - 1) is None


def test_count_and_slope():
    n, k = symbol("N", 1), symbol("k", None)
    assert dims.count((7, 1, -2)) == 3 and dims.count((0, n, 1)) == n and dims.count((n - 1, -1, -1)) == n
    assert dims.count((0, n - 2, 1)) is None and dims.count((0, n, 2)) is None
    assert dims.slope(3 - 2 * k, "k") == -2 and dims.slope(n * k, "k") == n
    assert dims.slope(k * k, "k") is None and dims.slope(n, "k") == 0


def test_symbols_that_equal_others() -> None:
    """Many equalities, of which each proof needs several, and what a quotient's sign says of its dividend."""
    names = [symbol(f"n{k}", -100) for k in range(8)]
    size = symbol("N")
    facts = [compare("==", a, b + 1) for a, b in pairwise([*names, size])]
    with dims.assuming(facts):
        assert prove_eq(names[0], size + 8) is True and prove_nonneg(names[0] - 8) is True
        assert prove_nonneg(names[3] * names[5] - 4) is True
        assert prove_eq(names[0], size) is False and prove_nonneg(names[0] - 9) is None
        with dims.assuming([compare("==", symbol("M"), names[2])]), dims.between({"i": (0, names[2] - 1)}):
            assert prove_nonneg(symbol("M") - 1 - symbol("i", None)) is True
            assert prove_nonneg(symbol("M") - 2 - symbol("i", None)) is None
    with dims.assuming(facts), dims.between({"i": (None, names[2] - 1)}):  # of a loop with a step
        assert prove_nonneg(size + 5 - symbol("i", None)) is True and prove_nonneg(symbol("i", None)) is None
    with dims.assuming([compare(">=", (size + 1) // 3, 1)]):
        assert prove_nonneg(size - 2) is True and prove_nonneg(size - 3) is None


def test_the_span_of_an_expression() -> None:
    n, m = symbol("n"), symbol("m", None)
    ranges = {"n": (0, 9), "m": (-3, 5)}
    cases = [n * m - 2 * n, (n + m) // 4, dims.maximum(n, m) + dims.minimum(m, 2), (3 * m) % 5 + n, n * n * m]
    for e in cases:
        values = [dims.evaluate(e, {"n": a, "m": b}) for a in range(10) for b in range(-3, 6)]
        found = dims.span(e, ranges)
        assert found is not None and found[0] <= min(values) and max(values) <= found[1]
    assert (
        dims.span(n + symbol("k"), ranges) is None
        and dims.span(n // m, ranges) is None
        and dims.span(7, {}) == (7, 7)
    )
