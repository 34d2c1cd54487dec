"""NPBench with types from a run, by a suite of two tiny benchmarks, of which one fails."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny_npbench

from conformance import hints


def test_a_suite_with_types_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite, document = tiny_npbench.written(tmp_path), tmp_path / "conformance.md"
    assert hints.main(["--npbench", str(suite), "--docs", str(document)]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line}
    assert lines["halve"].split() == ["halve", "compiled", "compiled"]
    assert lines["broken"].split()[1:3] == ["refused", "refused"] and "not understood" in lines["broken"]
    assert "2 benchmarks: 1 programs, 1 libraries, 0 wrong" in document.read_text()


def test_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for given in (
        ["--npbench", str(tmp_path)],
        ["--npbench", str(tiny_npbench.written(tmp_path / "a")), "--only", "x"],
    ):
        with pytest.raises(SystemExit):
            hints.main(given)
    said = capsys.readouterr().err
    assert "is no checkout of NPBench" in said and "no benchmark has 'x' in its name" in said
