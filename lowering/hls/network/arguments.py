"""What the kernels of a network are given: pointers to buffers, numbers."""

from __future__ import annotations

from dcarray.ir.nodes import Array

from .nodes import Buffer, Network, Process, buffers_read, buffers_written, outs, sources


def arguments(network: Network) -> tuple[tuple[Buffer, bool], ...]:
    """The buffers that the processes are given pointers to, in order, and whether one writes them."""
    written: dict[Buffer, bool] = {}
    for stage in network.stages:
        for process in stage.processes:
            for buffer in buffers_read(process):
                written.setdefault(buffer, False)
            written.update(dict.fromkeys(buffers_written(process), True))
    return tuple(written.items())


def process_arguments(process: Process) -> tuple[tuple[str, ...], tuple[Buffer, ...], tuple[Buffer, ...]]:
    """What the function of a process is given: FIFOs, buffers that it reads, buffers that it writes."""
    fifos = (*sources(process), *outs(process))
    return fifos, tuple(dict.fromkeys(buffers_read(process))), buffers_written(process)


def is_value(array: Array, written: bool) -> bool:
    """Whether kernels are given the value of a buffer, in a register, and no pointer: it is one element, and
    none writes it."""
    return not written and array.shape == ()
