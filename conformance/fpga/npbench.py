"""NPBench as FPGA circuits: ``python -m conformance.fpga --npbench PATH``.

Each benchmark's NumPy version, unmodified, is exported as a project for Xilinx's and for Intel's tools.
The projects' C simulation runs, with FIFOs of the declared depths, and Intel's kernels on Intel's emulator if
that is installed.  Results are compared with NumPy's by NPBench's own tolerances.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import dcarray as dc
from benchmarks.document import write_section
from benchmarks.npbench_suite import Benchmark, benchmarks, compare
from conformance.fpga import emulator, projects

__all__ = ["SIZES", "Row", "main", "measure", "row", "table"]

LIMITS = {"emulator": 200}  # seconds for a step
LIMIT = 300  # for the others
STEPS = ("vitis", "intel", "emulator")

#: Smaller sizes than S: what S asks of a circuit or of its simulation is too much.
SIZES: dict[str, dict[str, int]] = {
    "gemm": {"NI": 100, "NJ": 110, "NK": 120},
    "k2mm": {"NI": 80, "NJ": 90, "NK": 100, "NL": 110},
    "k3mm": {"NI": 80, "NJ": 90, "NK": 100, "NL": 110, "NM": 120},
    "mlp": {"S0": 300, "S1": 100, "S2": 100},
}
#: The same on the emulator, which takes some hundred times as long as C simulation.
EMULATOR_SIZES: dict[str, dict[str, int]] = {
    "atax": {"M": 200, "N": 250},
    "azimint_naive": {"N": 4000, "npt": 50},
    "bicg": {"M": 200, "N": 250},
    "conv2d_bias": {"N": 2, "H": 12, "W": 12},
    "correlation": {"M": 20, "N": 25},
    "covariance": {"M": 20, "N": 25},
    "deriche": {"W": 40, "H": 30},
    "doitgen": {"NR": 10, "NQ": 12, "NP": 16},
    "gemm": {"NI": 50, "NJ": 60, "NK": 70},
    "gemver": {"N": 200},
    "gesummv": {"N": 200},
    "go_fast": {"N": 100},
    "hdiff": {"I": 16, "J": 16, "K": 10},
    "jacobi_1d": {"TSTEPS": 40, "N": 320},
    "jacobi_2d": {"TSTEPS": 20, "N": 40},
    "heat_3d": {"TSTEPS": 20, "N": 12},
    "k2mm": {"NI": 40, "NJ": 45, "NK": 50, "NL": 55},
    "k3mm": {"NI": 40, "NJ": 45, "NK": 50, "NL": 55, "NM": 60},
    "mlp": {"S0": 300, "S1": 60, "S2": 60},
    "mvt": {"N": 200},
    "resnet": {"N": 2, "W": 6, "H": 6, "C1": 8, "C2": 4},
    "softmax": {"N": 4, "H": 4, "SM": 32},
    "vadv": {"I": 8, "J": 8, "K": 10},
}


@dataclass
class Row:
    """A line of the table: the outcome of a benchmark.

    Attributes
    ----------
    name, size : str
    reason : str
        The reason if there is no circuit; else empty.
    processes, stages, cycles : int
        The numbers of processes and stages of the network, and of cycles by its model with latencies.
    outcome : dict of str to str
        For each step that was tried, "right" or the error.
    """

    name: str
    size: str
    reason: str = ""
    processes: int = 0
    stages: int = 0
    cycles: int = 0
    outcome: dict[str, str] = field(default_factory=dict)


def sized(bench: Benchmark, step: str) -> tuple[Benchmark, str]:
    """Return a benchmark with size S, or smaller parameters for a step, and the text for its size."""
    smaller = SIZES.get(bench.name, {})
    if step == "emulator":
        smaller = {**smaller, **EMULATOR_SIZES.get(bench.name, {})}
    parameters = bench.info["parameters"]["S"]
    made = replace(bench, info={**bench.info, "parameters": {"S": {**parameters, **smaller}}})
    return made, "S" + "".join(f", {name}={value}" for name, value in smaller.items())


def measure(bench: Benchmark, step: str) -> dict[str, Any]:
    """Run one step, "circuit" or one of `STEPS`, with a benchmark, and return its outcome."""
    from conformance.fpga import circuits

    bench, _ = sized(bench, step)
    inputs = bench.inputs("S")
    _, function = next(bench.versions("numpy"))
    try:
        target = "intel" if step == "emulator" else "vitis"
        # the emulator's processes are threads that spin: a chain has few
        most = {"steps": 2, "elements": 4} if step == "emulator" else {}
        circuit = circuits.circuit_of(function, list(bench.copies(inputs).values()), target, **most)
        if step == "circuit":
            stages = circuit.network.stages
            processes = sum(len(stage.processes) for stage in stages)
            return {"processes": processes, "stages": len(stages), "cycles": circuit.model.latency}
        if step == "emulator":
            results = circuits.emulate(circuit, LIMITS[step])
        else:
            results = projects.simulate(function, list(bench.copies(inputs).values()), step)
    except (circuits.Refused, dc.ProgramError) as refused:
        return {"reason": " ".join(str(refused).split())}
    except projects.SimulationError as wrong:
        told = [text for text in str(wrong).splitlines() if "largest difference" in text]
        return {"wrong": " ".join((told[0] if told else str(wrong)[-200:]).split())}
    names = list(inputs)
    parameters = list(circuit.names)
    written = [parameters[names.index(name)] for name in bench.info["output_args"]]
    found = circuit.outputs(results, written)
    arguments = bench.copies(inputs)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = bench.outputs(function(*arguments.values()), arguments)
    found = [np.asarray(one) for one in found]
    differs, _ = compare(expected, found, bench.tolerances(), exact_kinds=True, any_order=False)
    return {"wrong": differs}


def _apart(bench: Benchmark, step: str) -> dict[str, Any]:
    """Run a step in a separate process, which may crash or hang, and return its outcome."""
    command = [
        sys.executable, "-m", "conformance.fpga", "--npbench", str(bench.suite), "--only", bench.name,
        "--step", step,
    ]  # fmt: skip
    limit = LIMITS.get(step, LIMIT)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as running:
        try:
            printed, told = running.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)  # with what it has started
            return {"failed": f"no end within {limit} s"}
    lines = printed.splitlines()
    if running.returncode or not lines:
        last = (told.strip().splitlines() or [f"exit status {running.returncode}"])[-1]
        return {"failed": last[:200]}
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def row(bench: Benchmark) -> Row:
    """Run all steps with a benchmark, and return its row."""
    _, size = sized(bench, "circuit")
    found = Row(bench.name, size)
    made = _apart(bench, "circuit")
    found.reason = made.get("reason") or made.get("failed", "")
    if found.reason:
        return found
    found.processes, found.stages, found.cycles = made["processes"], made["stages"], made["cycles"]
    for step in STEPS:
        if step == "emulator" and not emulator.installed():
            continue
        made = _apart(bench, step)
        wrong = made.get("reason") or made.get("failed") or made["wrong"]
        _, other = sized(bench, step)
        found.outcome[step] = wrong or (
            "right" if other == size else f"right, at {other.removeprefix('S, ')}"
        )
    return found


_HEADINGS = (
    "benchmark", "size", "processes", "stages", "cycles", "Vitis, C simulation", "Intel, C simulation",
    "Intel's emulator",
)  # fmt: skip


def line(one: Row) -> str:
    """Return a row as a line of a table in Markdown."""
    if one.reason:
        cells = [one.name, one.size, "", "", "", f"no circuit: {_shown(one.reason)}", "", ""]
    else:
        cells = [one.name, one.size, f"{one.processes:,}", str(one.stages), f"{one.cycles:,}"]
        cells += [_shown(one.outcome.get(step, "not installed")) for step in STEPS]
    return f"| {' | '.join(cells)} |"


def table(rows: Sequence[Row], before: str = "") -> str:
    """Return a Markdown table of the rows, and of other benchmarks' lines in the earlier text ``before``."""
    lines = {found[1]: found[0] for found in re.finditer(r"^\| (\w+) \|.*\|$", before, re.MULTILINE)}
    lines.pop("benchmark", None)
    lines.update((one.name, line(one)) for one in rows)
    rule = "|---|---|" + "---:|" * 3 + "---|" * 3
    return "\n".join([f"| {' | '.join(_HEADINGS)} |", rule, *(lines[name] for name in sorted(lines))])


def _shown(text: str) -> str:
    text = re.sub(r"\S*/(\w+\.py:\d+)", r"\1", text)  # files without their folders
    text = text.replace("|", "\\|").replace("<", "&lt;")
    # a statement may be a whole loop, and why it is refused stands behind it
    return text if len(text) <= 170 else f"{text[:100]} ... {text[-65:]}"


def summary(whole: str) -> str:
    """Return a sentence with the numbers of a table's benchmarks that are circuits, and that are right."""
    rows = [re.split(r"(?<!\\)\|", text)[1:-1] for text in whole.splitlines()[2:]]
    cells = [[cell.strip() for cell in row] for row in rows]
    there = [row for row in cells if not row[5].startswith("no circuit")]
    both = [row for row in there if row[5] == row[6] == "right"]
    full = sum(row[1] == "S" for row in both)
    emulated = sum(row[7].startswith("right") for row in there)
    return (
        f"{len(there)} of {len(cells)} are circuits; {len(both)} are right in C simulation for both vendors, "
        f"{full} of them at size S, and {emulated} on the emulator."
    )


HEAD = """\
# NPBench on FPGAs

From each benchmark's unmodified NumPy source: whether it is a process network, and whether the kernels for
both vendors give NumPy's results (by NPBench's tolerances) in C simulation, in which FIFOs have their depths,
and Intel's on Intel's FPGA emulator, there with chains of two time steps and four processing elements for a
product.  *Cycles* are the model's, with latencies.  Where the size is not S alone, S asks for more than a
circuit or its simulation has room or time for."""


def main(suite: Path, only: str, step: str, docs: Path | None, jobs: int) -> int:
    """Run the benchmarks and print the table, or run one step and print its outcome as JSON."""
    chosen = benchmarks(suite.resolve(), only)
    if step:
        (bench,) = [one for one in chosen if one.name == only]
        print(json.dumps(measure(bench, step)))
        return 0
    rows = []
    with ThreadPoolExecutor(jobs) as pool:
        for one in pool.map(row, chosen):
            rows.append(one)
            told = one.reason or "; ".join(f"{name} {result}" for name, result in one.outcome.items())
            print(f"{one.name:<26}{told}"[:180], flush=True)
    print(f"\n{summary(table(rows))}")
    if docs is not None:
        before = docs.read_text(encoding="utf-8") if only and docs.exists() else ""
        whole = table(rows, before)
        command = "`python -m conformance.fpga --npbench PATH --docs docs/fpga-npbench.md`"
        write_section(docs, "Table", f"{command}\n\n{summary(whole)}\n\n{whole}", HEAD)
    return int(any(not result.startswith("right") for one in rows for result in one.outcome.values()))
