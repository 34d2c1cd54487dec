"""The report and the facts of the machine."""

from __future__ import annotations

import numpy as np

import dcarray as dc
from dcarray.core.counters import counters, note, user_line


def test_user_line_is_outside_the_package():
    file, line = user_line()
    assert file.endswith("test_report.py") and line > 0


def test_notes_add_up_and_reset():
    dc.report(reset=True)
    for _ in range(3):
        note("f", 10)
    note("g", 1, "numpy", ("x.py", 4))
    rows = dc.report().fallbacks
    assert [(r.function, r.count, r.bytes, r.kind) for r in rows] == [
        ("f", 3, 30, "fallback"),
        ("g", 1, 1, "numpy"),
    ]
    assert rows[0].where.startswith(__file__) and rows[1].where == "x.py:4"
    counters.kernels += 2
    assert dc.report(reset=True).kernels >= 2
    assert dc.report().fallbacks == () and dc.report().kernels == 0


def test_methods_that_numpy_does_leave_a_line_for_large_arrays():
    with dc.options(eager_below=4):
        x, little = dc.asarray(np.arange(9.0)[::-1].copy()), dc.asarray(np.array([2.0, 1.0]))
        dc.report(reset=True)
        x.sort()
        little.sort()
        rows = dc.report(reset=True).fallbacks
    assert [(r.function, r.count, r.kind) for r in rows] == [("numpy.ndarray.sort", 1, "numpy")]


def test_report_reads_well():
    dc.report(reset=True)
    note("<f>", 10)
    shown = dc.report()
    assert "kernels run" in str(shown) and "<f>" in str(shown)
    assert "&lt;f&gt;" in shown._repr_html_()


def test_info():
    facts = dc.info()
    text = str(facts)
    assert facts.versions["numpy"] == np.__version__
    for word in ("numpy", "threads", "blas", "eager_below", "cache folder", "cpu features"):
        assert word in text
