"""Inputs of which it is claimed that they raise nothing raise nothing."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dcarray.ir import interp
from dcarray.ir.analysis import undo_copies, value_ranges
from dcarray.ir.passes.cpu.pipeline import CPU
from dcarray.ir.text import parse
from dcarray.ir.verify import verify

GROWING = """region() {{
  inout a: f64[6, 8];  inout b: f64[6, 8];  in k: i64[6, 8];  in c: f64[];  temp t: f64[6, 8]
  for n in range(0, {iterations}, 1) {{
    t[i,j] = {first} for i<6, j<8
    b[i,j] = {second} for i<6, j<7
    a[i,j] = {third} for i<6, j<8
  }}
}}"""
FINE = ["a[i,j]", "b[i,j]", "2.5", "-0.5", "cast:f64(k[i,j])", "c[]"]


OPS = ["add", "subtract", "multiply", "maximum", "minimum", "square", "negative", "half", "absolute"]
OPS += ["divide", "sqrt", "above"]


@st.composite
def values(draw: Any, names: tuple[str, ...] = (), depth: int = 3) -> str:
    leaves = [*FINE, *names]
    if depth == 0 or draw(st.booleans()):
        return str(draw(st.sampled_from(leaves)))
    one, two = (draw(values(names, depth - 1)) for _ in range(2))
    if draw(st.integers(0, 4)) == 0:
        return f"where(less({one}, {two}), {one}, {two})"
    op = draw(st.sampled_from(OPS))
    if op == "half":
        return f"divide({one}, 2.0)"
    if op in ("divide", "sqrt", "above"):  # by or of something that has a bound from below, mostly
        low = draw(st.sampled_from(["c[]", "0.25", two]))
        form = draw(
            st.sampled_from(["maximum({0}, {1})", "where(less({0}, {1}), {1}, {0})", "square({0})", "{1}"])
        )
        low = form.format(two, low)
        return low if op == "above" else f"sqrt({low})" if op == "sqrt" else f"divide({one}, {low})"
    return f"{op}({one})" if op in ("square", "negative", "absolute") else f"{op}({one}, {two})"


COMPLEX = """region() {{
  inout a: c128[6, 8];  inout b: c128[6, 8];  in x: f64[6, 8];  in c: c128[];  temp t: c128[6, 8]
  inout y: f64[6, 8]
  for n in range(0, {iterations}, 1) {{
    t[i,j] = {first} for i<6, j<8
    b[i,j] = {second} for i<6, j<7
    y[i,j] = {third} for i<6, j<8
  }}
}}"""


@st.composite
def complex_values(draw: Any, names: tuple[str, ...] = (), depth: int = 3) -> str:
    leaves = ["a[i,j]", "b[i,j]", "c[]", "cast:c128(x[i,j])", *names]
    if depth == 0 or draw(st.booleans()):
        return str(draw(st.sampled_from(leaves)))
    one, two = (draw(complex_values(names, depth - 1)) for _ in range(2))
    op = draw(
        st.sampled_from(["add", "subtract", "multiply", "divide", "square", "negative", "conjugate", "where"])
    )
    if op == "where":
        return f"where(less({one}, {two}), {one}, {two})"
    return f"{op}({one})" if op in ("square", "negative", "conjugate") else f"{op}({one}, {two})"


@settings(max_examples=60, deadline=None)
@given(
    complex_values(),
    complex_values(("t[i,j]", "a[i,j+1]")),
    st.sampled_from(["absolute", "real", "imag"]),
    complex_values(("t[i,j]",)),
    st.integers(0, 12),
    st.integers(0, 2**31),
)
def test_what_is_complex_and_harmless_raises_nothing(
    first: str, second: str, part: str, third: str, iterations: int, seed: int
) -> None:
    region = parse(
        COMPLEX.format(iterations=iterations, first=first, second=second, third=f"{part}({third})")
    )
    verify(region)
    limits = value_ranges.safe_limits(region)
    if limits is None:
        return
    rng = np.random.default_rng(seed)
    few = [limits.most, -limits.most, 1.0, 0.0]
    data = {name: rng.choice(few, (6, 8)) + 1j * rng.choice(few, (6, 8)) for name in "ab"}
    data |= {name: rng.choice(few, (6, 8)) for name in "xy"}
    data["c"] = np.array(rng.choice(few) + 1j * rng.choice(few))
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        interp.run(region, data, {})


@pytest.mark.parametrize(("first", "least"), [
    ("add(a[i,j], multiply(c[], b[i,j]))", 2.0**256),
    ("add(a[i,j], negative(b[i,j]))", 2.0**512),
    ("square(a[i,j])", 2.0**256),
    ("divide(a[i,j], c[])", 0.0),
    ("sqrt(a[i,j])", 0.0),
    ("where(less(a[i,j], b[i,j]), a[i,j], b[i,j])", 2.0**512),
])  # fmt: skip
def test_bounds_of_complex_values(first: str, least: float) -> None:
    region = parse(COMPLEX.format(iterations=1, first=first, second="t[i,j]", third="absolute(t[i,j])"))
    assert value_ranges.safe_limits(region) == ((least, 0.0) if least else None)


def test_the_largest_part() -> None:
    region = parse(
        "region() {\n inout a: c64[3, 4];  in z: c128[];  in x: f64[]\n a[i,j] = a[i,j] for i<3, j<4\n}"
    )
    given = [array for array in region.arrays if array.name in value_ranges.checked_inputs(region)]
    a = np.array([[1, 2j, 3 - 7j, 1], [0, 0, 1, 1], [2, 2, 2, 6 + 1j]], np.complex64)
    found = {f"most{k}": np.zeros(()) for k in range(3)}
    for made in (value_ranges.magnitude_region(given), CPU.run(value_ranges.magnitude_region(given))):
        parts = {"x0": a.view(np.float32).reshape(3, 4, 2), "x1": np.array([0.5, -9.0]), "x2": np.array(-3.0)}
        interp.run(made, {**parts, **found}, {})
        assert [float(found[f"most{k}"]) for k in range(3)] == [7.0, 9.0, -3.0]


@settings(max_examples=60, deadline=None)
@given(
    values(), values(("t[i,j]", "a[i,j+1]")), values(("t[i,j]",)), st.integers(0, 12), st.integers(0, 2**31)
)
def test_what_is_harmless_raises_nothing(
    first: str, second: str, third: str, iterations: int, seed: int
) -> None:
    region = parse(GROWING.format(iterations=iterations, first=first, second=second, third=third))
    verify(region)
    limits = value_ranges.safe_limits(region)
    if limits is None:
        return
    bound = limits.most
    rng = np.random.default_rng(seed)
    data = {name: rng.choice([bound, -bound, 1.0, 0.0], (6, 8)) for name in "ab"}
    data["c"] = np.array(rng.choice([limits.least or -bound, bound, 1.0]))
    data["k"] = rng.choice([-(2**63), 2**63 - 1, 0, 1], (6, 8))
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        interp.run(region, data, {})


@pytest.mark.parametrize(("first", "least"), [
    ("multiply(0.25, add(a[i,j], b[i,j]))", 2.0**512),
    ("multiply(3.0, a[i,j])", 2.0**512),
    ("divide(a[i,j], 4.0)", 2.0**512),
    ("multiply(a[i,j], b[i,j])", 2.0**256),
    ("divide(a[i,j], b[i,j])", 0.0),
    ("divide(a[i,j], 0.0)", 0.0),
    ("sqrt(a[i,j])", 0.0),
    ("sqrt(absolute(a[i,j]))", 2.0**512),
    ("divide(a[i,j], maximum(b[i,j], 0.5))", 2.0**512),
    ("divide(a[i,j], maximum(b[i,j], 0.0))", 0.0),
    ("divide(a[i,j], where(less_equal(b[i,j], 0.1), 1.0, b[i,j]))", 2.0**512),
    ("divide(a[i,j], where(greater(0.1, b[i,j]), 1.0, b[i,j]))", 2.0**512),
    ("divide(a[i,j], where(less(0.1, b[i,j]), b[i,j], -1.0))", 2.0**512),
    ("divide(a[i,j], where(less(b[i,j], 0.1), b[i,j], 1.0))", 0.0),
    ("divide(a[i,j], where(less_equal(b[i,j], -0.1), 1.0, b[i,j]))", 0.0),
    ("exp(a[i,j])", 0.0),
    ("t[i,j]", 0.0),  # which nobody has written
])  # fmt: skip
def test_bounds(first: str, least: float) -> None:
    region = parse(GROWING.format(iterations=1, first=first, second="t[i,j]", third="t[i,j]"))
    assert value_ranges.safe_limits(region) == ((least, 0.0) if least else None)


@pytest.mark.parametrize(("iterations", "known"), [(100, True), (900, True), (1100, False)])
def test_growth_over_iterations(iterations: int, known: bool) -> None:
    region = parse(
        GROWING.format(
            iterations=iterations, first="add(a[i,j], b[i,j])", second="b[i,j]", third="multiply(2.0, a[i,j])"
        )
    )
    assert (value_ranges.safe_limits(region) is not None) is known


def test_a_number_that_has_to_be_positive() -> None:
    region = parse(GROWING.format(iterations=1, first="divide(a[i,j], c[])", second="t[i,j]", third="t[i,j]"))
    assert value_ranges.safe_limits(region) == (2.0**256, 2.0**-256)


def test_what_has_no_bound() -> None:
    for text in (
        "region() {\n inout a: f64[4]\n a[i] = cast(cast(a[i])) for i<4\n}".replace(
            "cast(cast(a[i]))", "cast:f64(cast:i64(a[i]))"
        ),
        "region() {\n inout a: f16[4]\n a[i] = add(a[i], a[i]) for i<4\n}",
        "region() {\n inout a: f64[4];  inout z: f64[4] base a\n a[i] = add(z[i], a[i]) for i<4\n}",
    ):
        assert value_ranges.safe_limits(parse(text)) is None


def test_sums_of_many() -> None:
    text = (
        "region() {\n in a: f64[1000];  inout s: f64[]\n s[] add= multiply(a[i], a[i]) init 0.0 for i<1000\n}"
    )
    assert value_ranges.safe_limits(parse(text)) == (2.0**256, 0.0)
    single = text.replace("f64", "f32").replace("init 0.0", "init 0.0:f32")
    assert value_ranges.safe_limits(parse(single)) == (2.0**32, 0.0)


def test_copies_can_be_left_out() -> None:
    before = parse(GROWING.format(iterations=3, first="a[i,j]", second="t[i,j]", third="add(t[i,j], b[i,j])"))
    made, kept = undo_copies.with_undo_copies(before, ("a", "b"))
    after = undo_copies.without_copies(made, kept)
    verify(after)
    assert after == before
    assert undo_copies.without_copies(before, ()) is before


def test_copies_that_are_used_stay() -> None:
    before = parse("region() {\n inout a: f64[6]\n a[i] = add(a[i], 1.0) for i<6\n}")
    _, kept = undo_copies.with_undo_copies(before, ("a",))
    used = parse(
        "region() {\n inout a: f64[6];  out kept_a: f64[6]\n kept_a[i] = a[i] for i<6\n"
        " a[i] = add(kept_a[i], 1.0) for i<6\n}"
    )
    assert undo_copies.without_copies(used, kept) is used
