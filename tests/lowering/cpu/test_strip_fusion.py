"""Strip-wise fusion of loops along the same rows."""

import numpy as np
import pytest

import dcarray as dc
from dcarray.ir.text import parse
from dcarray.lowering.cpu.schedules import scheduler
from dcarray.lowering.kernel.text import kernel_text

FOLDED = "w[j] add= multiply(A[i,j], r[i]) init 0.0 for i<2000, j<1000"
SUMMED = "y[i] add= multiply(A[i,j], x[j]) init 0.0 for i<2000, j<1000"
BETWEEN = "r[i] = multiply(z[i], 2.0) for i<2000"


def kernel_of(*body: str) -> str:
    region = parse(f"""region() {{
  in A: f64[2000, 1000];  in x: f64[1000];  in z: f64[2000]
  inout r: f64[2000];  inout y: f64[2000];  out w: f64[1000]
  rows 1 {{ {"; ".join(body)} }}
}}""")
    return kernel_text(scheduler.schedule(region.body[0], region)[0])


def together(found: str) -> bool:
    """Does a loop go along each leaf of a row's sum?"""
    return found.count("vector i1 = z") == found.count("short b6 =") > 0


@pytest.mark.parametrize("body", [(FOLDED, SUMMED), (SUMMED, FOLDED)])
def test_what_folds_the_rows_goes_with_what_sums_them(body: tuple[str, ...]) -> None:
    assert together(kernel_of(*body))


@pytest.mark.parametrize("body", [
    (SUMMED, FOLDED.replace("r[i]", "y[i]")),  # the whole sum
    (FOLDED, BETWEEN, SUMMED),  # with the values from before
    (SUMMED, BETWEEN, FOLDED),
])  # fmt: skip
def test_what_depends_on_a_whole_row_waits_for_it(body: tuple[str, ...]) -> None:
    assert not together(kernel_of(*body))


PROGRAMS = {
    "bicg": lambda A, x, y, r: (r @ A, A @ x),
    "mvt": lambda A, x, y, r: (A @ x, y @ A),
    "atax": lambda A, x, y, r: ((A @ x) @ A,),
    "written before": lambda A, x, y, r: (np.add(y, A @ x, out=y), y @ A),
    "written after": lambda A, x, y, r: (y @ A, np.add(y, A @ x, out=y)),
    "three": lambda A, x, y, r: (y @ A, A @ x, r @ A),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("shape", [(1, 1), (37, 511), (603, 1000), (1026, 513), (130, 4100)])
def test_products_with_a_matrix_from_both_sides(name: str, shape: tuple[int, int]) -> None:
    """Whole numbers, so that sums have no rounding errors."""
    rng = np.random.default_rng(sum(shape))
    sizes = (shape, shape[1:], shape[:1], shape[:1])
    plain = [rng.integers(-8, 9, size).astype(float) for size in sizes]
    ours = [dc.asarray(a.copy()) for a in plain]
    with dc.options(eager_below=0, jit="eager"):
        found = PROGRAMS[name](*ours)
        dc.evaluate(*found)
    for got, wanted in zip(found, PROGRAMS[name](*plain), strict=True):
        np.testing.assert_array_equal(np.asarray(got), wanted)
