"""Profiles: the next run of a source begins with the sites that ran, and plans refused ones later."""

import atexit
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import dcarray as dc
from dcarray.jit.loops.sites import modules, profiles, sampler, verdicts
from dcarray.jit.loops.sites.codes import inner_codes
from dcarray.jit.loops.sites.site import Site, sites_at
from dcarray.tiering.admission import HOT, HOT_AGAIN, LONG_LOOP

SOURCE = """
import numpy as np
def f(x):
    for k in range(9):
        x = x * 2.0
    return x
def g(x):
    return x + 1.0
def h(x):
    return x - 1.0
"""


def sites_of(monkeypatch: pytest.MonkeyPatch) -> tuple[list[Site], Callable[[], None]]:
    """The sites of the source in a new run, and what is done at its end."""
    found: list[Any] = []
    ends: list[Callable[[], None]] = []

    def made(*given: Any) -> list[Site]:
        found.extend(sites_at(*given))
        return found

    monkeypatch.setattr(atexit, "register", ends.append)
    monkeypatch.setattr(modules, "sites_at", made)
    modules.compile_module(SOURCE, "<a profile>", {"__name__": "__main__"}, True)
    return found, ends[0]


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    assert condition()


def test_the_next_run_knows_what_became_of_sites(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with dc.options(jit="background", cache_dir=str(tmp_path)):
        sites, end = sites_of(monkeypatch)
        ran, refused, asked, *rest = sites
        assert rest and not any(site.enabled or site.known or site.doubtful for site in sites)
        ran.runs = 3
        ran.kept, ran.part = True, 0.25
        refused.refuse("it is not faster")
        asked.asked = True
        end()

        sites, end = sites_of(monkeypatch)
        wait_for(lambda: sites[0].enabled)
        assert sites[2].known and not (sites[2].enabled or sites[2].kept)  # its plan is loaded once it is hot
        assert sites[0].known and sites[0].part == 0.25 and sites[1].doubtful
        assert not any(site.enabled or site.known or site.doubtful for site in sites[3:])
        sites[0].runs = 1
        end()  # the second has not been tried: it stays as it is

        sites, _ = sites_of(monkeypatch)
        wait_for(lambda: sites[0].enabled)
        assert sites[1].doubtful


def test_a_loop_that_ran_once_asks_at_once_in_the_next_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with dc.options(jit="background", cache_dir=str(tmp_path)):
        sites, end = sites_of(monkeypatch)
        loop = next(site for site in sites if site.source.is_loop)
        for one in loop, sites[-1]:
            one.heat()
            one.count(0.0, HOT + LONG_LOOP)
        end()
        sites, _ = sites_of(monkeypatch)
        assert [s.source.is_loop for s in sites if s.enabled and s.foreseen] == [True]


def test_a_function_that_gained_nothing_has_no_sites_the_next_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with dc.options(jit="background", cache_dir=str(tmp_path)):
        sites, end = sites_of(monkeypatch)
        sites[0].kept = True
        for site in sites[1:]:
            if site.source.line < 9:
                site.refuse("it is not faster")
        end()
        monkeypatch.setattr(modules, "sites_at", sites_at)
        for runs, names in (0, "fgh"), (1, "fh"), (10, "fgh"):  # one run in ten has all sites
            monkeypatch.setattr(verdicts, "OF_PROGRAM", [SimpleNamespace(_runs=runs)])
            code = modules.compile_module(SOURCE, "<a profile>", {}, True)
            assert [c.co_name for c in inner_codes(code) if Site in map(type, c.co_consts)] == [*names]


def test_doubtful_sites_are_hot_later() -> None:
    own = sampler.Sampler()
    modules.compile_module("for k in range(3):\n    x = k * 2.0 + k", "<doubtful>", {}, True)
    found = [site for site in sampler.SAMPLER.sites() if site.source.file == "<doubtful>"]
    for site in found:
        site.doubtful = True
        own._count(site, 1.0, 2 * HOT)
        assert not site.enabled
        own._count(site, 1.0, HOT_AGAIN)
        assert site.enabled
    assert found


CLASSES = """
import numpy as np
class Walk:
    def __init__(self):
        self.x, self.seen = np.zeros(3), []
    def step(self, n):
        for k in range(n):
            self.x = self.x + np.sqrt(k + self.x)
        return self.x.sum()
def collect(n):
    found = []
    for k in range(n):
        found.append(k * 2.0)
    return found
total = 0.0
for k in range(7):
    total = total + k * 0.5
walk = Walk()
result = walk.step(4), walk.step(5), collect(3), total
"""


@pytest.mark.faults
def test_the_code_of_a_module_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The next run has the same sites in the same code, without looking for them."""

    def run(path: str) -> tuple[list[Site], Any, Callable[[], None]]:
        ends: list[Callable[[], None]] = []
        names: dict[str, Any] = {"__name__": "a module"}
        with monkeypatch.context() as patched:
            patched.setattr(atexit, "register", ends.append)
            code = modules.compile_module(CLASSES, path, names, True)
        exec(code, names)
        return [s for s in sampler.SAMPLER.sites() if s.names is names], names["result"], ends[0]

    with dc.options(jit="background", cache_dir=str(tmp_path)):
        before, want, end = run("<kept>")
        before[0].asked = True
        end()
        monkeypatch.setitem(sys.modules, "dcarray.jit.loops.sites.module_sites", None)  # cannot be imported
        after, result, _ = run("<kept>")
        assert repr(result) == repr(want)
        assert [s.source for s in after] == [s.source for s in before]
        inner = [[s.inner.index(x) for x in s.inner] for s in after]
        assert inner == [[s.inner.index(x) for x in s.inner] for s in before]
        assert [s.resumable for s in after] == [s.resumable for s in before]
        assert [s.known for s in after] == [s.asked or s.runs > 0 for s in before]
        plain = compile(CLASSES, "<another file>", "exec", dont_inherit=True)
        assert modules.compile_module(CLASSES, "<another file>", {}, True) == plain


@pytest.mark.parametrize("text", [SOURCE * 40, "x = 1\n" * 1000], ids=["with sites", "without"])
def test_the_code_of_a_long_module_is_kept_if_nothing_in_it_ran(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    ends: list[Callable[[], None]] = []
    monkeypatch.setattr(atexit, "register", ends.append)
    with dc.options(jit="background", cache_dir=str(tmp_path)):
        modules.compile_module(text, "<long>", {}, False)
        ends[0]()
        profile = profiles.profile_of(text, "<long>", False)
        assert profile is not None and profile.module() is not None


@pytest.mark.parametrize("file", ["script.py", "warns.py"])
def test_the_compiler_warns_as_in_python(tmp_path: Path, file: str) -> None:
    """In each run of a script, also where the code is that of an earlier run; once for an imported module."""
    (tmp_path / "warns.py").write_text(
        "import numpy as np\nx = 5\nif x is 5:\n    print(x)\n"
        "from dcarray.jit.loops.sites.sampler import SAMPLER\n"
        "u = np.ones(9)\nfor k in range(9):\n    u = u * 2.0\n"
        "for site in SAMPLER.sites():\n    site.asked = True\n"
    )
    (tmp_path / "script.py").write_text("import warns")
    environment = os.environ | {"DCARRAY_CACHE_DIR": str(tmp_path / "cache"), "DCARRAY_JIT": "background"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    for warnings in (1, 1 if file == "warns.py" else 0):
        done = subprocess.run(
            [sys.executable, "-m", "dcarray", "run", str(tmp_path / file)],
            env=environment,
            text=True,
            capture_output=True,
        )
        assert done.stdout == "5\n"
        assert done.stderr.count("SyntaxWarning") == warnings
    assert any((tmp_path / "cache").rglob("*.dcarray"))
    assert (tmp_path / "__pycache__").exists() == (file == "script.py")
