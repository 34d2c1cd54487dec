"""The arguments of a network's kernels: pointers to buffers, and numbers."""

from __future__ import annotations

from dcarray.ir.nodes import Array

from .nodes import Buffer, Network, Process, buffers_read, buffers_written, outs, sources


def arguments(network: Network) -> tuple[tuple[Buffer, bool], ...]:
    """Return the buffers that the processes access, in order, each with whether a process writes it."""
    written: dict[Buffer, bool] = {}
    for stage in network.stages:
        for process in stage.processes:
            for buffer in buffers_read(process):
                written.setdefault(buffer, False)
            written.update(dict.fromkeys(buffers_written(process), True))
    return tuple(written.items())


def process_arguments(process: Process) -> tuple[tuple[str, ...], tuple[Buffer, ...], tuple[Buffer, ...]]:
    """Return the arguments of the function of a process: FIFOs, buffers read, buffers written."""
    fifos = (*sources(process), *outs(process))
    return fifos, tuple(dict.fromkeys(buffers_read(process))), buffers_written(process)


def is_value(array: Array, written: bool) -> bool:
    """Whether kernels get a buffer's value instead of a pointer: if it is one element, and none writes it."""
    return not written and array.shape == ()
