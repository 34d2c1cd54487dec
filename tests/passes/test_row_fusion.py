"""Statements whose dependences stay within a row run row by row."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from row_regions import Maker, one_by_one

from dcarray.ir import interp
from dcarray.ir.analysis.effects import rows_conflict
from dcarray.ir.nodes import Region, Rows
from dcarray.ir.passes import Log, fusion_profit
from dcarray.ir.passes.portable.row_fusion import ROW_FUSION
from dcarray.ir.text import dump, parse
from dcarray.ir.verify import VerifyError, verify


def test_golden(golden):
    golden(ROW_FUSION)


REFUSED = {
    "a row needs s of other rows": """
      s[i] add= x[i,j] init 0.0 for i<20, j<90
      y[i,j] = subtract(x[i,j], s[19-i]) for i<20, j<90
    """,
    "v is complete only after the last row": """
      v[j] add= x[i,j] init 0.0 for i<20, j<90
      y[i,j] = subtract(x[i,j], v[j]) for i<20, j<90
    """,
    "a row needs y of other rows": """
      s[i] add= y[i+1,j] init 0.0 for i<19, j<90
      y[i,j] = subtract(x[i,j], s[i]) for i<19, j<90
    """,
    "3 rows are too few for many cores": """
      s[i] add= x[i,j] init 0.0 for i<3, j<90
      y[i,j] = subtract(x[i,j], s[i]) for i<3, j<90
    """,
    "rows of 5 points are too short": """
      s[i] add= x[i,j] init 0.0 for i<20, j<5
      y[i,j] = subtract(x[i,j], s[i]) for i<20, j<5
    """,
    "what they go over fits into the caches": """
      v[j] add= x[i,j] init 0.0 for i<20, j<90
      s[i] add= x[i,j] init 0.0 for i<20, j<90
    """,
    "they have no data in common": """
      s[i] add= x[i,j] init 0.0 for i<20, j<90
      y[i,j] = 1.0 for i<20, j<90
    """,
}


@pytest.mark.parametrize("reason", REFUSED)
def test_reasons(check, reason):
    arrays = "in x: f64[20, 90];  inout y: f64[20, 90];  inout s: f64[20];  inout v: f64[90]"
    log = check(ROW_FUSION, f"region() {{\n {arrays}\n {REFUSED[reason]} }}", None)
    assert reason in str(log)


@pytest.mark.parametrize("body", [
    "s[i] add= x[i,j] init 0.0 for i<20, j<90\n y[i,j] = s[19-i] for i<20, j<90",
    "v[j] add= x[i,j] init 0.0 for i<20, j<90\n y[i,j] = v[j] for i<20, j<90",
    "y[i,j] = v[j] for i<20, j<90\n v[j] add= x[i,j] for i<20, j<90",
    "v[j] add= x[i,j] init 0.0 for i<20, j<90\n v[j] add= y[i,j] for i<20, j<90",
    "s[i] = 1.0 for i<20\n v[i] = 2.0 for i<90",
    "y[i,j] = x[i,j] for i<20, j<90\n s[i] = y[0,0] for i<20",
    "s[i] = 1.0 for i<20\n s[19] = 2.0 for i<20",
])  # fmt: skip
def test_the_verifier_knows_rows(body):
    arrays = "in x: f64[20, 90];  inout y: f64[20, 90];  inout s: f64[20];  inout v: f64[90]"
    region = parse(f"region() {{\n {arrays}\n rows 1 {{\n {body}\n }}\n}}")
    assert parse(dump(region)) == region
    with pytest.raises(VerifyError):
        verify(region)


def bits(region: Region, seed: int) -> list[bytes]:
    rng = np.random.default_rng(seed)
    memory = {a.name: rng.integers(-3, 4, a.shape).astype(a.dtype) for a in region.arrays}
    interp.run(region, memory)
    return [value.tobytes() for value in memory.values()]


@settings(max_examples=120, derandomize=True, deadline=None)
@given(st.integers(0, 10**6))
def test_rows_taken_one_by_one_in_any_order(seed):
    rng = random.Random(seed)
    region = Maker(rng, dtype=np.dtype("i8")).region()
    verify(region)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fusion_profit, "CORES", 1)
        patch.setattr(fusion_profit, "START", 1)
        made = ROW_FUSION.fn(region, Log())
    verify(made)
    assert parse(dump(made)) == made
    want = bits(region, seed)
    assert bits(made, seed) == want
    assert bits(one_by_one(made, rng), seed) == want
    # What is refused may be refused for nothing, but what is allowed is right.
    whole = tuple(region.body)
    if rows_conflict(whole, 1, region) is None:
        forced = Region(region.symbols, region.arrays, (Rows(whole, 1),))
        verify(forced)
        assert bits(one_by_one(forced, rng), seed) == want


BIG = "in A: f64[9000, 500];  in x: f64[500];  inout t: f64[9000];  inout y: f64[500];  in z: f64[]"
FOLDED = {
    "the product with what a row gives": """
      t[i] add= multiply(A[i,j], x[j]) init 0.0 for i<9000, j<500
      y[j] add= multiply(t[i], A[i,j]) init 0.0 for i<9000, j<500
    """,
    "two products": """
      y[j] add= multiply(t[i], A[i,j]) for i<9000, j<500
      x2[i] add= multiply(A[i,j], x[j]) init 0.0 for i<9000, j<500
    """,
    "an extreme": """
      t[i] add= multiply(A[i,j], x[j]) init 0.0 for i<9000, j<500
      y[j] maximum= A[i,j] init 0.0 for i<9000, j<500
    """,
}


@pytest.mark.parametrize("name", FOLDED)
def test_rows_are_folded_on_the_way(name):
    region = parse(f"region() {{\n {BIG};  out x2: f64[9000]\n {FOLDED[name]} }}")
    verify(region)
    made = ROW_FUSION.fn(region, Log())
    assert len(made.body) == 1 and isinstance(made.body[0], Rows)
    verify(made)
    assert parse(dump(made)) == made


NOT_FOLDED = {
    "y has to be folded in order": """
      t[i] add= multiply(A[i,j], x[j]) init 0.0 for i<9000, j<500
      y[j] multiply= A[i,j] init 1.0 for i<9000, j<500
    """,
    "the values folded into s are not rows": """
      t[i] add= multiply(A[i,j], x[j]) init 0.0 for i<9000, j<500
      s[] add= A[i,j] init 1.0 for i<9000, j<500
    """,
    "they go over no rows in common": """
      t[i] add= multiply(A[i,j], x[j]) init 0.0 for i<9000, j<500
      y[j] add= multiply(B[i,j], x[j]) init 1.0 for i<9000, j<500
    """,
    "y is complete only after the last row": """
      y[j] add= A[i,j] init 0.0 for i<9000, j<500
      t[i] add= multiply(A[i,j], y[j]) init 0.0 for i<9000, j<500
    """,
}


@pytest.mark.parametrize("reason", NOT_FOLDED)
def test_why_rows_are_not_folded_on_the_way(reason):
    arrays = f"{BIG};  in B: f64[9000, 500];  out s: f64[]"
    region = parse(f"region() {{\n {arrays}\n {NOT_FOLDED[reason]} }}")
    log = Log()
    assert ROW_FUSION.fn(region, log) is region
    assert reason in str(log)


def test_no_rows_of_columns(check):
    """A sum along the first axis of an array would take one element of each of its rows at a time."""
    text = """region() {
          in x: f64[90, 20];  in y: f64[90];  temp t: f64[20];  inout w: f64[20]
          t[i] add= multiply(x[j,i], y[j]) init 0.0 for i<20, j<90
          w[i] = subtract(w[i], t[i]) for i<20
        }
        """
    log = check(ROW_FUSION, text, text)
    assert "rows of x lie across the folded values" in str(log)
