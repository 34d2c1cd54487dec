"""Process networks of integers as circuits, simulated by Verilator."""

from math import prod

import numpy as np

from conformance.fpga.verilog import simulate
from dcarray.lowering.hls.processes import arguments
from dcarray.lowering.hls.verilog import emit
from dcarray.lowering.hls.verilog_bench import bench


def verilate(network, memory):
    """The arrays that a network gives back, and the cycles of its stages."""
    arrays = {array.name: array for array in network.region.arrays}
    design = emit(network, "circuit")
    given, written = [], []
    for buffer, is_written in arguments(network):
        array = arrays[buffer.array]
        if is_written:
            written.append(buffer)
        else:
            known = array.role in ("in", "inout")
            given.append(memory[buffer.array] if known else np.zeros(array.shape, array.dtype))
    data = b"".join(array.tobytes() for array in given)
    made, cycles = simulate(design.text, bench(network, design, "circuit"), "circuit", data)
    at, found = 0, {}
    for buffer in written:
        array = arrays[buffer.array]
        flat = np.frombuffer(made, array.dtype, prod(array.shape), at)
        found[buffer] = flat.reshape(array.shape)
        at += flat.nbytes
    return {
        name: found[buffer]
        if buffer in found
        else memory.get(name, np.zeros(arrays[name].shape, arrays[name].dtype))
        for name, buffer in network.results.items()
    }, cycles
