"""Projects that `dcarray.export` writes, and their C simulation."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dcarray as dc

__all__ = ["SimulationError", "simulate"]


class SimulationError(Exception):
    """Raised when a project's C simulation fails; the message is its output."""


def simulate(
    function: Callable[..., Any], given: Sequence[Any], target: str
) -> dict[str, np.ndarray[Any, Any]]:
    """Export a function for "vitis" or "intel", and run its project's C simulation.

    The simulation compares the kernel's results with the project's expected ones.

    Returns
    -------
    mapping of str to array
        The expected results, by the names of the region's arrays.

    Raises
    ------
    dcarray.ProgramError
        If the function cannot be a circuit.
    SimulationError
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dc.export(function, *given, target=target, path=folder)
        done = subprocess.run(["make", "-C", name, "csim"], capture_output=True, text=True)
        if done.returncode:
            raise SimulationError((done.stdout + done.stderr)[-4000:])
        return {file.stem: np.load(file) for file in (folder / "data" / "expected").glob("*.npy")}
