"""Copies that loops make of what they overwrite give it back to the bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dcarray.program import copy
from dcarray.program.copy import Copy

SPECIAL = [0.0, -0.0, 1.0, np.nan, np.inf, 5e-324]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.sampled_from("?bHifdFD"),
    st.sampled_from(SPECIAL),
    st.lists(st.tuples(st.integers(0, 99_999), st.sampled_from(SPECIAL)), max_size=6),
    st.sampled_from([1, 7, 100_000]),
    st.sampled_from(["C", "F"]),
)
def test_all_is_as_it_was(char, usual, others, stretch, order):
    with np.errstate(all="ignore"):
        a = np.full((400, 250), np.array(usual).astype(char), char, order)
        for at, value in others:
            a.reshape(-1, order=order)[at : at + stretch] = np.array(value).astype(char)
    before, held = a.tobytes(), Copy(a)
    a[...] = 3
    held.restore(a)
    assert a.tobytes() == before


@pytest.mark.parametrize("a", [np.zeros((512, 512)), np.eye(512), np.full((300, 300), -0.0, "f")])
def test_what_is_nearly_all_the_same_takes_no_memory(monkeypatch, a):
    monkeypatch.setattr(copy, "empty", None)
    before = a.tobytes()
    held = Copy(a)
    a += 1
    held.restore(a)
    assert a.tobytes() == before


def test_what_is_not_is_copied():
    a = np.random.default_rng(1).random((300, 300))
    a[:150] = 0.0
    before, held = a.copy(), Copy(a)
    a[...] = 7.0
    held.restore(a)
    assert (a == before).all()
