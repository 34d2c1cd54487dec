"""Chains of statements over the same arrays run band by band."""

import random
from dataclasses import replace

import numpy as np
import pytest
from band_regions import Chains, row_by_row
from hypothesis import given, settings
from hypothesis import strategies as st

from dcarray.ir import interp
from dcarray.ir.analysis.effects import Reason
from dcarray.ir.analysis.skew import skews, time_tile_conflict
from dcarray.ir.nodes import Region, TimeTiles
from dcarray.ir.passes import Log
from dcarray.ir.passes.cpu.pipeline import CPU
from dcarray.ir.passes.cpu.time_tiling import CacheLimits, time_tiling
from dcarray.ir.text import dump, parse
from dcarray.ir.verify import VerifyError, verify

SMALL = CacheLimits(last=0, near=1 << 20, again=0, points=0, tiles=2, sides=1, height=2)

STEP = "{1}[i+1,j] = add(add({0}[i,j], {0}[i+1,j]), {0}[i+2,j]) for i<38, j<90\n"
BORDER = "{0}[0,j] = {0}[1,j] for j<90\n"
LIFTED = "{0}[i,j] = {0}[i+1,j] for i<1, j<90\n"


def steps(*made):
    arrays = "inout a: f64[40, 90];  inout b: f64[40, 90];  inout c: f64[40]"
    return f"region() {{\n {arrays}\n {''.join(made)} }}"


def test_steps_of_a_stencil(check):
    there, back = STEP.format("a", "b"), STEP.format("b", "a")
    log = check(
        time_tiling(SMALL),
        steps(there, back, there),
        steps("tiles 22 in bands of 2 {\n", there, back, there, "}\n"),
    )
    assert "3 statements on b, a run in bands of 2 rows, 22 rows a tile" in str(log)


def test_a_single_row_is_one_of_the_statements(check):
    there, back = STEP.format("a", "b"), STEP.format("b", "a")
    check(
        time_tiling(SMALL),
        steps(there, BORDER.format("b"), back, BORDER.format("a")),
        steps("tiles 22 in bands of 2 {\n", there, LIFTED.format("b"), back, LIFTED.format("a"), "}\n"),
    )


def test_a_long_chain_is_cut_evenly(check):
    there, back = STEP.format("a", "b"), STEP.format("b", "a")
    check(
        time_tiling(replace(SMALL, parts=4)),
        steps(*[there, back] * 3),
        steps(
            *[
                "tiles 22 in bands of 2 {\n", there, back, there, "}\n", "tiles 22 in bands of 2 {\n",
                back, there, back, "}\n",
            ]
        ),
    )  # fmt: skip


def test_how_far_statements_stand_apart():
    there, back = STEP.format("a", "b"), STEP.format("b", "a")
    region = parse(steps(there, BORDER.format("b"), back, there))
    found = skews(time_tiling(SMALL).fn(region, Log()).body[0].body, region)
    assert [(s.ahead, s.behind) for s in found] == [(0, 0), (0, 1), (1, 1), (2, 2)]


def test_reasons(check):
    there, back = STEP.format("a", "b"), STEP.format("b", "a")
    chain = [there, back] * 4
    for limits, made, reason in (
        (CacheLimits(), chain, "0.1 MB stay in the cache anyhow"),
        (CacheLimits(last=0), [there, back], "they use each array too few times"),
        (CacheLimits(last=0, points=100), chain, "rows of 90 points are too short"),
        (CacheLimits(last=0), chain, "38 rows are too few"),
    ):
        log = check(time_tiling(limits), steps(*made), None)
        assert reason in str(log)


@pytest.mark.parametrize(("second", "reason"), [
    ("a[i,j] = b[39-i,j] for i<40, j<90\n", "b is not used row by row"),
    ("a[i,j] = b[0,j] for i<40, j<90\n", "b is not used row by row"),
    ("a[i,j] = b[2*i,j] for i<20, j<90\n", "b is not used row by row"),
    ("a[i,j] = b[j,i] for i<40, j<40\n", "b is not used row by row"),
    ("c[i] add= b[i,j] init 0.0 for i<40, j<90\n", "c is the result of a fold"),
])  # fmt: skip
def test_what_cannot_be(second, reason):
    region = parse(steps(STEP.format("a", "b"), second))
    assert time_tiling(SMALL).fn(region, Log()) is region
    found = skews(region.body, region)
    assert isinstance(found, Reason) and reason in found.text
    forced = replace(region, body=(TimeTiles(region.body, 2, 20),))
    with pytest.raises(VerifyError, match=reason):
        verify(forced)


def test_views_of_one_memory_stay_apart():
    region = parse(
        "region() {\n inout a: f64[40, 90];  inout z: f64[40, 90] base a\n"
        "a[i,j] = 1.0 for i<40, j<90\n z[i,j] = add(z[i,j], 1.0) for i<40, j<90\n}"
    )
    found = skews(region.body, region)
    assert isinstance(found, Reason) and "z may share memory with a" in found.text


def test_tiles_hold_their_sides_and_whole_bands():
    there, back = STEP.format("a", "b"), STEP.format("b", "a")
    region = parse(steps(there, back, there))
    for height, tile, reason in (
        (2, 2, "lower than the rows at its sides"),
        (3, 20, "whole bands"),
        (2, 4, None),
    ):
        stmt = TimeTiles(region.body, height, tile)
        found = time_tile_conflict(stmt, region)
        assert (found is None) if reason is None else found is not None and reason in found.text


def test_large_grids_in_the_pipeline():
    text = steps(*[STEP.format("a", "b"), STEP.format("b", "a")] * 6).replace("40", "4000")
    text = text.replace("38", "3998").replace("90", "1000")
    log = Log()
    made = CPU.run(parse(text), log, debug=True)
    assert [type(stmt) for stmt in made.body] == [TimeTiles]
    assert CPU.run(made) is made
    small = CPU.run(parse(text.replace("1000", "100")), Log(), debug=True)
    assert not any(isinstance(stmt, TimeTiles) for stmt in small.body)


def bits(region: Region, values, seed: int) -> list[bytes]:
    rng = np.random.default_rng(seed)
    memory = {
        a.name: rng.integers(-3, 4, [n if type(n) is int else int(n.subs(values)) for n in a.shape]).astype(
            a.dtype
        )
        for a in region.arrays
    }
    interp.run(region, memory, values)
    return [value.tobytes() for value in memory.values()]


@settings(max_examples=120, derandomize=True, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 3))
def test_bands_taken_row_by_row(seed, height, tiles):
    rng = random.Random(seed)
    region = Chains(rng).region()
    verify(region)
    made = time_tiling(replace(SMALL, height=height, tiles=tiles)).fn(region, Log())
    verify(made)
    assert parse(dump(made)) == made
    want = bits(region, {}, seed)
    assert bits(made, {}, seed) == want
    assert bits(row_by_row(made, rng), {}, seed) == want


def test_most_random_chains_make_bands():
    count = sum(
        any(
            isinstance(stmt, TimeTiles)
            for stmt in time_tiling(SMALL).fn(Chains(random.Random(k)).region(), Log()).body
        )
        for k in range(100)
    )
    assert count > 60


def high(*made: str) -> Region:
    arrays = "inout a: f64[400, 90];  inout b: f64[400, 90];  inout c: f64[400, 90]"
    return parse(f"region() {{\n {arrays}\n {''.join(made).replace('38', '398')} }}")


@pytest.mark.parametrize(("first", "height"), [(10_000, 4), (5_000, 2), (3_000, 32), (0, 32)])
def test_bands_are_low_where_statements_use_different_arrays(first, height):
    limits = CacheLimits(last=0, near=1 << 18, again=0, points=0, sides=1, first=first)
    steps_in_iterations = [STEP.format("a", "b"), STEP.format("b", "c"), STEP.format("c", "a")]
    ((made),) = time_tiling(limits).fn(high(*steps_in_iterations), Log()).body
    assert made.height == height
    back_and_forth = [STEP.format("a", "b"), STEP.format("b", "a")] * 2
    ((made),) = time_tiling(limits).fn(high(*back_and_forth), Log()).body
    assert made.height == 32


@pytest.mark.parametrize("threads", [1, 2, 3, 5, 40])
@pytest.mark.parametrize("parts", [1, 3, 7])
def test_threads_get_equally_many_tiles(threads, parts):
    limits = CacheLimits(last=0, near=1 << 16, again=0, points=0, threads=threads)
    region = high(*[STEP.format("a", "b"), STEP.format("b", "a")] * parts)
    (made,) = time_tiling(limits).fn(region, Log()).body
    found = skews(made.body, region)
    rows = max(s.first + s.count + s.behind for s in found) + max(s.ahead for s in found)
    tiles = -(-rows // made.tile)
    assert tiles % threads == 0 or tiles < threads
