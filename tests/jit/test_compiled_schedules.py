"""Programs that are compiled with a schedule: calls run it; steps that do not fit are errors at compile."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from program_runs import module

import dcarray as dc
from dcarray.ir.passes import Pass
from dcarray.jit.program.description import describe
from dcarray.jit.program.program_requests import ProgramRequest
from dcarray.lowering import targets
from dcarray.lowering.targets import get

SOURCE = """
import numpy as np
import dcarray as dc

N, M = dc.symbol("N"), dc.symbol("M")
FACTOR = 2.0


@dc.program
def smooth(A: dc.types.float64[N, M], B: dc.types.float64[N, M]):
    t = FACTOR * A
    B[1:-1] = t[:-2] + t[2:]
    return B.sum(axis=0)


@dc.program
def other(A: dc.types.float64[N, M], B: dc.types.float64[N, M]):
    B += A
"""


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    made = module(tmp_path, SOURCE)
    with dc.options(jit="eager", cache_dir=None):
        yield made


def served(program, a, b):
    """What a call does, compared with the function, and the plan that has served it."""
    got, want = b.copy(), b.copy()
    for _ in range(2):
        got = b.copy()
        result = program(a, got)
    expected = program.written(a, want)
    np.testing.assert_allclose(result, expected, rtol=1e-13)
    np.testing.assert_array_equal(got, want)
    return program._last[2]._loaded


SIZES = [(5, 4), (37, 21), (300, 70)]


def test_calls_run_the_schedule(names):
    f = names.smooth
    rng = np.random.default_rng(0)
    plain = f.compile()
    plans = {}
    schedules = {
        "passes": None,
        "as it is": f.schedule(),
        "fused": f.schedule().apply("fuse"),
        "tiled": f.schedule().apply("fuse").tile(0, (16, None)),
        "loops": f.schedule().apply("fuse").tile(0, (1, 8)).interchange(0, (1, 0)),
    }
    for name, schedule in schedules.items():
        assert f.compile(schedule=schedule) is plain
        for n, m in SIZES:
            plans.setdefault(name, set()).add(id(served(f, rng.random((n, m)), rng.random((n, m)))))
    assert all(len(found) == 1 for found in plans.values())
    assert len(set.union(*plans.values())) == len(plans)
    f.compile(schedule=schedules["tiled"])  # which is there
    assert {id(served(f, rng.random((9, 9)), rng.random((9, 9))))} == plans["tiled"]


def test_a_schedule_needs_no_other_passes(names):
    """Statements that stay apart are kernels of their own."""
    f = names.smooth
    a, b = np.random.default_rng(0).random((2, 40, 30))
    f.compile(schedule=f.schedule())
    as_it_is = served(f, a, b)
    f.compile(schedule=f.schedule().apply("fuse"))
    fused = served(f, a, b)
    assert as_it_is.kernels == fused.kernels + 1


def test_explain_has_the_steps(names):
    f = names.smooth
    assert "after the passes" in f.explain()
    f.compile(schedule=f.schedule().apply("fuse").tile(0, (64, None)))
    text = f.explain()
    assert (
        "after the steps of its schedule (fuse; tile(0, (64, None)))" in text and "range(0, N-2, 64)" in text
    )
    f.compile()
    assert "after the passes" in f.explain()


def test_steps_that_do_not_fit_are_errors_at_compile(names):
    f = names.smooth
    s = f.schedule().apply("fuse").tile(0, (16, None))
    with pytest.raises(dc.ScheduleError, match=r"tile\(0, \(16, None\)\).* does not fit other"):
        names.other.compile(schedule=s)
    with pytest.raises(dc.ScheduleError, match="does not fit other: the function"):
        names.other.compile(schedule=f.schedule())
    with pytest.raises(TypeError, match=r"made by smooth.schedule\(\), not str"):
        f.compile(schedule="fuse")
    one = SimpleNamespace(name="mine", fn=lambda region, log: region)
    with pytest.raises(dc.ScheduleError, match="mine: a pass of one's own is part of a target"):
        f.compile(schedule=f.schedule().apply(one))
    a = np.ones((9, 9))
    f.compile(schedule=s)
    served(f, a, a.copy())


def test_passes_of_other_targets_are_errors_at_compile(names, monkeypatch):
    f = names.smooth
    mine = get("cpu").with_pass(Pass("mine", lambda region, log: region))
    monkeypatch.setitem(targets._loaded, "more", replace(mine, name="more"))
    with dc.options(target="more"):
        made = f.schedule().apply("mine")
        f.compile(schedule=made)
    with pytest.raises(dc.ScheduleError, match="mine: no pass is called 'mine'; the passes are"):
        f.compile(schedule=made)


def test_other_globals_are_compiled_with_the_same_steps(names):
    f = names.smooth
    a, b = np.random.default_rng(0).random((2, 40, 30))
    f.compile(schedule=f.schedule().apply("fuse"))
    first = served(f, a, b)
    f.written.__globals__["FACTOR"] = 3.0
    second = served(f, a, b)
    assert second is not first and second.kernels == first.kernels


def test_lists_are_compiled_by_the_passes(names):
    a, b = np.random.default_rng(0).random((2, 8, 5))
    g = names.smooth
    source = names.other
    source.compile(schedule=source.schedule().tile(0, (4, None)))
    with (
        dc.options(strict=True),
        pytest.raises(TypeError, match="is a list"),
    ):  # as without a schedule: its source only fits arrays
        g(a.tolist(), b.tolist())


def test_requests_have_the_steps_in_their_keys(names):
    program = describe(names.smooth.written)
    keys = {
        ProgramRequest(program, False, 1, None, "cpu", "some", changes).text()
        for changes in (None, (), (("apply", ("fuse",)),), (("tile", (0, (16, None))),))
    }
    assert len(keys) == 4
