"""Projects of `dcarray.export`, and their own C simulation."""

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
    """A project's C simulation does not end well; the text is its own."""


def simulate(
    function: Callable[..., Any], given: Sequence[Any], target: str
) -> dict[str, np.ndarray[Any, Any]]:
    """Export a function for "vitis" or "intel", and run its project's C simulation.

    That compares what the kernel gives with what the project expects.

    Returns
    -------
    mapping of str to array
        What it expects, by the names of its region's arrays.

    Raises
    ------
    dcarray.ProgramError
        If the function is no circuit.
    SimulationError
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dc.export(function, *given, target=target, path=folder)
        done = subprocess.run(["make", "-C", name, "csim"], capture_output=True, text=True)
        if done.returncode:
            raise SimulationError((done.stdout + done.stderr)[-4000:])
        return {file.stem: np.load(file) for file in (folder / "data" / "expected").glob("*.npy")}
