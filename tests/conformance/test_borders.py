"""Scripts at the borders: all are parsed, what they lack is told, and a difference is found."""

import ast
from pathlib import Path

import pytest

from conformance.borders import __main__ as borders

SCRIPTS = sorted(borders.SCRIPTS.glob("*.py"))


def test_scripts_say_what_they_are() -> None:
    assert len(SCRIPTS) >= 10
    for script in SCRIPTS:
        assert ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))), script


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a_same.py").write_text("import numpy as np\nprint(np.arange(4.0) / 3)\n")
    (tmp_path / "b_absent.py").write_text("import no_such_package\n")
    assert borders.main(["--scripts", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "skipped: no_such_package not installed" in said
    assert "1 of 1 print the same, 1 skipped" in said
    (tmp_path / "c_other.py").write_text("import sys\nprint('dcarray' in sys.modules)\n")
    (tmp_path / "d_fails.py").write_text("raise KeyError(3)\n")
    assert borders.main(["--scripts", str(tmp_path)]) == 1
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "accelerated: 'True' instead of 'False'" in lines["c_other"]
    assert "plain: KeyError: 3" in lines["d_fails"]
    with pytest.raises(SystemExit):
        borders.main(["no such script"])
