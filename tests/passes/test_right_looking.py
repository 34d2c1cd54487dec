"""Sums that grow by a term with each iteration: each iteration adds its terms to all of them."""

import numpy as np
import pytest
from plan_runs import agree, interpreted, run_plan

from dcarray.ir.analysis.effects import Reason
from dcarray.ir.nodes import Loop
from dcarray.ir.passes.base import Log
from dcarray.ir.passes.cpu import right_looking
from dcarray.ir.passes.cpu.right_looking import RIGHT_LOOKING, right_looking_sum
from dcarray.ir.text import dump, parse
from dcarray.lowering.compilation import compile_region


def test_golden(golden):
    golden(RIGHT_LOOKING)


SUMS = {
    "t may be used elsewhere": """
        x[j] = add(x[j], t[])
        t[] add= multiply(x[k], a[k,j]) init 0.0 for k<j
    """,
    "it does not grow by one term in each iteration": """
        t[] add= multiply(x[k], a[k,j]) init 0.0 for k<40
        x[j] = add(x[j], t[])
    """,
    "x may still change when a term is added": """
        t[] add= multiply(x[k], a[k,j]) init 0.0 for k<j+1
        x[j] = add(x[j], t[])
    """,
    "a may still change when a term is added": """
        t[] add= multiply(x[k], a[k,j]) init 0.0 for k<j
        a[0,j] = add(x[j], t[])
    """,
    "b may still change when a term is added": """
        t[] add= multiply(b[k], a[k,j]) init 0.0 for k<j
        x[j] = add(x[j], t[])
    """,
    "what it reads does not move evenly": """
        t[] add= multiply(x[k], a[k,k+j]) init 0.0 for k<j
        x[j] = add(x[j], t[])
    """,
    "it is not a sum": """
        t[] multiply= multiply(x[k], a[k,j]) init 0.0 for k<j
        x[j] = add(x[j], t[])
    """,
    "it is not a sum to one number, with terms in any order": """
        t[] maximum= multiply(x[k], a[k,j]) init 0.0 for k<j
        x[j] = add(x[j], t[])
    """,
    "t has other values, too": """
        t[] add= multiply(x[k], a[k,j]) init 0.0 for k<j
        t[] = multiply(t[], 2.0)
        x[j] = add(x[j], t[])
    """,
}


@pytest.mark.parametrize("why", SUMS)
def test_what_stays(why):
    region = parse(
        """region() {
          inout x: f64[80];  inout a: f64[80, 80];  temp t: f64[];  temp b: f64[80] base x
          for j in range(0, 40, 1) {"""
        + SUMS[why]
        + "} }"
    )
    (loop,) = region.body
    assert isinstance(loop, Loop)
    position = next(k for k, stmt in enumerate(loop.body) if stmt.combine is not None)
    found = right_looking_sum(position, loop, region)
    assert isinstance(found, Reason) and found.text == why
    assert dump(RIGHT_LOOKING.fn(region, Log())) == dump(region)


@pytest.mark.parametrize("terms", ["multiply(x[k], a[j,k])", "multiply(x[k], x[k])"])
def test_rows_are_added_up_as_they_lie(terms):
    """A vector takes neighbours, which the terms of one sum are already."""
    text = f"""region() {{
      inout x: f64[80];  in a: f64[80, 80];  temp t: f64[]
      for j in range(0, 80, 1) {{
        t[] add= {terms} init 0.0 for k<j
        x[j] = subtract(x[j], t[])
      }}
    }}"""
    region = parse(text)
    assert RIGHT_LOOKING.fn(region, Log()) is region


def test_long_sums_are_added_up_in_parts(check, monkeypatch):
    monkeypatch.setattr(right_looking, "PART", 8)
    check(
        RIGHT_LOOKING,
        """region() {
          inout x: f64[40];  in a: f64[40, 40];  temp t: f64[]
          for j in range(0, 40, 1) {
            t[] add= multiply(x[k], a[k,j]) init 0.0 for k<j
            x[j] = subtract(1.0, t[])
          }
        }
        """,
        """region() {
          inout x: f64[40];  in a: f64[40, 40];  temp t: f64[];  temp t_0: f64[40];  temp t_1: f64[40]
          t_0[i] = 0.0 for i<40
          t_1[i] = 0.0 for i<40
          for j in range(0, 40, 1) {
            t[] = add(t_0[j], t_1[j])
            x[j] = subtract(1.0, t[])
            t_1[i+j+1] = add(t_1[i+j+1], multiply(x[j], a[j,i+j+1])) for i<-j+39
            if equal(bitwise_and(size(j+1), 7), 0) {
              t_0[i+j+1] = add(t_0[i+j+1], t_1[i+j+1]) for i<-j+39
              t_1[i+j+1] = 0.0 for i<-j+39
            }
          }
        }
        """,
    )


@pytest.mark.parametrize("part", [8, 512])
@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_compiled(part, threads, monkeypatch):
    monkeypatch.setattr(right_looking, "PART", part)
    region = parse(
        """region() {
          inout a: f64[40, 40];  inout b: f64[30, 40];  temp t: f64[];  temp u: f64[]
          for i in range(0, 40, 1) {
            for j in range(0, i, 1) {
              t[] add= multiply(a[i,k], a[k,j]) init 0.0 for k<j
              a[i,j] = subtract(a[i,j], t[])
            }
          }
          for i in range(0, 30, 1) {
            for j in range(2, 40, 1) {
              u[] add= multiply(b[i,k], a[k,j]) init 1.0 for k<j-1
              b[i,j] = subtract(b[i,j], u[])
            }
          }
        }
        """
    )
    log = Log()
    RIGHT_LOOKING.fn(region, log)
    assert sum(note.kind == "done" for note in log.notes if note.pass_name == "right_looking") == 2
    plan = compile_region(region)
    rng = np.random.default_rng(0)
    given = {n: (rng.integers(-1, 2, m) * (rng.random(m) < 0.1)).astype(float)
             for n, m in (("a", (40, 40)), ("b", (30, 40)))}  # fmt: skip
    want = interpreted(region, given)
    run_plan(plan, given, (), threads)
    agree(given, want)


def _extremum(body, dtype="i32"):
    """A triangle, each element of which is an extremum of sums of others."""
    return f"""region() {{
      inout c: {dtype}[33, 33];  in s: {dtype}[33]
      for i in range(32, -1, -1) {{
        for j in range(i+1, 33, 1) {{
          c[i,j] = add(c[i,j-1], s[j])
          for k in range(i+1, j, 1) {{
            c[i,j] = {body}
          }}
        }}
      }}
    }}"""


TERM = "add(c[i,k], c[k+1,j])"
EXTREMA = {
    "greater": f"where(greater({TERM}, c[i,j]), {TERM}, c[i,j])",
    "greater_equal": f"where(greater_equal({TERM}, c[i,j]), {TERM}, c[i,j])",
    "not greater": f"where(greater({TERM}, c[i,j]), c[i,j], {TERM})",
    "less": f"where(less(c[i,j], {TERM}), c[i,j], {TERM})",
    "less_equal": f"where(less_equal(c[i,j], {TERM}), {TERM}, c[i,j])",
    "maximum": f"maximum(c[i,j], {TERM})",
    "minimum": f"minimum({TERM}, c[i,j])",
    "checked": f"maximum(checked(add_fits(c[i,k], c[k+1,j]), {TERM}), c[i,j])",
}


def test_an_extremum_of_integers_is_had_like_a_sum(check):
    check(
        RIGHT_LOOKING,
        _extremum(EXTREMA["greater"]),
        """region() {
          inout c: i32[33, 33];  in s: i32[33];  temp k_0: i32[];  temp k_0_0: i32[32]
          for i in range(32, -1, -1) {
            k_0_0[j] = i32(-2147483648) for j<-i+32
            for j in range(i+1, 33, 1) {
              c[i,j] = add(c[i,j-1], s[j])
              k_0[] = k_0_0[-i+j-1]
              c[i,j] = maximum(c[i,j], k_0[])
              k_0_0[k-i+j] = maximum(k_0_0[k-i+j], add(c[i,j], c[j+1,k+j+1])) for k<-j+32
            }
          }
        }
        """,
    )


@pytest.mark.parametrize(
    "name, dtype",
    [("checked", "u8"), ("checked", "i64"), *zip(EXTREMA, ["i32", "u8", "i64"] * 9, strict=False)],
)
def test_extrema_that_are_compiled(name, dtype):
    region = parse(_extremum(EXTREMA[name], dtype))
    log = Log()
    after = RIGHT_LOOKING.fn(region, log)
    assert [note.kind for note in log.notes if note.pass_name == "right_looking"] == ["done"]
    rng = np.random.default_rng(0)
    kind = {"i32": np.int32, "u8": np.uint8, "i64": np.int64}[dtype]
    for most in (3, 100):  # sums of the latter wrap in bytes
        given = {
            "c": rng.integers(0, most, (33, 33)).astype(kind),
            "s": rng.integers(0, most, 33).astype(kind),
        }
        with np.errstate(invalid="ignore"):
            want = interpreted(region, given)
        flags = run_plan(compile_region(after), given, (), 0)
        agree(given, want)
        if name == "checked" and dtype != "u8":
            assert not flags


STAYING = {
    "numbers whose order matters": ("maximum(c[i,j], add(c[i,k], c[k+1,j]))", "f64"),
    "a choice by something else": (f"where(greater({TERM}, s[j]), {TERM}, c[i,j])", "i32"),
    "of what it writes": ("maximum(c[i,j], add(c[i,k+1], c[k+1,j]))", "i32"),
    "of what may still change": ("maximum(c[i,j], add(c[i,k], c[i,j-1]))", "i32"),
    "more than an extremum": (f"add(c[i,j], {TERM})", "i32"),
    "twice the element": (f"maximum(c[i,j], add(c[i,j], {TERM}))", "i32"),
    "values that move with rows": ("maximum(c[i,j], add(c[i,k], c[j,k]))", "i32"),
}


@pytest.mark.parametrize("why", STAYING)
def test_extrema_that_stay(why):
    region = parse(_extremum(*STAYING[why]))
    assert RIGHT_LOOKING.fn(region, Log()) is region
