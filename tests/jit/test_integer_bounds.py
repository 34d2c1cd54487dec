"""Python's integers in traced loops: their bounds, and values that stay Python's."""

import operator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_requests import check, request

from dcarray.core.errors import Untraceable
from dcarray.ir import interp
from dcarray.jit.loops.operations.bounds import MOST_BITS, result_bounds
from dcarray.jit.loops.tracing.trace import trace

OPS: dict[str, Any] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "<<": operator.lshift, ">>": operator.rshift, "&": operator.and_, "|": operator.or_, "^": operator.xor,
}  # fmt: skip
NUMBER = st.integers(-(1 << 40), 1 << 40) | st.integers(-9, 9)


@st.composite
def ranges(draw: Any, number: Any = NUMBER) -> tuple[int, int]:
    low, high = sorted((draw(number), draw(number)))
    return low, high


@given(st.data(), st.sampled_from(sorted(OPS)), ranges())
@settings(max_examples=240, deadline=None)
def test_bounds_hold(data: Any, op: str, a: tuple[int, int]) -> None:
    shift = op in ("<<", ">>")
    b = data.draw(ranges(st.integers(-2, MOST_BITS + 2)) if shift else ranges())
    x, y = (data.draw(st.integers(*ends) | st.sampled_from(ends)) for ends in (a, b))
    found = result_bounds(op, a, b)
    if found is not None and not (op in ("//", "%") and not y):
        assert found[0] <= OPS[op](x, y) <= found[1]
    elif shift:
        assert b[0] < 0 or b[1] > MOST_BITS
    else:
        assert op in ("//", "%") and b[0] <= 0 <= b[1]


def test_bounds_are_tight_where_they_have_to_be() -> None:
    assert result_bounds("&", (-(1 << 52), (1 << 52) - 1), (1, 1)) == (0, 1)
    assert result_bounds("^", (0, 1), (0, 1)) == (0, 1)
    assert result_bounds("^", (-(1 << 52), (1 << 52) - 1), (0x8408, 0x8408)) == (-(1 << 52), (1 << 52) - 1)
    assert result_bounds("%", (-5, 5), (3, 3)) == (0, 2)
    assert result_bounds("%", (-5, 5), (-3, -3)) == (-2, 0)
    assert result_bounds("//", (-7, 7), (2, 2)) == (-4, 3)
    assert result_bounds("**", (1, 2), (1, 2)) is None


@st.composite
def terms(draw: Any, depth: int = 3) -> str:
    if not depth or draw(st.integers(0, 3)) == 0:
        return str(draw(st.sampled_from(["n", "n", "m", "k", "u", "True", "1", "2", "5", "7", "255", "-3"])))
    op = draw(st.sampled_from([*sorted(OPS), "&", "^", ">>"]))
    left = draw(terms(depth=depth - 1))
    if op in ("<<", ">>"):
        return f"({left} {op} {draw(st.integers(0, 5))})"
    if op in ("//", "%"):
        return f"({left} {op} {draw(st.sampled_from(['3', '8', '-5', '(k + 1)']))})"
    sign = draw(st.sampled_from(["", "", "~", "-"]))
    return f"({sign}{left} {op} {draw(terms(depth=depth - 1))})"


@given(terms(), terms(), st.integers(-100, 100), st.integers(0, 1 << 20))
@settings(max_examples=100, deadline=None)
def test_integer_expressions(first: str, second: str, n: int, m: int) -> None:
    names: dict[str, Any] = dict(n=n, m=m, u=True, x=np.zeros(6, "i8"), y=np.zeros(6))
    loop = f"""
for k in range(6):
    t = ({first}) & 0xFFFF
    if t & 1:
        n = (n >> 1) ^ m
    else:
        n = ({second}) % 1000
    x[k] = t
    y[k] = n & 0xFF
"""
    with suppress(Untraceable):
        check(loop, names, live={"n"})


def test_a_checksum() -> None:
    """Of bytes, bit by bit and by a table, as programs write them."""
    table = [0] * 256
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ 0x8408 if value & 1 else value >> 1
        table[byte] = value
    data = np.random.default_rng(3).integers(0, 256, 40).astype("u1")
    bits = """
for b in data:
    byte = 0xFF & b
    for _ in range(0, 8):
        if (crc & 0x0001) ^ (byte & 0x0001):
            crc = (crc >> 1) ^ poly
        else:
            crc >>= 1
        byte >>= 1
"""
    traced = check(bits, dict(data=data, crc=0xFFFF, poly=0x8408), live={"crc"})
    assert traced.results[0][1].weak


@pytest.mark.parametrize("body, reason", [
    ("n = n << k", "large"),
    ("n = 1 >> (k - 2)", "bounds"),
])  # fmt: skip
def test_unbounded_integers(body: str, reason: str) -> None:
    with pytest.raises(Untraceable, match=reason):
        trace(request(f"for k in range(40):\n    {body}", dict(n=3)))


def test_an_integer_that_is_large_from_the_start() -> None:
    with pytest.raises(Untraceable, match="large"):
        trace(request("for k in range(40):\n    n = n * 1000 % 77", dict(n=1 << 60)))


def test_an_integer_that_may_be_large_from_the_start() -> None:
    """The run sees whether it is."""
    loop = "j = m * m - 3\nfor k in range(4):\n    j = j // 2 + k"
    names: dict[str, Any] = dict(m=np.int64(5))
    check(f"for r in range(1):\n    {loop.replace(chr(10), chr(10) + '    ')}", names, live={"j"})
    traced = trace(request("for k in range(4):\n    n = n // 2 + k", dict(n=3), {"n"}))
    assert traced.results


def test_integers_that_may_be_large() -> None:
    """The run sees where one has more than 64 bits."""
    check("for k in range(5):\n    n = n * n", dict(n=3), live={"n"})
    traced = trace(request("for k in range(m):\n    n = n * n", dict(n=3, m=np.int64(5)), {"n"}))
    for rounds in (2, 4, 5, 6):
        memory = {"n": np.array(3), "m": np.array(rounds)}
        with np.errstate(invalid="raise"):
            if rounds < 6:
                made = interp.run(traced.region, memory)
                assert 3 ** (2**rounds) in [int(x) for x in made.values()]
            else:
                with pytest.raises(FloatingPointError):
                    interp.run(traced.region, memory)


def test_integers_that_grow() -> None:
    """The run sees where they become larger than those which are counted with."""
    names: dict[str, Any] = dict(n=3, m=np.int64(5))
    check("for k in range(40):\n    n = (n << 1) | 1", names, live={"n"})
    traced = trace(request("for k in range(m):\n    n = (n << 1) | 1", names, {"n"}))
    values = {"n": np.array(3), "m": np.array(60)}
    memory = {a.name: values.get(a.name) for a in traced.region.arrays if a.role in ("in", "inout")}
    with pytest.raises(FloatingPointError), np.errstate(invalid="raise"):
        interp.run(traced.region, {name: v for name, v in memory.items() if v is not None})


def test_truth_values() -> None:
    names: dict[str, Any] = dict(x=np.arange(6.0), s=0, t=False, n=3)
    loop = """
for k in range(6):
    small, odd = n < 5, n & 1 == 1
    t = small ^ odd | (small & t)
    n = n + (t & 1) + odd
    x[k] = n
"""
    traced = check(loop, names, live={"n", "t"})
    assert all(result.weak for _, result in traced.results)
