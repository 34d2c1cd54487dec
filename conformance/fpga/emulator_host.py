"""The host program of kernels on Intel's FPGA emulator, which `emulator` runs in the emulator's environment.

Its argument is a folder with ``plan.json``, ``kernels.cl`` and ``given.npz``; the resulting buffers are saved
there as ``written.npz``.  Each kernel of a stage has its own command queue; a stage begins when all kernels
of the previous one have ended.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any


def run(folder: Path, job: dict[str, Any], context: Any) -> None:
    """Run the kernels of a job and save the buffers that they have written."""
    import numpy as np
    import pyopencl as cl

    (device,) = context.devices
    program = cl.Program(context, (folder / "kernels.cl").read_text()).build()
    kernels = {kernel.function_name: kernel for kernel in program.all_kernels()}
    with np.load(folder / "given.npz") as arrays:
        given = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    # single elements that no kernel writes are arguments themselves
    values = {name for name, array in given.items() if not array.shape and name not in job["written"]}
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    nothing = np.zeros(1, np.uint8)  # a buffer of no bytes is refused
    buffers = {
        name: cl.Buffer(context, flags, hostbuf=array.reshape(-1) if array.size else nothing)
        for name, array in given.items()
        if name not in values
    }
    buffers |= {name: given[name][()] for name in values}
    for _ in range(job["times"]):
        for stage in job["stages"]:
            queues = []
            for name, arguments in stage:
                kernels[name].set_args(*(buffers[argument] for argument in arguments))
                queue = cl.CommandQueue(context, device)
                cl.enqueue_nd_range_kernel(queue, kernels[name], (1,), (1,))
                queue.flush()
                queues.append(queue)
            for queue in queues:
                queue.finish()
    queue = cl.CommandQueue(context, device)
    for name in job["written"]:
        if given[name].size:
            cl.enqueue_copy(queue, given[name], buffers[name])
    written: Any = {name: given[name] for name in job["written"]}
    np.savez(folder / "written.npz", **written)


def main() -> None:
    """Run the job in the folder that is the program's argument."""
    import pyopencl as cl

    warnings.simplefilter("ignore", cl.CompilerWarning)
    folder = Path(sys.argv[1])
    (platform,) = cl.get_platforms()
    context = cl.Context(platform.get_devices())
    run(folder, json.loads((folder / "plan.json").read_text()), context)
    sys.stdout.flush()
    os._exit(0)  # autorun kernels go on for ever


if __name__ == "__main__":
    main()
