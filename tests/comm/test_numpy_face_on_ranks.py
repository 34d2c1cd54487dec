"""Tests of the NumPy interface and random programs on several ranks, real and simulated, with every array in
blocks."""

from pathlib import Path

import pytest
import rank_fuzz
from launching import launch, needs_mpi

import dcarray as dc
from conformance import programs

# Those that compare values with NumPy, but for the fuzzer's programs, which are below.  Others look into one
# process, or at the order of memory, which is C's in blocks.
FACE = [
    f"tests/dcarray/test_{name}.py"
    for name in (
        "covariance", "reductions", "fp_state", "functions_creation", "functions_differences",
        "functions_elementwise", "functions_fallback", "functions_joining", "functions_linalg",
        "functions_reductions", "functions_views", "histograms", "masked_assignment",
        "multi_output", "random", "scans", "searching", "sliding", "guarantees",
    )
]  # fmt: skip
assert all((Path(__file__).parents[2] / name).exists() for name in FACE), FACE
# for machines that do much else: ranks wait for each other at every call
pytestmark = pytest.mark.timeout(600)
ALL = {"DCARRAY_DISTRIBUTE_ABOVE": "0", "DCARRAY_JIT": "off"}


@needs_mpi
@pytest.mark.parametrize(("ranks", "share"), [(1, "0/160"), (2, "1/128"), (3, "5/512"), (4, "9/768")])
def test_a_share_of_the_tests_of_the_face(ranks: int, share: str) -> None:
    done = launch(ranks, "-m", "on_ranks", share, *FACE, timeout=580, **ALL)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_mpi
@pytest.mark.parametrize("line", ["assert rank != 1", "rank == 1 or comm.Allreduce(1.0)"])
def test_a_failure_of_one_rank_is_one_of_the_run(tmp_path: Path, line: str) -> None:
    lines = ["from dcarray import comm", "rank = comm.world().rank", "def test_one():", f"    {line}"]
    (tmp_path / "test_lines.py").write_text("\n".join([*lines, "def test_two():", "    print('again')", ""]))
    done = launch(3, "-m", "on_ranks", "0/1", "-s", str(tmp_path / "test_lines.py"), timeout=60)
    assert done.returncode != 0 and "again" not in done.stdout
    if "assert" in line:
        assert "==== rank 1" in done.stderr and "==== rank 2" not in done.stderr
        assert "failed on ranks [1]" in done.stdout
    else:
        assert "MismatchError" in done.stdout + done.stderr


@needs_mpi
@pytest.mark.parametrize(("ranks", "first", "count"), [(2, 0, 20), (3, 300, 15), (4, 200, 8)])
def test_the_programs_of_the_fuzzer(ranks: int, first: int, count: int) -> None:
    done = launch(ranks, "-m", "rank_fuzz", str(first), str(count), timeout=580, DCARRAY_JIT="off")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" 0 differ") == ranks


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ranks", range(2, 13))
def test_the_programs_of_the_fuzzer_on_simulated_ranks(ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "scope", programs.scope)
    assert not any(dc.comm.run(ranks, rank_fuzz.main, 1000 * ranks, 6, False))
