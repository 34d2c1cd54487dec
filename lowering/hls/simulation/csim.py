"""C simulation of kernels for Vitis HLS and for Intel's FPGA SDK: a process is a coroutine.

The vendors' own simulations give FIFOs more room, or run processes one after the other, and so hide
deadlocks.  Here the kernel's text is compiled by a C++ compiler, with a stand-in for ``hls_stream.h`` or for
channels whose FIFOs block, and with a program in which the processes of a stage take turns: one runs until
it has to wait.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from math import prod
from pathlib import Path

from dcarray.ir.numpy_views import NDArray
from dcarray.ir.records import record
from dcarray.lowering.cpu.c.target import compiler
from dcarray.lowering.errors import Unsupported

from ..kernels import intel, vitis
from ..kernels.blocks import indented, repeated
from ..kernels.printer import carried_by
from ..network.arguments import arguments, is_value, process_arguments
from ..network.nodes import Network, Stage
from .buffers import from_bytes, initial, results

_FOLDER = Path(__file__).parent


class SimulationError(Exception):
    """Raised if a C simulation fails; the text is its output, for a deadlock the state of each FIFO."""


@record(frozen=True, slots=True)
class Language:
    """The parts of a C simulation that depend on the vendor's language.

    Attributes
    ----------
    headers : tuple of Path
        The header files that the program needs; it includes the first.
    kernel : callable
        ``kernel(network, top)`` is the text of the kernels as C++.
    begin : callable
        ``begin(network, top)`` are the program's first statements.
    stages : callable
        ``stages(network, top)`` are the statements that run the stages on pointers to the buffers.
    """

    headers: tuple[Path, ...]
    kernel: Callable[[Network, str], str]
    begin: Callable[[Network, str], list[str]]
    stages: Callable[[Network, str], list[str]]


def _vitis_stages(network: Network, top: str) -> list[str]:
    lines: list[str] = []
    for numbers, times in network.runs():
        stages = [network.stages[k] for k in numbers]
        lines += repeated(times, [line for stage in stages for line in _vitis_stage(stage, top)])
    return lines


def _vitis_stage(stage: Stage, top: str) -> list[str]:
    lines = ["  {"]
    for fifo in stage.fifos:
        kind, name = carried_by(fifo, vitis.HLS), fifo.name
        lines.append(f'    hls::stream<{kind}> {name}("{name}", {fifo.depth});')
    lines += [f"    csim::watch({{{', '.join(f'&{fifo.name}' for fifo in stage.fifos)}}});"]
    lines.append("    csim::run({")
    for process in stage.processes:
        streams, read, written = process_arguments(process)
        given = ", ".join([*streams, *(buffer.pointer for buffer in (*read, *written))])
        lines.append(f'      {{"{process.name}", [&] {{ {top}_{process.name}({given}); }}}},')
    lines += ["    });", "  }"]
    return lines


OPENCL_AS_CPP = (
    (r"^channel (\w+) (\w+) __attribute__\(\(depth\((\d+)\)\)\);$", r'static csim::Fifo<\1> \2("\2", \3);'),
    (r"^__attribute__\(\((max_global_work_dim\(0\)|autorun)\)\)$", ""),
    (r"__attribute__\(\(numbanks\(\d+\), bankwidth\(\d+\)\)\) ", ""),
)
"""Extended regular expressions of Intel's OpenCL, line by line, and what is there in C++."""


def as_cpp(text: str) -> str:
    """Return kernels in Intel's OpenCL as C++, to be included after ``intel_channels.h``."""
    for pattern, replacement in OPENCL_AS_CPP:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return text


def _intel_begin(network: Network, top: str) -> list[str]:
    """Return the statements that start the autorun kernels of all stages."""
    channels = [f"&{intel.channel(top, fifo.name)}" for stage in network.stages for fifo in stage.fifos]
    lines = [f"  csim::watch({{{', '.join(channels)}}});", "  csim::run_for_ever({"]
    for stage in network.stages:
        names = [intel.kernel_name(top, one) for one in stage.processes if intel.runs_by_itself(one)]
        lines += [f'    {{"{name}", {name}}},' for name in names]
    return [*lines, "  });"]


def _intel_stages(network: Network, top: str) -> list[str]:
    """Return the statements that start the other kernels, stage by stage, as a host does."""
    lines: list[str] = []
    stages = intel.kernels(network, top)
    for numbers, times in network.runs():
        started = []
        for kernels in (stages[k] for k in numbers):
            started.append("  csim::run({")
            for kernel in kernels:
                given = ", ".join(buffer.pointer for buffer in kernel.arguments)
                started.append(f'    {{"{kernel.name}", [&] {{ {kernel.name}({given}); }}}},')
            started.append("  });")
        lines += repeated(times, started)
    return lines


_FIFOS = _FOLDER / "bounded_fifos.h"
VITIS = Language((_FOLDER / "hls_stream.h", _FIFOS), vitis.emit, lambda *_: [], _vitis_stages)
INTEL = Language(
    (_FOLDER / "intel_channels.h", _FIFOS),
    lambda network, top: as_cpp(intel.emit(network, top)),
    _intel_begin,
    _intel_stages,
)


LANGUAGES = {"vitis": VITIS, "intel": INTEL}


def program(networks: Sequence[Network], language: Language = VITIS) -> str:
    """Return the C++ text of a program that simulates one of several networks.

    Its arguments are the number of the network, the file of the input buffers, the file for the results, and
    the number of times that the network runs.
    """
    lines = ["#include <cmath>", "#include <cstdint>", "#include <cstdio>", "#include <cstdlib>"]
    lines.append(f'#include "{language.headers[0].name}"')
    for number, network in enumerate(networks):
        top = f"kernel{number}"
        lines += [f"namespace n{number} {{", language.kernel(network, top)]
        lines += [*_runner(network, language.begin(network, top), language.stages(network, top)), "}"]
    lines += ["int main(int count, char **given) {", "  if (count != 5) return 2;", "  int failed = 2;"]
    lines.append("  switch (atoi(given[1])) {")
    lines += [
        f"    case {n}: failed = n{n}::run(given[2], given[3], atoi(given[4])); break;"
        for n in range(len(networks))
    ]
    # some processes may go on for ever, and use what an orderly end takes away
    return "\n".join([*lines, "  }", "  _Exit(failed);", "}", ""])


def _runner(network: Network, begin: list[str], stages: list[str]) -> list[str]:
    """Return the C++ function that reads the buffers, runs the stages and writes the results."""
    arrays = {array.name: array for array in network.region.arrays}
    lines = ["static int run(const char *from, const char *to, int times) {"]
    lines.append('  FILE *file = fopen(from, "rb");')
    for buffer, written in arguments(network):
        array, name = arrays[buffer.array], buffer.pointer
        kind, size = vitis.HLS.type(array.dtype), prod(array.shape)
        if is_value(array, written):
            lines.append(f"  {kind} {name};")
            lines.append(f"  if (fread(&{name}, sizeof({kind}), 1, file) != 1) return 2;")
            continue
        lines.append(f"  {kind} *{name} = ({kind} *)calloc({max(size, 1)}, sizeof({kind}));")
        if not written:
            lines.append(f"  if (fread({name}, sizeof({kind}), {size}, file) != {size}) return 2;")
    lines += ["  fclose(file);", *begin, "  for (int n = 0; n < times; n++) {", *indented(stages), "  }"]
    lines.append('  file = fopen(to, "wb");')
    for buffer, written in arguments(network):
        if written:
            array = arrays[buffer.array]
            kind = vitis.HLS.type(array.dtype)
            lines.append(f"  fwrite({buffer.pointer}, sizeof({kind}), {prod(array.shape)}, file);")
    return [*lines, "  fclose(file);", "  return 0;", "}"]


class Simulation:
    """A compiled C simulation of several networks."""

    def __init__(self, networks: Sequence[Network], folder: Path, language: Language = VITIS) -> None:
        self.networks, self.folder = tuple(networks), folder
        source, self.binary = folder / "csim.cpp", folder / "csim"
        source.write_text(program(networks, language))
        for header in language.headers:
            (folder / header.name).write_text(header.read_text())
        flags = ("-x", "c++", "-std=c++17", "-O1", "-ffp-contract=off", "-Wno-unknown-pragmas")
        command = (*compiler(), *flags, str(source), "-o", str(self.binary), "-lstdc++", "-lm")
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Unsupported(f"the C++ compiler refuses the kernel:\n{done.stderr}")

    def run(self, number: int, memory: Mapping[str, NDArray], times: int = 1) -> dict[str, NDArray]:
        """Run a network ``times`` times, each time on the arrays in ``memory``; return the region's results.

        Raises
        ------
        SimulationError
            If the network deadlocks.
        """
        network = self.networks[number]
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder, "in"), Path(folder, "out")
            source.write_bytes(b"".join(array.tobytes() for array in initial(network, memory).values()))
            command = (str(self.binary), str(number), str(source), str(target), str(times))
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise SimulationError(done.stderr)
            return results(network, from_bytes(network, target.read_bytes()), memory)
