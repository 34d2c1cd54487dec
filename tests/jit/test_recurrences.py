"""Loops with recurrences over rows, columns and elements."""

import textwrap
from typing import Any

import numpy as np
import pytest
from as_written import as_written
from hypothesis import given, settings
from hypothesis import strategies as st
from outcomes import outcome
from written import written

import dcarray as dc

pytestmark = pytest.mark.eager(eager_below=0)


def agree(f: Any, *args: Any, served: int | None = None) -> None:
    """The same with compiled loops, of which so many were run."""
    want = as_written(outcome, f, args)
    before = dc.report().loops
    assert outcome(dc.accelerate(f), args) == want
    if served is not None:
        assert dc.report().loops - before == served, str(dc.report())


SWEEP = """
    def f(u, n, m):
        for t in range(3):
            for i in {rows}:
                {row}
                for j in {columns}:
                    u[i, j] = {value}
        return u
"""
UP, DOWN = "range(1, n - 1)", "range(n - 2, 0, -1)"
VALUES = [
    "(u[i, j - 1] + u[i - 1, j] + u[i + 1, j] + u[i, j + 1]) / 4.0",
    "(u[i, j] + u[i, j - 1]) / 9.0",
    "0.5 * u[i, j - 1] + u[i - 1, j + 1] / 3.0",
    "u[i, j + 1] / 2.0 + u[i + 1, j - 1] / 3.0",
    "u[i, j - 1] * u[i - 1, m - 1 - j] / 3.0",
]


@pytest.mark.parametrize("rows", [UP, DOWN])
@pytest.mark.parametrize("columns", ["range(1, m - 1)", "range(m - 2, 0, -1)"])
@pytest.mark.parametrize("row", ["pass", "u[i, 1:-1] += u[i - 1, :-2] + u[i, 2:] + u[i + 1, 1:-1]"])
def test_sweeps(rows: str, columns: str, row: str) -> None:
    rng = np.random.default_rng(1)
    for k, value in enumerate(VALUES):
        f = written(SWEEP.format(rows=rows, columns=columns, row=row, value=value))
        for n, m in ((12, 60), ((4, 48), (3, 60), (9, 9))[k % 3]):
            agree(f, rng.random((n, m)), n, m, served=1)
        other = rng.random((11, 50)).astype("f") if k % 2 else rng.random((50, 11)).T
        agree(f, other, 11, 50, served=1)


def test_several_rows_run_at_once() -> None:
    f = written(SWEEP.format(rows=UP, columns="range(1, m - 1)", row="pass", value=VALUES[0]))
    text = str(dc.explain(dc.accelerate(f), np.random.default_rng(2).random((20, 80)), 20, 80))
    assert "several rows of the loop over i run at once" in text
    assert "carries scalars" in text


def test_exceptions_in_sweeps() -> None:
    f = written(
        SWEEP.format(rows=UP, columns="range(1, m - 1)", row="pass", value="u[i, j - 1] * u[i - 1, j]")
    )
    agree(f, np.full((12, 60), 1e200), 12, 60)


FOLD = """
    def f(c, n):
        for i in range(n - 1, -1, -1):
            for j in range(i + 1, n):
                for k in range(i + 1, j):
                    c[i, j] = {value}
        return c
"""


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "u4", "i8", "u8", "f4", "f8"])
@pytest.mark.parametrize("value", [
    "max(c[i, j], c[i, k] + c[k + 1, j])",
    "min(c[i, j], c[k, i] - c[j, k])",
    "c[i, j] + c[i, k] * c[k, j]",
    "c[i, j] - c[k, j]",
])  # fmt: skip
def test_loop_carried_elements(dtype: str, value: str) -> None:
    f = written(FOLD.format(value=value))
    rng = np.random.default_rng(3)
    agree(f, rng.integers(0, 3, (9, 9)).astype(dtype), 9)
    agree(f, rng.integers(0, 2, (7, 7)).astype(dtype), 7)
    if np.dtype(dtype).kind != "f":
        large = np.full((9, 9), np.iinfo(dtype).max // 2, dtype)
        agree(f, large, 9)
        large[4, 5] += 2
        agree(f, large, 9)


TERMS = ["s + x[i]", "s - x[i]", "x[i] - s", "x[i] * x[i - 1] + s", "max(s, x[i] + x[-1 - i])", "s + x[p[i]]"]


@settings(max_examples=32, deadline=None)
@given(st.data())
def test_integers_in_serial_loops(data: st.DataObject) -> None:
    """What wraps is said by NumPy, and nothing else is."""
    dtype = np.dtype(data.draw(st.sampled_from(["i1", "u1", "i2", "i4", "u4", "i8", "u8"])))
    info = np.iinfo(dtype)
    near = st.sampled_from(
        [info.min, info.min + 1, info.max, info.max - 1, info.max // 2, info.max // 2 + 1, 0, 1, 2]
    )
    usual = st.integers(max(info.min, -9), 9)
    values = data.draw(
        st.lists(usual if data.draw(st.booleans()) else st.one_of(usual, near), min_size=2, max_size=8)
    )
    term = data.draw(st.sampled_from(TERMS))
    f = written(f"""
        def f(x, p, n):
            s = x[0]
            for i in range(n):
                s = {term}
                if s == 77:
                    s = x[0]
            return s
    """)
    x = np.array(values, dtype)
    p = np.array(data.draw(st.lists(st.integers(0, x.size - 1), min_size=x.size, max_size=x.size)))
    arguments: tuple[Any, ...] = (x, p, x.size)
    agree(f, *arguments)


CHECKSUMS = {
    "reflected": """
                if (crc & 1) ^ (byte & 1):
                    crc = (crc >> 1) ^ {poly}
                else:
                    crc >>= 1
                byte >>= 1
    """,
    "before": """
                if crc & 1:
                    crc = (crc >> 1) ^ {poly}
                else:
                    crc = crc >> 1
    """,
    "straight": """
                if crc & {top}:
                    crc = ((crc << 1) ^ {poly}) & {mask}
                else:
                    crc = (crc << 1) & {mask}
    """,
}


@pytest.mark.parametrize("step", sorted(CHECKSUMS))
@pytest.mark.parametrize("bits", [5, 8, 16, 24, 32])
def test_checksums(step: str, bits: int) -> None:
    """Of which compilers make tables."""
    rng = np.random.default_rng(bits)
    mask = (1 << bits) - 1
    for turns in (8, 3, 16):
        poly = int(rng.integers(1, mask))
        head = "crc = crc ^ byte" if step == "before" else ""
        if step == "straight":
            head = f"crc = crc ^ (byte << {max(0, bits - 8)})"
        body = CHECKSUMS[step].format(poly=poly, top=1 << (bits - 1), mask=mask).strip("\n")
        f = written(f"""
        def f(data, crc):
            for b in data:
                byte = 0xFF & int(b)
                {head or "pass"}
                for _ in range({turns}):
{textwrap.indent(textwrap.dedent(body), " " * 20)}
            return crc
        """)
        for crc in (0, mask, poly // 2):
            agree(f, rng.integers(0, 256, 50).astype(np.uint8), crc, served=1)


INTEGERS = [
    "(s >> 1) ^ (v & 1023)", "(s >> k) + 3", "s // 3 + v", "(s % 7) * 5 + k", "s - 1", "s * 3 + 1",
    "(s ^ v) >> 2", "v - (s >> 2)", "s + x[s % n]", "x[s] + (s >> 1)", "(s * s) % 1013",
]  # fmt: skip


@settings(max_examples=32, deadline=None)
@given(st.data())
def test_loop_carried_ints(data: st.DataObject) -> None:
    """Some never fall below 0, which is used; some do, and some become too large to be counted with."""
    first, second = (data.draw(st.sampled_from(INTEGERS)) for _ in range(2))
    f = written(f"""
        def f(x, s, n):
            for k in range(n):
                v = int(x[k])
                s = {first}
                if s % 5 == 3:
                    s = {second}
            return s
    """)
    small = st.integers(0, 5)
    x = np.array(data.draw(st.lists(st.one_of(small, st.integers(-9, 1000)), min_size=6, max_size=60)))
    arguments = x, data.draw(st.sampled_from([0, 1, 4, -1, -7, 1000, (1 << 52) - 1])), len(x)
    try:
        with np.errstate(all="ignore"):
            f(*arguments)
    except IndexError:
        with pytest.raises(IndexError):
            dc.accelerate(f)(*arguments)
        return
    agree(f, *arguments)


def test_an_int_that_grows_too_large_is_no_valid_index() -> None:
    """Not even in the turns that compiled code goes on with."""
    f = written("""
        def f(x, s, n):
            t = 0
            for k in range(n):
                t = (t + x[s]) & 255
                s = s * 5 + 1
            return t
    """)
    with pytest.raises(IndexError):
        dc.accelerate(f)(np.arange(6), 0, 300)
    agree(f, np.arange(200), 0, 3)
