"""Whole programs: the scripts run with plain NumPy, and the command finds what differs."""

import ast
import json
import math
import re
from pathlib import Path

import pytest

from benchmarks import people
from benchmarks.whole_programs import ACCELERATED, difference

SCRIPTS = sorted(people.SCRIPTS.glob("*.py"))
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")


def _imported(script: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


def test_programs_are_plain_numpy() -> None:
    assert len(SCRIPTS) >= 48
    for script in SCRIPTS:
        assert "numpy" in (imported := _imported(script)), script
        assert not imported & {"dcarray", "numba", "jax", "scipy"}, script


# The command itself runs all of them.
SHORT = ("game_of_life", "ripple_tank", "seam_carving")


@pytest.mark.parametrize("name", SHORT)
def test_programs_agree_when_compiled(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    script = people.SCRIPTS / f"{name}.py"
    plain = people.run(script, folder=str(tmp_path), cache=str(tmp_path), limit=200)
    assert not plain.problem
    assert not list(tmp_path.iterdir())
    numbers = [float(number) for number in NUMBER.findall(plain.output)]
    assert numbers and all(map(math.isfinite, numbers)) and "nan" not in plain.output
    monkeypatch.setenv("DCARRAY_JIT", "eager")
    ours = people.run(script, ACCELERATED, folder=str(tmp_path), cache=str(tmp_path / "cache"), limit=200)
    assert not ours.problem and not difference(plain.output, ours.output)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures, docs = tmp_path / "figures.json", tmp_path / "page.md"
    options = ["--rounds", "1", "--cached", "--json", str(figures), "--docs", str(docs)]
    assert people.main(["portfolio", "truss", *options]) == 0
    said = capsys.readouterr().out
    assert "outputs: 2 of 2 agree with NumPy's" in said and "cached: geometric mean" in said
    rows = json.loads(figures.read_text())["rows"]
    assert [row["name"] for row in rows] == ["portfolio_backtest", "truss_bridge"]
    assert all(row["ratios"]["cold"] > 0 and row["ratios"]["cached"] > 0 for row in rows)
    assert docs.read_text().count("\ntruss_bridge ") == 1


def test_a_difference_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.py").write_text("import sys\nprint('modules', 1 + ('dcarray' in sys.modules))\n")
    (tmp_path / "fails.py").write_text("import sys\nassert 'dcarray' not in sys.modules, 'not here'\n")
    (tmp_path / "same.py").write_text("print('same')\n")
    assert people.main(["--rounds", "2", "--scripts", str(tmp_path)]) == 1
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line}
    assert "DIFFERS  cold: 'modules 2' instead of 'modules 1'" in lines["other"]
    assert "DIFFERS  cold: AssertionError: not here" in lines["fails"]
    assert "DIFFERS" not in lines["same"]
    assert "1 of 3 agree" in lines["outputs:"]
