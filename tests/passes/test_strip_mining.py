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
        ("MIN_POINTS", 1), ("NEAR", 64), ("MIN_HEIGHT", 2), ("VECTOR", 1), ("RUN", 2), ("FOLDED", 2),
        ("AGAIN", 2),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)


def test_golden(golden):
    golden(STRIP_MINING)


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


@pytest.mark.parametrize(("body", "text"), [
    ("p[i+1,k] = p[i,k] for i<299\np[i,k+1] = add(p[i,k], p[i,k+1]) for i<300", "need p of another one"),
    ("s[] add= p[i,k] for i<300", "need s of another one"),
    ("p[k,k] = add(p[k,k], p[0,0])", "too little"),
    ("p[i,0] = add(p[i,0], p[i,k]) for i<k", "need p of another one"),
])  # fmt: skip
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
