"""All and any of large boolean arrays: NumPy's answers, and no kernel when NumPy has them at once."""

from __future__ import annotations

import numpy as np
import pytest

import dcarray as dc
from dcarray.recording import short_circuit

NAMES = ("any", "all", "max", "min", "sum", "prod")


@pytest.fixture(autouse=True)
def sizes(monkeypatch):
    monkeypatch.setattr(short_circuit, "WHOLE", 5000)
    monkeypatch.setattr(short_circuit, "FIRST", 1000)
    with dc.options(eager_below=100, jit="eager"):
        yield


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(3000,), (9000,), (4, 4000), (9000, 1), (20, 30, 40)])
def test_numpys_answers(name, shape):
    for value in (False, True):
        for where in (None, 0, 1200, -1):
            a = np.full(shape, value)
            if where is not None:
                a.flat[where] ^= True
            for part in (..., np.s_[::-1], np.s_[1:, ...]):
                want, got = getattr(a[part], name)(), getattr(dc.asarray(a)[part], name)()
                assert got == want and type(got) is type(want)


def test_nothing_is_recorded_for_what_is_there():
    x = dc.asarray(np.zeros(3000, bool))
    dc.evaluate()
    dc.report(reset=True)
    assert not x.any() and not x.max() and x.sum() == 0
    assert dc.report().flushes == 1  # the sum
    y = dc.asarray(np.ones(9000, bool))
    assert y.any() and dc.report().flushes == 1
    assert y.all() and dc.report().flushes == 2


def test_pending_writes_count():
    x = dc.asarray(np.zeros(3000, bool))
    x[500:1000] = True
    assert x.any()
    y = dc.asarray(np.arange(3000.0))
    dc.report(reset=True)
    assert (y > 5).any() and not (y < 0).any()
    assert dc.report().flushes == 2
    assert x.any(keepdims=True).shape == (1,)
