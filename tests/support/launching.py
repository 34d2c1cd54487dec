"""Starting programs under MPI, where it is installed."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_BESIDE = Path(sys.executable).parent / "mpiexec"
LAUNCHER = str(_BESIDE) if _BESIDE.exists() else shutil.which("mpiexec")
LACKS = [what for what, there in (("mpi4py", find_spec("mpi4py")), ("mpiexec", LAUNCHER)) if not there]
needs_mpi = pytest.mark.skipif(bool(LACKS), reason=f"no {' and no '.join(LACKS)}: pip install 'dcarray[mpi]'")


def launch(
    ranks: int, *command: str, timeout: float = 120, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run Python with this command line as so many ranks; more seconds than `timeout` are a hang.

    What a rank prints is buffered, also where the environment asks for the contrary: the pieces of unbuffered
    lines of several ranks come mixed.
    """
    paths = [str(ROOT), str(ROOT / "tests" / "support"), os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [str(LAUNCHER), "-n", str(ranks), sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "PYTHONUNBUFFERED": "",
            **environment,
        },
    )
