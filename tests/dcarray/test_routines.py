"""Routines are compiled by the process that plans, and found in the cache folder by the next one."""

import sys
import textwrap

from fresh import python

import dcarray as dc
from dcarray.execution import routines
from dcarray.execution.executor import EXECUTOR
from dcarray.lowering.program import loaded_plan

CHILD = """
    import sys
    import numpy as np, dcarray as dc
    from dcarray.plans import client
    from dcarray.execution.executor import EXECUTOR
    from dcarray.api.functions import searching, sliding
    a = np.random.default_rng(1).random(300_000)
    with dc.options(jit="background", cache_dir=sys.argv[1]):
        x, line = dc.asarray(a), np.arange(20.0)
        for k in range(3):
            at = np.searchsorted(dc.asarray(line), x)
            np.testing.assert_array_equal(np.asarray(at), np.searchsorted(line, a))
            np.testing.assert_allclose(np.asarray(np.convolve(x, line)), np.convolve(a, line))
            EXECUTOR.background.wait()
    launches = searching._SEARCHES["d", "left"].plan, sliding._PRODUCTS["d"].plan
    print(None not in launches, client.CLIENT._process is not None, "llvmlite.binding" in sys.modules)
"""


def child(folder):
    done = python("-c", textwrap.dedent(CHILD), folder)
    return done.stdout.split()


def test_another_process_compiles(tmp_path):
    first, second = child(str(tmp_path)), child(str(tmp_path))
    assert first[:2] == ["True", "True"]
    assert second == ["True", "False", first[2]]
    assert sys.platform != "linux" or first[2] == "False"


def test_without_a_folder():
    assert child("")[0] == "True"


def test_numpy_serves_while_the_code_is_awaited_and_if_there_is_none(monkeypatch):
    def unfit(request):
        raise loaded_plan.NotPortable("no code")

    jobs = []
    monkeypatch.setattr(EXECUTOR.background, "submit_later", lambda job, *_: jobs.append(job))
    monkeypatch.setattr(routines, "_load_or_request", unfit)
    routine = routines.Compiled("searching", "interpolation", None)
    with dc.options(jit="background", cache_dir=None):
        for _ in range(2):
            assert routine.launch(0.0) is None
        (made,) = jobs
        made()
        assert routine.launch(0.0) is None  # NumPy serves for good
