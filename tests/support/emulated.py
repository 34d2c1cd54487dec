"""Process networks on Intel's FPGA emulator."""

import numpy as np

from conformance.fpga.emulator import Job, run
from dcarray.lowering.hls.intel import emit, kernels
from dcarray.lowering.hls.processes import arguments, pointer


def emulate(network, memory, *, strict=False, times=1, timeout=60):
    """The arrays that a network gives back, run so often, each time from the same arrays."""
    arrays = {array.name: array for array in network.region.arrays}
    buffers, written = {}, []
    for buffer, is_written in arguments(network):
        array, name = arrays[buffer.array], pointer(buffer)
        known = not is_written and buffer.array in memory
        buffers[name] = memory[buffer.array] if known else np.zeros(array.shape, array.dtype)
        if is_written:
            written.append(name)
    stages = [
        [(kernel.name, [pointer(buffer) for buffer in kernel.arguments]) for kernel in stage]
        for stage in kernels(network, "k")
    ]
    found = run(Job(emit(network, "k"), stages, buffers, written, times), strict=strict, timeout=timeout)
    return {name: found.get(pointer(buffer), memory.get(name)) for name, buffer in network.results.items()}
