"""The commands that run programs of others as whole processes: on programs of our own."""

import json
import sys
from pathlib import Path

import pytest

from conformance import scripts
from conformance.packages import files, suites
from conformance.packages.catalogue import Package
from conformance.packages.environments import Environment

SAME = "import sys\ns = 0\nfor i in range(1000):\n    s += i\nprint(s, object())\nsys.exit(3)\n"
DIFFERS = "import sys\nprint('dcarray' in sys.modules)\n"
UNSTEADY = "import time\nprint(time.perf_counter())\n"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A folder of programs."""
    for name, source in {"same": SAME, "differs": DIFFERS, "unsteady": UNSTEADY}.items():
        (tmp_path / f"{name}.py").write_text(source)
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


class _Here(Environment):
    """This environment, with packages in a folder."""

    def __init__(self, folder: Path) -> None:
        self.python, self.site_packages = Path(sys.executable), folder
        self.module, self.version = "small", "1.0"


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
