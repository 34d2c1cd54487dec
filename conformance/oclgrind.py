"""Runs generated kernels in an OpenCL simulator: ``python -m conformance.oclgrind [PYTEST'S ARGUMENTS]``.

Oclgrind executes every instruction of a kernel and reports accesses out of bounds, races between threads and
divergent barriers.  (Its check for uninitialised values is off: it has false positives for reused buffers and
structures passed by value.)  Here pytest runs with it as the only OpenCL device, by default the tests of
device kernels; any error that it reports fails the run, and each is printed once.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path

__all__ = ["findings", "main", "run"]

TESTS = ("tests/lowering/gpu", "-k", "opencl or on_a_device")
INSTALL = "apt-get install oclgrind, or https://github.com/jrprice/Oclgrind"
# Of one kernel a few mistakes are enough, of a run a few kernels.
_MOST = 1000


def findings(log: str) -> Counter[str]:
    """Return the number of occurrences of each error in a log of Oclgrind.

    Each is given by its kind, the kernel, and the line of the kernel's text.
    """
    found: Counter[str] = Counter()
    for report in re.split(r"\n\s*\n(?=\S)", log.strip()):
        lines = report.splitlines()
        if not lines:
            continue
        what = re.sub(r" (at \w+ memory )?address 0x[0-9a-f]+", r" \1", lines[0]).strip()
        kernel = next((line.split(":", 1)[1].strip() for line in lines if "Kernel:" in line), "")
        places = [b.strip() for a, b in pairwise(lines) if re.match(r"\s*At line \d+", a)]
        found["; ".join(filter(None, (what, kernel, *dict.fromkeys(places))))] += 1
    return found


def run(command: list[str], folder: str) -> tuple[int, Counter[str], str]:
    """Run a command with the simulator as the only OpenCL device.

    Returns
    -------
    (int, Counter of str, str)
        The exit status, the simulator's findings, and what the command has printed.
    """
    log = Path(folder, "oclgrind.log")
    simulator = ["oclgrind", "--data-races", "--max-errors", str(_MOST), "--log", str(log)]
    done = subprocess.run(
        [*simulator, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYOPENCL_NO_CACHE": "1"},
    )
    text = log.read_text(errors="replace") if log.exists() else ""
    return done.returncode, findings(text), done.stdout


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    if shutil.which("oclgrind") is None:
        print(f"Oclgrind is not installed: {INSTALL}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="dcarray-oclgrind-") as folder:
        pytest = [sys.executable, "-m", "pytest", "-q", "--timeout", "3000", *(given or TESTS)]
        status, found, output = run(pytest, folder)
    print(output.rstrip())
    for finding, count in found.most_common():
        print(f"{count:5}  {finding}")
    print(f"Oclgrind: {sum(found.values())} findings, {len(found)} of them different")
    return status or int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
