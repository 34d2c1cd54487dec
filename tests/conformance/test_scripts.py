"""The commands that run programs of others as whole processes: on programs of our own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from conformance import pyperformance, scripts
from conformance.packages import files, suites
from conformance.packages.catalogue import Package
from conformance.packages.environments import Environment

SAME = "import sys\ns = 0\nfor i in range(1000):\n    s += i\nprint(s, object())\nsys.exit(3)\n"
DIFFERS = "import sys\nprint('dcarray' in sys.modules)\n"
UNSTEADY = "import time\nprint(time.perf_counter())\n"
EXAMPLES = '"""\n>>> "dcarray" in sys.modules\nFalse\n"""\nimport sys\nfrom . import value\n'
CASE = "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(1, 1)\n"
BENCHMARK = """
import pyperf
runner = pyperf.Runner()
runner.argparser.add_argument("--most", type=int, default=3)
runner.bench_func("sum", sum, range(runner.parse_args().most))
runner.bench_time_func("timed", lambda loops: float(loops))
async def later(): return "done"
runner.bench_async_func("later", later)
"""
PROJECT = '[project]\ndependencies = ["pyperf"]\n[tool.pyperformance]\nname = "{}"\n'


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A folder of programs."""
    for name, source in {
        "same": SAME, "differs": DIFFERS, "unsteady": UNSTEADY, "nbody/examples": EXAMPLES, "test_it": CASE,
        "nbody/__init__": "value = 1",
    }.items():  # fmt: skip
        file = tmp_path / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(source)
    return tmp_path


def test_programs_as_they_are_and_accelerated(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures, docs = suite / "figures.json", suite / "conformance.md"
    words = ["--path", str(suite), "--ways", "cold,cached", "--json", str(figures), "--docs", str(docs)]
    assert scripts.main([*words, "same", "unsteady", "differs"]) == 1
    rows = {row["name"]: row for row in map(json.loads, figures.read_text().splitlines())}
    assert rows["same.py"]["differs"] == {} and [*rows["same.py"]["seconds"]] == ["plain", "cold", "cached"]
    assert "not the same every time" in rows["unsteady.py"]["skipped"]
    assert rows["differs.py"]["differs"]["cached"] == "'False' and 'True'"
    assert "2 programs, 1 differ" in capsys.readouterr().out and "| **cold**" in docs.read_text()
    assert scripts.main([*words[:4], "same", "--share", "2/2"]) == 0


def test_kinds_of_programs(suite: Path) -> None:
    words = ["--path", str(suite), "--ways", "cold"]
    assert scripts.main([*words, "--kind", "unittest"]) == 0
    assert scripts.main([*words, "--kind", "game"]) == 0  # it has no output
    assert scripts.main([*words, "--kind", "doctest"]) == 1


class _Here(Environment):
    """This environment, with packages in a folder."""

    def __init__(self, folder: Path) -> None:
        self.python, self.site_packages = Path(sys.executable), folder
        self.module, self.version = "small", "1.0"


def test_programs_of_pyperformance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a" / "b" / "c" / "pyperformance" / "data-files" / "benchmarks" / "bm_some"
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PROJECT.format("some"))
    (folder / "bm_more.toml").write_text(PROJECT.format("more") + 'extra_opts = ["--most", "9"]\n')
    (folder / "run_benchmark.py").write_text(BENCHMARK)
    monkeypatch.setattr(pyperformance, "environment_of", lambda package: _Here(tmp_path / "a" / "b" / "c"))
    figures = tmp_path / "figures.json"
    assert pyperformance.main(["--ways", "cold", "--json", str(figures)]) == 0
    assert [json.loads(line)["name"] for line in figures.read_text().splitlines()] == ["some", "more"]
    done = subprocess.run(
        [sys.executable, folder / "run_benchmark.py", "--most", "9"],
        env={"PYTHONPATH": str(pyperformance.STANDIN)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    said = [line.rsplit(maxsplit=1)[0] for line in done.stdout.splitlines()]
    assert said == ["sum int 36"] * 3 + ["timed type <class 'float'>"] * 3 + ["later str 'done'"] * 3


def test_test_files_of_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tests = tmp_path / "small" / "tests"
    tests.mkdir(parents=True)
    for one in (tests.parent, tests):
        (one / "__init__.py").touch()
    (tests / "test_good.py").write_text("def test(): assert sum(range(4)) == 6\n")
    (tests / "test_bad.py").write_text("import sys\ndef test(): assert 'dcarray' not in sys.modules\n")
    monkeypatch.setattr(suites, "ROOT", f"{suites.ROOT}:{tmp_path}")
    monkeypatch.setattr(files, "environment_of", lambda package: _Here(tmp_path))
    monkeypatch.setattr(files, "package_of", Package)
    assert files.main(["small", "good"]) == 0
    assert files.main(["small", "--docs", str(tmp_path / "page.md")]) == 1
    assert "first small/tests/test_bad.py::test" in capsys.readouterr().out
    assert "2 of its 2 test files, 1 tests pass accelerated; " in (tmp_path / "page.md").read_text()
