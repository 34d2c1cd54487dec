"""Undo copies of arrays that loops overwrite restore them to the bit."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from written import written

import dcarray as dc
from dcarray.jit.loops.sites import run_loop
from dcarray.jit.loops.sites.undo_copies import CompressedCopy

SPECIAL = [0.0, -0.0, 1.0, np.nan, np.inf, 5e-324]


@settings(max_examples=24, deadline=None, derandomize=True)
@given(
    st.sampled_from("?bHifdFD"),
    st.sampled_from(SPECIAL),
    st.lists(st.tuples(st.integers(0, 99_999), st.sampled_from(SPECIAL)), max_size=6),
    st.sampled_from([1, 7, 100_000]),
    st.sampled_from(["C", "F"]),
)
def test_restored_bits(char, usual, others, stretch, order):
    with np.errstate(all="ignore"):
        a = np.full((400, 250), np.array(usual).astype(char), char, order)
        for at, value in others:
            a.reshape(-1, order=order)[at : at + stretch] = np.array(value).astype(char)
    before, held = a.tobytes(), CompressedCopy(a)
    a[...] = 3
    held.restore(a)
    assert a.tobytes() == before


@pytest.mark.parametrize("a", [np.zeros((512, 512)), np.eye(512), np.full((300, 300), -0.0, "f")])
def test_nearly_constant_arrays_are_compressed(a):
    before = a.tobytes()
    held = CompressedCopy(a)
    assert held._whole is None
    a += 1
    held.restore(a)
    assert a.tobytes() == before


def test_other_arrays_are_copied():
    a = np.random.default_rng(1).random((300, 300))
    a[:150] = 0.0
    before, held = a.copy(), CompressedCopy(a)
    a[...] = 7.0
    held.restore(a)
    assert (a == before).all()


FILL = """
def f(out, data):
    for i in range(data.shape[1] - 1):
        out[i + 1 :, i] = out[i, i + 1 :] = out[i, i + 1 :] + data[:, i] @ data[:, i + 1 :]
    return out
"""


@pytest.mark.parametrize("top", [1.0, 1e200, np.inf])
def test_a_failed_loop_of_products_starts_from_its_undo_copies(monkeypatch, top):
    fill, copies = written(FILL), []
    monkeypatch.setattr(run_loop, "CompressedCopy", lambda a: copies.append(a) or CompressedCopy(a))
    monkeypatch.setattr(run_loop, "may_stop", lambda allowed: False)
    data = np.random.default_rng(2).random((400, 300))
    data[3, 7] = data[3, 250] = top
    said, results = [], []
    with dc.options(jit="eager", eager_below=0):
        for f in (fill, dc.accelerate(fill)):
            for k in range(3):
                out = np.eye(300)
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    results.append(np.asarray(f(out, data)))
                if k == 0:  # a plan's first run can be undone in any case
                    copies.clear()
                said.append({str(w.message) for w in caught})
    assert all(words == said[0] for words in said)
    assert bool(copies) == (top > 1.0)  # small inputs raise nothing
    for result in results:
        np.testing.assert_allclose(result, results[0], rtol=1e-12)
