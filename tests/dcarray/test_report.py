"""The report and the facts of the machine."""

import numpy as np
from made_up_device import MadeUpDevice

import dcarray as dc
from dcarray.core.counters import counters, note, user_line
from dcarray.lowering import targets
from dcarray.lowering.cpu.c import target as c_target
from dcarray.lowering.gpu import devices


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


def test_info_lists_targets_and_devices(monkeypatch):
    monkeypatch.setitem(devices._found, "cuda", devices.NoDevice("no driver: install one"))
    there = MadeUpDevice("opencl:0")
    there.description = "a card"
    monkeypatch.setitem(devices._found, "opencl", [there])
    facts = dc.info()
    assert set(targets.names()) | set(devices.KINDS) == set(facts.targets)
    assert "llvmlite" in facts.targets["cpu"] and facts.targets["cuda"] == "missing: no driver: install one"
    assert list(facts.devices) == ["cpu", "opencl:0"] and facts.devices["opencl:0"] == "a card"
    lines = {tuple(line.split(None, 2)) for line in str(facts).splitlines()}
    assert ("target", "cuda", "missing: no driver: install one") in lines
    assert ("device", "opencl:0", "a card") in lines
    assert ("device", "cpu", facts.cpu) in lines


def test_info_without_a_c_compiler_says_what_installs_one(monkeypatch):
    c_target.compiler.cache_clear()
    monkeypatch.setattr(c_target.shutil, "which", lambda name: None)
    monkeypatch.setattr(c_target.importlib.util, "find_spec", lambda name: None)
    try:
        assert "pip install 'dcarray[c]'" in dc.info().targets["c"]
    finally:
        c_target.compiler.cache_clear()
