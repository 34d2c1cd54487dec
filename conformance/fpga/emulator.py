"""OpenCL kernels on Intel's FPGA emulator, which ``python -m conformance.fpga.emulator`` installs.

The emulator compiles kernels and channels for the CPU, and runs autorun kernels.  It is installed from PyPI
into a separate environment (1.1 GB), so that other programs do not load its libraries.  Each job runs
`emulator_host` there in a new process, because autorun kernels never end and wait busily.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from conformance.fpga import environments

__all__ = ["EmulatorError", "Job", "environment", "install", "installed", "main", "run"]

NAME = "intel-emulator"
PACKAGES = ("intel-opencl-rt==2023.2.4", "intel-cmplr-lib-rt==2023.2.4", "pyopencl", "numpy")
HOST = Path(__file__).with_name("emulator_host.py")


class EmulatorError(Exception):
    """Raised if the emulator rejects a kernel or does not end in time; the message has its output."""


@dataclass(frozen=True)
class Job:
    """Kernels with the order in which they run and the buffers that they use."""

    source: str  # the text of the kernels
    # For each stage a list with the name and argument names of each kernel that the host starts.
    stages: Sequence[Sequence[tuple[str, Sequence[str]]]]
    buffers: Mapping[str, np.ndarray[Any, Any]]  # the initial contents of the buffers
    written: Collection[str]  # the buffers to return afterwards
    times: int = 1  # how many times the sequence of stages runs


def environment() -> Path:
    """Return the folder of the emulator's environment, which may not exist."""
    return environments.folder_of(NAME)


def _library() -> Path:
    return environment() / "lib" / "libintelocl_emu.so"


def installed() -> bool:
    """Whether the emulator is installed."""
    return environments.is_installed(NAME)


def install() -> None:
    """Install the emulator, unless it is installed."""
    # the library's place: the package's own file has no path
    environments.install(NAME, PACKAGES, {"vendors/emulator.icd": f"{_library()}\n"})


def run(job: Job, *, strict: bool = False, timeout: float = 60) -> dict[str, np.ndarray[Any, Any]]:
    """Run kernels on the emulator, which must be installed.

    Parameters
    ----------
    job : Job
    strict : bool, optional
        Whether channels hold exactly as many elements as their declared depth.  If not, they hold more,
        which hides deadlocks, and is some twenty times faster.
    timeout : float, optional
        The time limit in seconds, after which a deadlock ends as an error.

    Returns
    -------
    mapping of str to array
        The buffers that the job has written.

    Raises EmulatorError.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "kernels.cl").write_text(job.source)
        np.savez(folder / "given.npz", **job.buffers)  # type: ignore[arg-type]
        plan = {"stages": job.stages, "written": sorted(job.written), "times": job.times}
        (folder / "plan.json").write_text(json.dumps(plan))
        command = [str(environment() / "bin" / "python"), str(HOST), str(folder)]
        variables = _variables("strict" if strict else "ignore-depth")
        try:
            done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired as late:
            printed = late.stderr.decode() if isinstance(late.stderr, bytes) else late.stderr or ""
            raise EmulatorError(f"no end after {timeout} s\n{printed[-4000:]}") from None
        if done.returncode:
            raise EmulatorError(done.stderr[-4000:] or f"the host program ended with {done.returncode}")
        with np.load(folder / "written.npz") as arrays:
            return dict(arrays)


def _variables(depth: str) -> dict[str, str]:
    """Return environment variables with the emulator as the only device, and the mode of channel depths."""
    known = {
        **os.environ,
        "OCL_ICD_VENDORS": str(environment() / "vendors"),
        "LD_LIBRARY_PATH": str(environment() / "lib"),
        "CL_CONFIG_CHANNEL_DEPTH_EMULATION_MODE": depth,
        "PYOPENCL_NO_CACHE": "1",
    }
    try:
        processor = Path("/proc/cpuinfo").read_text()
    except OSError:
        processor = ""
    # of a processor that it does not know, the emulator computes mathematical functions of vectors wrong
    for feature, name in (("avx512f", "skx"), ("avx2", "core-avx2")):
        if feature in processor:
            known["CL_CONFIG_CPU_TARGET_ARCH"] = name
            break
    return known


_TRIAL = """#pragma OPENCL EXTENSION cl_intel_channels : enable
channel float given __attribute__((depth(1)));
channel float made __attribute__((depth(1)));
__attribute__((max_global_work_dim(0))) __attribute__((autorun)) __kernel void twice(void) {
  for (int i = 0; i < 8; i++) write_channel_intel(made, 2 * read_channel_intel(given));
}
__attribute__((max_global_work_dim(0))) __kernel void source(__global const float *restrict x) {
  for (int i = 0; i < 8; i++) write_channel_intel(given, x[i]);
}
__attribute__((max_global_work_dim(0))) __kernel void sink(__global float *restrict y) {
  for (int i = 0; i < 8; i++) y[i] = read_channel_intel(made);
}
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Install the emulator and run a trial kernel; return exit status 0 if its result is right."""
    argparse.ArgumentParser(description="install Intel's FPGA emulator, and try it").parse_args(argv)
    install()
    x = np.arange(8, dtype=np.float32)
    stages = [[("source", ["x"]), ("sink", ["y"])]]
    made = run(Job(_TRIAL, stages, {"x": x, "y": np.zeros_like(x)}, ["y"], times=2), strict=True)
    right = bool((made["y"] == 2 * x).all())
    print(f"{environment()}: {'kernels run' if right else 'wrong results'}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
