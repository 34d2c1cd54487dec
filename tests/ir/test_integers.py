"""Integer expressions: every operation and every form of them has the value that Python's integers have."""

import pickle
import random
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dcarray.ir import dims
from dcarray.ir.integers import Expression, floor_divide, maximum, minimum, remainder, symbol
from dcarray.ir.relations import Relation, compare, is_never_negative

N, M, K = symbol("N", 2), symbol("M"), symbol("k", None)
CALLS = {"min": min, "max": max, "abs": abs}
SIGNS = ("==", "!=", "<=", "<", ">=", ">")


def made(r: random.Random, depth: int) -> tuple[Any, str]:
    """A random expression, and the same as text of Python."""
    if depth == 0 or r.random() < 0.15:
        return r.choice([(N, "N"), (M, "M"), (K, "k"), *[(n, f"({n})") for n in (r.randint(-9, 9),)]])
    (a, left), (b, right) = (made(r, depth - 1) for _ in range(2))
    by = r.choice([1, 2, 3, 4, 6, -2, -3])
    kind = r.randrange(10)
    if kind < 2:
        return a + b, f"({left} + {right})"
    if kind == 2:
        return a - b, f"({left} - {right})"
    if kind == 3:
        return a * b, f"({left} * {right})"
    if kind == 4:
        return maximum(a, b), f"max({left}, {right})"
    if kind == 5:
        return minimum(a, b), f"min({left}, {right})"
    if kind == 6:
        return floor_divide(a, by), f"({left} // {by})"
    if kind == 7:
        return remainder(a, by), f"({left} % {by})"
    if kind == 8:
        return abs(a), f"abs({left})"
    add = r.randint(-5, 5)
    return (a * by + add) // (2 * by), f"(({left} * {by} + {add}) // {2 * by})"


def values() -> list[dict[str, int]]:
    return [dict(N=n, M=m, k=k) for n, m, k in product((2, 3, 7), (0, 1, 6), (-4, 0, 5))]


@settings(max_examples=120, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 30))
def test_a_form_has_the_value_of_what_it_was_made_of(seed: int) -> None:
    r = random.Random(seed)
    found, text = made(r, 3)
    assert type(found) in (int, Expression)
    for at in values():
        want = eval(text, CALLS, at)
        assert dims.evaluate(found, at) == want
        assert dims.substitute(found, at) == want
    if is_never_negative(found):
        assert all(dims.evaluate(found, at) >= 0 for at in values())
    if type(found) is Expression:
        again = pickle.loads(pickle.dumps(found))
        assert again == found and hash(again) == hash(found) and str(again) == str(found)
        assert eval(str(found), {"min": minimum, "max": maximum}, dict(N=N, M=M, k=K)) == found


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 30), st.sampled_from(SIGNS))
def test_a_comparison_is_decided_only_where_it_holds_for_all_values(seed: int, sign: str) -> None:
    r = random.Random(seed)
    (a, left), (b, right) = made(r, 2), made(r, 2)
    found = compare(sign, a, b)
    truths = [eval(f"{left} {sign} {right}", CALLS, at) for at in values()]
    if isinstance(found, bool):
        assert set(truths) == {found}
        return
    assert [bool(dims.evaluate(found, at)) for at in values()] == truths
    assert [found.at(at) for at in values()] == truths
    for least in found.least_zero():
        assert all(dims.evaluate(least, at) >= 0 for at, true in zip(values(), truths, strict=True) if true)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 30))
def test_a_symbol_is_replaced_by_an_expression(seed: int) -> None:
    r = random.Random(seed)
    found, text = made(r, 3)
    by, other = made(r, 1)
    by, other = maximum(by, 2), f"max({other}, 2)"  # as N
    replaced = dims.substitute(found, {"N": by, "k": N})
    for at in values():
        inner = {"N": eval(other, CALLS, at), "M": at["M"], "k": at["N"]}
        assert dims.evaluate(replaced, at) == eval(text, CALLS, inner)


def test_equal_forms_are_equal() -> None:
    assert (N + 1) * (N - 1) == N * N - 1
    assert (2 * N + 3) // 2 == N + 1
    assert (4 * N + 2) // 4 == N and (4 * N + 2) % 4 == 2
    assert (N * M) // N == M and (N * M) % N == 0
    assert (2 * N + 6) // 4 == (N + 3) // 2
    assert maximum(N, 1) == N and minimum(N, M, N + M) == minimum(M, N)
    assert maximum(minimum(N, M), N) == N
    assert N - N == 0 and type(N - N) is int
    assert np.int64(3) + N == N + 3 and np.int64(3) * N == 3 * N and 7 - N == -(N - 7)
    assert N**3 == N * N * N and N**0 == 1


def test_a_relation_is_neither_true_nor_false() -> None:
    unknown = N >= 5
    assert isinstance(unknown, Relation) and str(unknown) == "N >= 5"
    with pytest.raises(TypeError, match="depends on its symbols"):
        bool(unknown)
    assert (N >= 2) is True and (N < 2) is False and unknown == compare(">=", N, 5)
    assert pickle.loads(pickle.dumps(unknown)) == unknown
