"""Undo copies of arrays that loops overwrite restore them to the bit."""

import warnings

import numpy as np
import pytest
from written import written

import dcarray as dc
from dcarray.jit.loops.sites import run_loop

FILL = """
def f(out, data):
    for i in range(data.shape[1] - 1):
        out[i + 1 :, i] = out[i, i + 1 :] = out[i, i + 1 :] + data[:, i] @ data[:, i + 1 :]
    return out
"""


@pytest.mark.parametrize("top", [1.0, 1e200, np.inf])
def test_a_failed_loop_of_products_starts_from_its_undo_copies(monkeypatch, top):
    fill, copies = written(FILL), []
    monkeypatch.setattr(run_loop, "_copied", lambda a: copies.append(a) or a.copy())
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
