"""Who raised a floating-point exception: random programs in place against what NumPy says."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dcarray as dc
from dcarray.core import fp_attribution
from dcarray.ir import interp, parse
from dcarray.ir.analysis import effects, undo_copies
from dcarray.ir.log_entries import Statement

SPECIAL = [0.0, -0.0, 1.0, -2.5, 1e308, -1e308, 1e-308, 1e200, np.inf, -np.inf, np.nan]


def _add(x, y):
    x += y


def _halve(x, y):
    x *= 0.5


def _square(x, y):
    x *= x


def _divide(x, y):
    x /= y


def _clamp(x, y):
    x[x > 1.5] = 1.5


def _shift(x, y):
    x[1:] -= y[:-1]


def _both(x, y):
    x[::2] = np.sqrt(y[::2]) * x[::2]


def _least(x, y):
    x[:] = np.minimum(x, y)


def _other(x, y):
    y += x[::-1]


def _where(x, y): x[...] = np.where(y > 0, x / y, x)  # fmt: skip


STEPS = [_add, _halve, _square, _divide, _clamp, _shift, _both, _least, _other, _where]
values = st.lists(st.sampled_from(SPECIAL), min_size=6, max_size=6)


def _run(steps, x, y, **state):
    with warnings.catch_warnings(record=True) as caught, np.errstate(**state):
        warnings.simplefilter("always")
        for step in steps:
            step(x, y)
        dc.evaluate()
    return [(str(w.message), w.lineno) for w in caught]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(st.sampled_from(STEPS), min_size=1, max_size=4),
    values,
    values,
    st.sampled_from([{}, {"all": "warn"}, {"all": "ignore"}, {"over": "ignore", "invalid": "warn"}]),
)
def test_warnings_and_values_are_numpys(steps, x, y, state):
    a, b = np.array(x), np.array(y)
    u, v = a.copy(), b.copy()
    said = _run(steps, a, b, **state)
    with dc.options(eager_below=0, jit="eager"):
        c, d = dc.asarray(u), dc.asarray(v)  # whose calls are recorded
        assert _run(steps, c, d, **state) == said
    assert np.asarray(c).tobytes() == a.tobytes() and np.asarray(d).tobytes() == b.tobytes()


@pytest.mark.parametrize(("log", "wanted"), [
    ([("map", "add", "dd->d")], (-1, 0, -1, 0)),
    ([("map", "greater", "dd->?"), ("map", "where", "?dd->d")], (-1, -1, -1, -1)),
    ([("map", "multiply", "dd->d"), ("map", "add", "dd->d")], (-1, -2, 0, -2)),
    ([("map", "divide", "dd->d"), ("map", "greater", "dd->?")], (0, 0, 0, -2)),
    ([("map", "add", "FF->F")], (-2, -2, -2, -2)),
    ([("map", "floor_divide", "ll->l")], (-2, -2, -2, -2)),
    ([("map", "add", "ll->l"), ("map", "cast", "d->d")], (-1, -1, -1, -1)),
    ([("fold", "add", "d")], (-2, -2, -2, -2)),
    ([("call", "linalg.solve", "")], (-2, -2, -2, -2)),
])  # fmt: skip
def test_culprits(log, wanted):
    log = [Statement(*entry, (), (), ()) for entry in log]
    assert fp_attribution.culprits(log) == wanted
    odd = fp_attribution.culprits(log, odd=True)
    assert all(
        (one == fp_attribution.NOBODY) == (other == fp_attribution.NOBODY)
        for one, other in zip(odd, wanted, strict=True)
    )


@pytest.mark.parametrize(("body", "where"), [
    ("a[i+1] = add(a[i+1], 1.0) for i<6", "(slice(1, 7, 1), )"),
    ("a[2*i] = add(a[2*i], 1.0) for i<4", "(slice(0, 7, 2), )"),
    ("a[i] = mul(a[i], 2.0) for i<8\n a[i+1] = add(a[i+1], 1.0) for i<6", "(slice(0, 8, 1), )"),
    ("a[i+1] = add(a[i+1], 1.0) for i<6\n a[i] = mul(a[i], 2.0) for i<8", "(slice(0, 8, 1), )"),
    ("a[7-i] = add(a[7-i], 1.0) for i<8", "(slice(0, 8, 1), )"),
])  # fmt: skip
def test_what_is_kept(body, where):
    body = body.replace("mul(", "multiply(")
    region = parse.parse(f"region() {{\n inout a: f64[8]\n {body}\n}}")
    assert effects.overwritten_inputs(region) == ("a",)
    kept, (one,) = undo_copies.with_undo_copies(region, ("a",))
    assert (one.array, one.slices) == ("a", where)
    before = np.arange(8.0)
    after = {"a": before.copy(), one.copy: np.full(8, -1.0)}
    interp.run(kept, after)
    place = eval(one.slices)
    again = after["a"].copy()
    again[place] = after[one.copy][place]
    assert again.tobytes() == before.tobytes()


def test_nothing_to_keep():
    region = parse.parse("region() {\n inout a: f64[8]\n a[i] = 1.0 for i<8\n}")
    assert undo_copies.with_undo_copies(region, ()) == (region, ())
