"""Sums that grow by a term with each turn: each turn adds its terms to all of them."""

import numpy as np
import pytest

from dcarray.ir import interp
from dcarray.ir.effects import Reason
from dcarray.ir.nodes import Loop
from dcarray.ir.passes import pushed
from dcarray.ir.passes.base import Log
from dcarray.ir.passes.pushed import PUSHED, can_push
from dcarray.ir.text import dump, parse
from dcarray.lowering.plan import compile_region


def test_a_row_of_a_triangle(check):
    check(
        PUSHED,
        """region() {
          inout a: f64[40, 40];  temp t: f64[]
          for i in range(0, 40, 1) {
            for j in range(0, i, 1) {
              t[] add= multiply(a[i,k], a[k,j]) init 0.0 for k<j
              a[i,j] = subtract(a[i,j], t[])
            }
          }
        }
        """,
        """region() {
          inout a: f64[40, 40];  temp t: f64[];  temp t_0: f64[39]
          for i in range(0, 40, 1) {
            t_0[k] = 0.0 for k<i
            for j in range(0, i, 1) {
              t[] = t_0[j]
              a[i,j] = subtract(a[i,j], t[])
              t_0[k+j+1] = add(t_0[k+j+1], multiply(a[i,j], a[j,k+j+1])) for k<i-j-1
            }
          }
        }
        """,
    )


def test_terms_that_are_there_before_the_loop_are_added_at_once(check):
    check(
        PUSHED,
        """region() {
          inout x: f64[40];  in a: f64[40, 40];  temp t: f64[]
          for j in range(3, 40, 1) {
            t[] add= multiply(x[k], a[k+1,j]) init 1.0 for k<j-1
            x[j] = subtract(x[j], t[])
          }
        }
        """,
        """region() {
          inout x: f64[40];  in a: f64[40, 40];  temp t: f64[];  temp t_0: f64[37]
          t_0[k] add= multiply(x[l], a[l+1,k+3]) init 1.0 for k<37, l<2
          for j in range(3, 40, 1) {
            t[] = t_0[j-3]
            x[j] = subtract(x[j], t[])
            t_0[k+j-2] = add(t_0[k+j-2], multiply(x[j-1], a[j,k+j+1])) for k<-j+39
          }
        }
        """,
    )


SUMS = {
    "t may be used elsewhere": """
        x[j] = add(x[j], t[])
        t[] add= multiply(x[k], a[k,j]) init 0.0 for k<j
    """,
    "it does not grow by one term in each turn": """
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
    "it is no sum": """
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
    found = can_push(position, loop, region)
    assert isinstance(found, Reason) and found.text == why
    assert dump(PUSHED.fn(region, Log())) == dump(region)


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
    assert PUSHED.fn(region, Log()) is region


def test_long_sums_are_added_up_in_parts(check, monkeypatch):
    monkeypatch.setattr(pushed, "PART", 8)
    check(
        PUSHED,
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
    monkeypatch.setattr(pushed, "PART", part)
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
    PUSHED.fn(region, log)
    assert sum(note.kind == "done" for note in log.notes if note.pass_name == "pushed") == 2
    plan = compile_region(region)
    rng = np.random.default_rng(0)
    given = {n: (rng.integers(-1, 2, m) * (rng.random(m) < 0.1)).astype(float)
             for n, m in (("a", (40, 40)), ("b", (30, 40)))}  # fmt: skip
    want = interp.run(region, {n: a.copy() for n, a in given.items()}, {})
    arrays = tuple(given[name] for name in plan.arrays)
    plan.run(arrays, tuple(x.ctypes.data for x in arrays), (), threads)
    for name, array in given.items():
        np.testing.assert_array_equal(array, want[name])
