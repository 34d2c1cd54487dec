"""The short programs give NumPy's results, accelerated and on wrapped arrays."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from benchmarks.ordinary import main, plain, timed
from benchmarks.programs import Program, programs

SMALL = list(programs(0.3))


@pytest.mark.parametrize("program", SMALL, ids=[f"{k} {name}" for k, (name, _, _) in enumerate(SMALL)])
def test_programs_give_the_results_of_numpy(program: Program) -> None:
    _, function, arguments = program

    def given(wrap: bool) -> list[Any]:
        made = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        return [dc.asarray(a) if wrap and isinstance(a, np.ndarray) else a for a in made]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = plain(function(*given(False)))
        for _ in range(3):
            for found in (dc.accelerate(function)(*given(False)), function(*given(True))):
                for a, b in zip(plain(found), want, strict=True):
                    assert a.dtype == b.dtype
                    if a.dtype.kind in "fc":
                        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)
                    else:
                        np.testing.assert_array_equal(a, b)


def test_the_table(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    docs = tmp_path / "page.md"
    quick = ["--scale", "0.05", "--warm", "0", "--seconds", "0"]
    assert main(["--only", "returns", *quick, "--docs", str(docs)]) == 0
    assert "returns" in capsys.readouterr().out
    title, table = docs.read_text().split("## Ordinary programs\n")
    assert title == "# Performance\n\n"
    assert table.count("\n| returns | ") == 1
    assert table.count("of 1 below 0.95") == 2
    assert timed(SMALL[0], 0.0, 0.0)["numpy"] > 0
