"""Work in a process's first seconds: the count of calls by a time, and the command on a tiny suite."""

import json
from pathlib import Path

import pytest
import tiny_npbench

from benchmarks import warmup


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return tiny_npbench.written(tmp_path)


def test_the_command(
    suite: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warmup, "MARKS", (0.1, 0.3))
    monkeypatch.setattr(warmup, "_BASE", 0.1)
    out, docs = suite / "out.json", suite / "page.md"
    options = ["--npbench", str(suite), "--size", "S", "--rounds", "1"]
    assert warmup.main(["halve", *options, "--json", str(out), "--docs", str(docs)]) == 0
    assert "dcarray, geometric means of 1 kernels: 0.1 s: " in capsys.readouterr().out
    told = json.loads(out.read_text())["kernels"]["halve"]["dcarray"]
    assert len(told["work"]) == 2 and min(told["work"]) >= 0 and told["version"] == "numpy"
    assert docs.read_text().count("\nhalve ") == 1
    assert warmup.main(["broken", *options]) == 1
    assert "not today" in capsys.readouterr().out
