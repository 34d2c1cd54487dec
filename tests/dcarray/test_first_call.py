"""What the first call in a process does not wait for."""

import inspect
import os
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest
from fresh import python

import dcarray as dc
from dcarray.core import own_files
from dcarray.plans import server


def run(code: str, **environment: str) -> str:
    """Return what a fresh process prints."""
    done = python("-c", code, **environment)
    return done.stdout


FIRST = """
import sys
import numpy as np, dcarray as dc
x = dc.asarray(np.arange({n}.0))
total = float((x * 2 + 1).sum())
assert total == {n} * ({n} - 1.0) + {n}, total
print([name for name in ("requests", "provider", "disk_store") if "dcarray.plans." + name in sys.modules])
"""


def test_a_recording_seen_once_loads_nothing_that_asks_for_plans(tmp_path):
    """Neither in this thread nor beside it, where no plan is stored."""
    got = run(FIRST.format(n=100_000), DCARRAY_CACHE_DIR=str(tmp_path / "none"), DCARRAY_JIT="background")
    assert got.strip() == "[]"


def test_a_name_for_numpys_generators_loads_nothing_distributed():
    code = """
import sys
import dcarray.random as random
assert "dcarray.distributed" not in sys.modules
assert callable(random.block) and "block" in dir(random) and "dcarray.distributed" in sys.modules
from dcarray.random import *
assert block is random.block
"""
    run(code)


@pytest.mark.parametrize("name", ["Generator", "RandomState"])
def test_methods_of_generators_are_made_when_they_are_asked_for(name):
    """All of NumPy's are there, bound or not, and in subclasses, also of those made after the first call."""
    plain, ours = getattr(np.random, name), getattr(dc.random, name)

    class Mine(ours):
        def normal(self, *args, **kwargs):
            return super().normal(*args, **kwargs) + 1

    seed = np.random.PCG64 if name == "Generator" else int
    for one in dir(plain):
        if not one.startswith("_") and callable(getattr(plain, one)):
            assert callable(getattr(ours, one)) and getattr(ours(seed(3)), one).__name__ == one
            assert getattr(ours, one) is getattr(ours, one) is vars(ours)[one]
            assert getattr(ours, one).__doc__ and inspect.getattr_static(Mine, one)
    for _ in range(2):
        want = plain(seed(4)).normal(size=(300, 100))
        for got in (ours(seed(4)).normal(size=(300, 100)), ours.normal(ours(seed(4)), size=(300, 100))):
            assert isinstance(got, dc.ndarray)
            np.testing.assert_array_equal(np.asarray(got), want)
        np.testing.assert_array_equal(np.asarray(Mine(seed(4)).normal(size=(300, 100))), want + 1)


def test_shuffle_takes_arrays_and_sequences():
    for make in (np.random.default_rng, np.random.RandomState):
        plain = make(3)
        ours = dc.random.default_rng(3) if make is np.random.default_rng else dc.random.RandomState(3)
        rows, words = np.arange(60.0).reshape(20, 3), list("abcdefghij")
        wrapped, others = dc.asarray(rows.copy()), words.copy()
        plain.shuffle(rows)
        plain.shuffle(words)
        ours.shuffle(wrapped)
        ours.shuffle(others)
        np.testing.assert_array_equal(np.asarray(wrapped), rows)
        assert others == words


def test_which_files_are_the_users_follows_what_has_been_imported(monkeypatch, tmp_path):
    """A package that is imported later has folders, too."""
    there = tmp_path / "later_layer"
    there.mkdir()
    (there / "__init__.py").touch()
    monkeypatch.setattr(own_files, "_inside", {})
    monkeypatch.setattr(own_files, "_LAYERS", ("later_layer",))
    monkeypatch.syspath_prepend(str(tmp_path))
    assert not own_files.is_inside(str(there / "one.py"))
    monkeypatch.setitem(sys.modules, "later_layer", import_module("later_layer"))
    assert own_files.is_inside(str(there / "two.py"))
    assert not own_files.is_inside(str(tmp_path / "three.py"))
    assert own_files.is_inside(np.__file__) and own_files.is_inside(dc.__file__)


@pytest.mark.parametrize("lowers", [server._LOWERS, ()])
@pytest.mark.parametrize("steps", [0, 3, 40])
def test_the_planning_process_finds_what_an_interpreter_finds(monkeypatch, lowers, steps):
    """It looks for packages itself, at its own priority: finders that packages have installed are there."""
    finders = "[getattr(finder, '__name__', type(finder).__name__) for finder in sys.meta_path]"
    told = f"import sys, os; print(sys.prefix, {finders}, os.getpriority(0, 0), 'numpy' in sys.modules)"
    monkeypatch.setattr(server, "_LOWERS", lowers)
    *before, source = server.words(sys.executable, steps)
    assert (before[0] == sys.executable) == (not steps or not any(map(os.path.exists, lowers)))
    for ours, mine in (
        ("from dcarray.plans.server import serve", told),
        ("serve()", ""),
        ("if os.fork(): os._exit(0)", ""),
        ("os.setpgid(0, 0)", ""),
        ("os.write(0, ", "os.write(1, "),
    ):
        assert ours in source
        source = source.replace(ours, mine)
    done = subprocess.run([*before, source], capture_output=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    got = done.stdout[server.HEAD :].decode().strip()
    own = run(f"import sys; print(sys.prefix, {finders})")
    assert got == f"{own.strip()} {min(os.getpriority(os.PRIO_PROCESS, 0) + steps, 19)} False"
