"""ScaLAPACK under MPI, where the extra `scalapack` is installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dcarray.comm.algorithms import scalapack
from dcarray.comm.transport import simulated_ranks

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(sys.prefix, "lib")
there = pytest.mark.skipif(
    not list(HERE.glob("libmkl_scalapack_lp64.so.*")), reason="no ScaLAPACK: pip install 'dcarray[scalapack]'"
)


@there
@pytest.mark.parametrize("ranks", [2, 4, 6])  # a row, 2 x 2 and 3 x 2
def test_against_numpy(ranks: int) -> None:
    paths = [str(ROOT), str(ROOT / "tests" / "support"), os.environ.get("PYTHONPATH", "")]
    launcher = str(Path(sys.executable).parent / "mpiexec")
    done = subprocess.run(
        [launcher, "-n", str(ranks), sys.executable, "-W", "ignore", "-m", "scalapack_checks"],
        capture_output=True,
        text=True,
        timeout=280,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ended") == ranks


def test_not_for_simulated_ranks() -> None:
    assert simulated_ranks.run(2, lambda: scalapack.is_available(simulated_ranks.rank_of_thread())) == [
        False,
        False,
    ]
