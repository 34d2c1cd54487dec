"""Loops in strips, and loops whose iterations run at the same time."""

import random
from dataclasses import replace

import pytest
from sweep_regions import LINES, sweeps

from dcarray.ir.nodes import Loop
from dcarray.ir.passes import Log
from dcarray.ir.passes.cpu import strip_mining as module
from dcarray.ir.passes.cpu.pipeline import CPU
from dcarray.ir.passes.cpu.strip_mining import STRIP_MINING, strip_mining
from dcarray.ir.passes.cpu.time_tiling import CacheLimits
from dcarray.ir.text import dump, parse
from dcarray.ir.verify import verify


@pytest.fixture
def small(monkeypatch):
    """As if caches and vectors were tiny."""
    for name, value in (
        ("MIN_POINTS", 1),
        ("NEAR", 64),
        ("LEAST", 2),
        ("VECTOR", 1),
        ("RUN", 2),
        ("FOLDED", 2),
        ("AGAIN", 2),
    ):
        monkeypatch.setattr(module, name, value)


def test_a_sweep_over_columns_runs_in_strips_of_rows(check):
    check(
        STRIP_MINING,
        """region() {
          in a: f64[300, 300];  inout p: f64[300, 300]
          for k in range(1, 300, 1) {
            p[i+1,k] = add(a[i,k], p[i+1,k-1]) for i<298
          }
          for k in range(298, -1, -1) {
            p[i,k] = add(a[i,k], p[i,k+1]) for i<300
          }
        }
        """,
        """region() {
          in a: f64[300, 300];  inout p: f64[300, 300]
          parallel for r0 in range(0, 298, 40) {
            for k in range(1, 300, 1) {
              p[i+r0+1,k] = add(a[i+r0,k], p[i+r0+1,k-1]) for i<min(40, -r0+298)
            }
          }
          parallel for r1 in range(0, 300, 40) {
            for k in range(298, -1, -1) {
              p[i+r1,k] = add(a[i+r1,k], p[i+r1,k+1]) for i<min(40, -r1+300)
            }
          }
        }
        """,
    )


def test_two_axes(check):
    """Where one position of the first axis is too much for the cache."""
    check(
        STRIP_MINING,
        """region() {
          in a: f64[40, 300, 64];  inout p: f64[40, 300, 64]
          for k in range(1, 64, 1) {
            p[i,j,k] = add(a[i,j,k], p[i,j,k-1]) for i<40, j<300
          }
        }
        """,
        """region() {
          in a: f64[40, 300, 64];  inout p: f64[40, 300, 64]
          parallel for r0 in range(0, 40, 1) {
            parallel for r1 in range(0, 300, 40) {
              for k in range(1, 64, 1) {
                p[r0,i+r1,k] = add(a[r0,i+r1,k], p[r0,i+r1,k-1]) for i<min(40, -r1+300)
              }
            }
          }
        }
        """,
    )


def test_sweeps_in_different_directions(check):
    """The loop around them stays: what an iteration needs is in other strips.  What runs along memory
    is not cut into short pieces."""
    check(
        STRIP_MINING,
        """region() {
          inout p: f64[300, 300]
          for t in range(0, 5, 1) {
            for k in range(1, 300, 1) {
              p[i,k] = add(p[i,k], p[i,k-1]) for i<300
            }
            for k in range(1, 300, 1) {
              p[k,i] = add(p[k,i], p[k-1,i]) for i<300
            }
          }
        }
        """,
        """region() {
          inout p: f64[300, 300]
          for t in range(0, 5, 1) {
            parallel for r0 in range(0, 300, 40) {
              for k in range(1, 300, 1) {
                p[i+r0,k] = add(p[i+r0,k], p[i+r0,k-1]) for i<min(40, -r0+300)
              }
            }
            for k in range(1, 300, 1) {
              p[k,i] = add(p[k,i], p[k-1,i]) for i<300
            }
          }
        }
        """,
    )


def test_iterations_that_keep_something_for_themselves(check):
    check(
        STRIP_MINING,
        """region() {
          in a: f64[60, 50];  inout c: f64[50, 50];  temp t: f64[50]
          for k in range(0, 50, 1) {
            t[i] add= multiply(a[j,k], a[j,i+k]) init 0.0 for i<50-k, j<60
            c[k,i+k] = t[i] for i<50-k
            c[i+k,k] = t[i] for i<50-k
          }
        }
        """,
        """region() {
          in a: f64[60, 50];  inout c: f64[50, 50];  temp t: f64[50]
          parallel for k in range(0, 50, 1) {
            t[i] add= multiply(a[j,k], a[j,i+k]) init 0.0 for i<50-k, j<60
            c[k,i+k] = t[i] for i<50-k
            c[i+k,k] = t[i] for i<50-k
          }
        }
        """,
    )


FOLDS = """region() {{
  in a: f64[80, 80];  inout b: f64[80, {0}];  temp t: f64[{0}]
  for i in range(0, 80, 1) {{
    t[j] add= multiply(a[k+i+1,i], b[k+i+1,j]) init 0.0 for j<{0}, k<79-i
    b[i,j] = add(b[i,j], t[j]) for j<{0}
  }}
}}
"""


def test_rows_that_are_folded_again_and_again_are_for_several_threads(check):
    check(
        strip_mining(CacheLimits(threads=2)),
        FOLDS.format(250),
        """region() {
          in a: f64[80, 80];  inout b: f64[80, 250];  temp t: f64[250]
          parallel for r0 in range(0, 250, 125) {
            for i in range(0, 80, 1) {
              t[j+r0] add= multiply(a[k+i+1,i], b[k+i+1,j+r0]) init 0.0 for j<125, k<-i+79
              b[i,j+r0] = add(b[i,j+r0], t[j+r0]) for j<125
            }
          }
        }
        """,
    )


@pytest.mark.parametrize(("columns", "threads", "strips"), [(250, 1, 1), (100, 2, 1), (251, 2, 2)])
def test_where_rows_are_folded_again_and_again(columns, threads, strips):
    """One thread goes along all of them, and if strips are not equally wide, the last one comes after the
    others."""
    after = strip_mining(CacheLimits(threads=threads)).fn(parse(FOLDS.format(columns)), Log())
    assert dump(after).count("range(0, 80, 1)") == strips


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("p[i+1,k] = p[i,k] for i<299\np[i,k+1] = add(p[i,k], p[i,k+1]) for i<300", "need p of another one"),
        ("s[] add= p[i,k] for i<300", "need s of another one"),
        ("p[k,k] = add(p[k,k], p[0,0])", "too little"),
        ("p[i,0] = add(p[i,0], p[i,k]) for i<k", "need p of another one"),
    ],
)
def test_why_a_loop_stays_whole(body, text):
    region = parse(
        f"region() {{\ninout p: f64[300, 301];  inout s: f64[]\nfor k in range(1, 299, 1) {{\n{body}\n}}\n}}"
    )
    log = Log()
    assert STRIP_MINING.fn(region, log) is region
    assert text in str(log), str(log)


@pytest.mark.parametrize("seed", range(150))
def test_random_sweeps(seed, small, same_meaning):
    region = sweeps(random.Random(seed))
    verify(region)
    for before in (region, replace(CPU, final=()).run(region)):
        for one in (STRIP_MINING, strip_mining(CacheLimits(threads=2))):
            after = one.fn(before, Log())
            verify(after)
            same_meaning(before, after)
            assert parse(dump(after)) == after


def test_most_of_them_are_cut(small):
    """The test above is about something."""
    region = parse(
        "region() {\nin a: i64[13, 13];  inout p: i64[13, 13]\nfor k in range(1, 11, 1) {\n"
        + LINES[0].format(n=12)
        + "\n}\n}"
    )
    after = STRIP_MINING.fn(region, Log())
    assert isinstance(after.body[0], Loop) and after.body[0].parallel


@pytest.mark.parametrize("axis", [0, 1])
def test_a_loop_is_not_cut_along_an_axis_that_is_scanned(axis, small, same_meaning):
    region = parse(f"""region() {{
      inout a: f64[40, 24];  temp t: f64[40, 24]
      for k in range(0, 3, 1) {{
        a[i,j] = multiply(a[i,j], 2.0) for i<40, j<24
        t[i,j] scan {"ij"[axis]} add= a[i,j] init -0.0 for i<40, j<24
        a[i,j] = t[i,j] for i<40, j<24
      }}
    }}
    """)
    after = STRIP_MINING.fn(region, Log())
    same_meaning(region, after)
    assert ("a[i,j+r0]", "a[i+r0,j]")[axis] in dump(after)
