"""The option ``target``: plans for the targets that are built in, and for one of the user's own."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import dcarray as dc
from dcarray.lowering import targets
from dcarray.plans import disk_store
from dcarray.plans.log_requests import LogRequest

MINE = """
from dataclasses import replace

import numpy as np

from dcarray.ir.nodes import Apply, Call, Compute, Load
from dcarray.ir.ops import CALLS, CallOp
from dcarray.ir.passes.base import Pass
from dcarray.lowering.targets import get


def meaning(writes, reads, attrs):
    np.negative(reads[0], out=writes[0])


CALLS["mine.negate"] = CallOp("mine.negate", meaning, over=0)


def find_negations(region, log):
    body = []
    for stmt in region.body:
        match stmt:
            case Compute(to, Apply("negative", (Load(window),)), None, None) if to.index == window.index:
                stmt = Call("mine.negate", (window,), (to,), loc=stmt.loc)
        body.append(stmt)
    return region if tuple(body) == region.body else replace(region, body=tuple(body))


def negate(writes, reads, attrs, own):
    with open(__file__ + ".log", "a") as log:
        log.write("x")
    np.negative(reads[0], out=writes[0])
    return 0


NEGATIONS = Pass("find_negations", find_negations)
TARGET = get("cpu").with_pass(NEGATIONS, before="fuse").with_library_call(
    "mine.negate", "mine:negate", lambda call, region: True
)
NUMBER = 1
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A module of a user with a target, and what has been written by its library."""
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("mine", None)
    targets._loaded.pop("mine:TARGET", None)
    targets.module_digest.cache_clear()


def program(a):
    x = dc.asarray(a.copy())
    y = -x
    return np.asarray(np.cumsum(np.sqrt(abs(y)) + 1)), np.asarray(y @ y[:, None] if y.ndim > 1 else y)


@pytest.mark.parametrize("jit", ["eager", "background"])
def test_programs_run_through_the_c_compiler(jit, tmp_path):
    a = np.linspace(-3, 7, 50_003)
    with dc.options(target="c", jit=jit, eager_below=0, cache_dir=str(tmp_path)):
        for _ in range(4):
            dc.report(reset=True)
            got = program(a)
            dc.wait()
        assert dc.report().kernels > 0 and dc.report().interpreted == 0
    want = np.cumsum(np.sqrt(abs(-a)) + 1), -a
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("name", ["gpu", "no_such_module:X", "math:pi", "math:", "__main__:X", 3])
def test_unknown_targets_are_refused_with_those_there_are(name):
    with pytest.raises(ValueError, match="target="), dc.options(target=name):
        pass
    if isinstance(name, str):
        with (
            pytest.raises(ValueError, match=r"'cpu', 'c', and 'package.module:NAME'"),
            dc.options(target=name),
        ):
            pass


def test_a_plan_for_one_target_serves_no_other(tmp_path):
    a = np.linspace(0, 1, 4099)
    for target, made in (("cpu", True), ("c", True), ("cpu", False)):
        with dc.options(target=target, jit="eager", eager_below=0, cache_dir=""):
            dc.report(reset=True)
            x = dc.asarray(a)  # a log that no other test has
            found = (x * 3 + 1) * 0.71875 - x / 0.3125
            np.testing.assert_array_equal(np.asarray(found), (a * 3 + 1) * 0.71875 - a / 0.3125)
            assert (dc.report().compiles + dc.report().cache_hits > 0) == made


def test_passes_and_library_calls_of_ones_own(mine):
    a = np.linspace(-3, 7, 4099)
    with dc.options(target="mine:TARGET", jit="eager", eager_below=0, cache_dir=""):
        np.testing.assert_array_equal(np.asarray(-dc.asarray(a)), -a)
    assert (mine / "mine.py.log").read_text() == "x"


def test_another_process_plans_for_a_target_of_ones_own(mine):
    code = textwrap.dedent("""
        import numpy as np, dcarray as dc, sys
        from dcarray.plans import client
        a = np.linspace(-3, 7, 400_003)
        for _ in range(4):
            assert (np.asarray(-dc.asarray(a)) == -a).all()
            dc.wait()
        assert client.CLIENT._process is not None
    """)
    environment = {**os.environ, "PYTHONPATH": str(mine), "DCARRAY_TARGET": "mine:TARGET"}
    environment |= {"DCARRAY_CACHE_DIR": str(mine / "cache"), "DCARRAY_EAGER_BELOW": "0"}
    environment["DCARRAY_JIT"] = "background"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (mine / "mine.py.log").read_text()


def test_the_source_of_the_target_is_part_of_the_key(mine):
    request = LogRequest((), (), "", (), (), (), False, 1, None, "mine:TARGET")
    store = disk_store._store(str(mine / "plans"))
    first = disk_store._key(request, store)
    assert disk_store._key(request, store) == first != disk_store._key(request._replace(target="cpu"), store)
    targets.module_digest.cache_clear()
    (mine / "mine.py").write_text(MINE.replace("NUMBER = 1", "NUMBER = 2"))
    assert disk_store._key(request, store) != first


def test_derived_targets_leave_the_others_alone(mine):
    cpu = targets.get("cpu")
    own = targets.get("mine:TARGET")
    assert "mine.negate" not in cpu.libraries and "find_negations" not in cpu.pipeline(1).names
    passes = [one.name for one in own.pipeline(1).passes]
    assert passes.index("find_negations") == passes.index("fuse") - 1
    assert own.key == cpu.key  # kernels are compiled once for both
    with pytest.raises(ValueError, match="no pass is called 'nothing'"):
        cpu.with_pass(own.pipeline(1).passes[0], after="nothing")
