"""C simulation of kernels for Vitis HLS: every process a thread, every FIFO of its computed depth.

The vendor's own C simulation runs processes one after the other with FIFOs without bounds, and so hides
deadlocks.  Here the functions of the kernel's processes are compiled as they are, with a stand-in for
``hls_stream.h`` whose FIFOs block, and a program that starts the processes of a stage as threads.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path

import numpy as np

from dcarray.ir.numpy_views import NDArray
from dcarray.lowering.cpu.c.target import compiler
from dcarray.lowering.errors import Unsupported

from .network import Network
from .processes import arguments, pointer, process_arguments
from .vitis import HLS, emit

HEADER = Path(__file__).with_name("hls_stream.h")


class SimulationError(Exception):
    """A C simulation ended without results; the text is its own: of a deadlock the state of each FIFO."""


def program(networks: Sequence[Network]) -> str:
    """The text of a program of several networks.

    It runs the one of the number in its first argument, on the buffers in the file of its second, and writes
    results to that of its third.
    """
    lines = ["#include <cmath>", "#include <cstdint>", "#include <cstdio>", "#include <cstdlib>"]
    lines.append('#include "hls_stream.h"')
    for number, network in enumerate(networks):
        text = emit(network, f"kernel{number}")
        lines += [f"namespace n{number} {{", text, *_runner(network, number), "}"]
    lines += ["int main(int count, char **given) {", "  if (count != 4) return 2;"]
    lines.append("  switch (atoi(given[1])) {")
    lines += [f"    case {n}: return n{n}::run(given[2], given[3]);" for n in range(len(networks))]
    return "\n".join([*lines, "  }", "  return 2;", "}", ""])


def _runner(network: Network, number: int) -> list[str]:
    """The function that starts the processes of each stage as threads."""
    arrays = {array.name: array for array in network.region.arrays}
    lines = ["static int run(const char *from, const char *to) {", '  FILE *file = fopen(from, "rb");']
    for buffer, written in arguments(network):
        array, name = arrays[buffer.array], pointer(buffer)
        kind, size = HLS.type(array.dtype), prod(array.shape)
        lines.append(f"  {kind} *{name} = ({kind} *)calloc({max(size, 1)}, sizeof({kind}));")
        if not written:
            lines.append(f"  if (fread({name}, sizeof({kind}), {size}, file) != {size}) return 2;")
    lines.append("  fclose(file);")
    for stage in network.stages:
        lines.append("  {")
        for fifo in stage.fifos:
            kind, name = HLS.type(fifo.dtype), fifo.name
            lines.append(f'    hls::stream<{kind}> {name}("{name}", {fifo.depth});')
        lines.append("    hls::processes({")
        for process in stage.processes:
            streams, read, written_to = process_arguments(process)
            given = ", ".join([*streams, *(pointer(buffer) for buffer in (*read, *written_to))])
            lines.append(f'      {{"{process.name}", [&] {{ kernel{number}_{process.name}({given}); }}}},')
        lines += ["    });", "  }"]
    lines.append('  file = fopen(to, "wb");')
    for buffer, written in arguments(network):
        if written:
            array = arrays[buffer.array]
            kind = HLS.type(array.dtype)
            lines.append(f"  fwrite({pointer(buffer)}, sizeof({kind}), {prod(array.shape)}, file);")
    return [*lines, "  fclose(file);", "  return 0;", "}"]


class Simulation:
    """A compiled program of networks."""

    def __init__(self, networks: Sequence[Network], folder: Path) -> None:
        self.networks, self.folder = tuple(networks), folder
        source, self.binary = folder / "csim.cpp", folder / "csim"
        source.write_text(program(networks))
        (folder / "hls_stream.h").write_text(HEADER.read_text())
        flags = ("-x", "c++", "-std=c++17", "-O0", "-ffp-contract=off", "-Wno-unknown-pragmas", "-pthread")
        command = (*compiler(), *flags, str(source), "-o", str(self.binary), "-lstdc++", "-lm")
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Unsupported(f"the C++ compiler refuses the kernel:\n{done.stderr}")

    def run(self, number: int, memory: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Run a network on arrays; return those that the region gives back.

        Raises
        ------
        SimulationError
            If it comes to a deadlock.
        """
        network = self.networks[number]
        arrays = {array.name: array for array in network.region.arrays}
        given, written = [], []
        for buffer, is_written in arguments(network):
            array = arrays[buffer.array]
            if is_written:
                written.append(buffer)
            else:
                known = array.role in ("in", "inout")
                given.append(memory[buffer.array] if known else np.zeros(array.shape, array.dtype))
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder, "in"), Path(folder, "out")
            source.write_bytes(b"".join(array.tobytes() for array in given))
            command = (str(self.binary), str(number), str(source), str(target))
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise SimulationError(done.stderr)
            data, at, found = target.read_bytes(), 0, {}
            for buffer in written:
                array = arrays[buffer.array]
                flat = np.frombuffer(data, array.dtype, prod(array.shape), at)
                found[buffer] = flat.reshape(array.shape).copy()
                at += flat.nbytes
        empty = {name: np.zeros(array.shape, array.dtype) for name, array in arrays.items()}
        return {
            name: found[buffer] if buffer in found else memory.get(name, empty[name]).copy()
            for name, buffer in network.results.items()
        }
