"""The command that runs Pythran's test programs, on a suite of two of our own."""

import json
from pathlib import Path
from typing import Any

import pytest

from conformance import pythran

LOOP = """\
#pythran export lagged(float64[], int)
#bench import numpy as np; n = 4000; x = np.arange(n) / n; lagged(x, 3)
#bench import numpy as np; lagged(np.ones(50), 2)
def lagged(x, k):
    s = 0.0
    for i in range(k, len(x)):
        s += x[i] * x[i - k]
    return s
"""
FAILS = "#bench fails(0)\ndef fails(n):\n    return 1 / n\n"


def suite(folder: Path) -> Path:
    cases = folder / pythran.CASES
    cases.mkdir(parents=True)
    (cases / "lagged.py").write_text(LOOP)
    (cases / "fails.py").write_text(FAILS)
    (cases / "old.py").write_text("#bench f()\nprint 'of Python 2'\n")
    return folder


def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DCARRAY_JIT", "eager")  # of the processes: also on a busy machine
    figures, docs = tmp_path / "figures.json", tmp_path / "conformance.md"
    words = ["--suite", str(suite(tmp_path)), "--seconds", "1", "--json", str(figures), "--docs", str(docs)]
    assert pythran.main(words) == 0
    said = capsys.readouterr().out
    rows = {one["name"]: one for one in json.loads(figures.read_text())}
    assert rows["lagged"]["differs"] == rows["lagged 2"]["differs"] == ""
    assert "ZeroDivisionError" in rows["fails"]["skipped"]
    assert rows["lagged"]["settled"] > 0 and rows["lagged"]["loops"] > 0
    assert "2 programs, 2 right" in said and "lagged" in docs.read_text()


def test_a_wrong_result_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong: dict[str, Any] = {"milliseconds": 1.0, "first": 1.0, "settled": 2.0, "loops": 1, "reasons": []}
    wrong["differs"] = "it is 1 and 2"
    monkeypatch.setattr(pythran, "measured", lambda *given: wrong)
    told: list[str] = []
    assert pythran.main(["--suite", str(suite(tmp_path)), "lagged 2"], told.append) == 1
    assert any("**wrong**: it is 1 and 2" in line for line in told)
