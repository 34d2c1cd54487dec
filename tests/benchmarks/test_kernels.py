"""Every kernel of the benchmarks: NumPy's result, in as many kernels as it says, at several sizes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from benchmarks import roofline
from benchmarks.kernels import KERNELS, Kernel


@pytest.fixture(params=KERNELS, ids=lambda kernel: kernel.name)
def kernel(request: pytest.FixtureRequest) -> Kernel:
    found: Kernel = request.param
    return found


@pytest.mark.parametrize("sizes", [(9000, 12_001, 15_000), (60_000, 20_000)], ids=["small", "large"])
@pytest.mark.filterwarnings("error")
def test_result_and_number_of_kernels(kernel: Kernel, sizes: tuple[int, ...]) -> None:
    with dc.options(jit="eager", eager_below=0):
        for n in sizes:  # the second is planned for all sizes, and serves the third
            arrays = kernel.make(n, np.random.default_rng(n))
            plain = tuple(a.copy() for a in arrays)
            expected = kernel.work(*plain)
            wrapped = tuple(dc.asarray(a) for a in arrays)
            before = dc.report().kernels
            got = dc.evaluate(kernel.work(*wrapped))
            assert dc.report().kernels - before == kernel.count
            np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-13, atol=1e-13)
            for ours, theirs in zip(wrapped, plain, strict=True):
                np.testing.assert_array_equal(np.asarray(ours), theirs)


def test_traffic(kernel: Kernel) -> None:
    arrays = kernel.make(1000, np.random.default_rng(0))
    result: Any = kernel.work(*arrays)
    written = kernel.updates is not None
    assert written == any(result is a for a in arrays)
    most = sum(a.nbytes for a in arrays) + np.asarray(result).nbytes
    assert kernel.traffic(arrays, result) == most - (
        arrays[kernel.updates or 0].nbytes if kernel.fills else 0
    )


def test_the_command_writes_figures_picture_and_section(tmp_path: Path, capsys: Any) -> None:
    docs, figures, drawing = tmp_path / "p.md", tmp_path / "k.json", tmp_path / "k.svg"
    docs.write_text("# P\n\n## Else\n\nstays\n")
    words = ["--only", "triad,softmax", "--elements", "1000", "--rounds", "1"]
    assert roofline.main([*words, "--json", str(figures), "--svg", str(drawing), "--docs", str(docs)]) == 0
    told = json.loads(figures.read_text())
    assert [row["kernel"] for row in told["rows"]] == ["triad", "softmax"]
    assert all(row["100"] > 0 and row["1000"] > 0 for row in told["sizes"])
    assert "softmax" in drawing.read_text() and "| triad |" in docs.read_text()
    assert "stays" in docs.read_text() and "a copy by" in capsys.readouterr().out


def test_unknown_kernels(capsys: Any) -> None:
    with pytest.raises(SystemExit):
        roofline.main(["--only", "nothing"])
    assert "triad" in capsys.readouterr().err
