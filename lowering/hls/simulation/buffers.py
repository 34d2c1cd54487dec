"""The values of a network's buffers before and after a run."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from dcarray.ir.numpy_views import NDArray

from ..network.arguments import arguments
from ..network.nodes import Buffer, Network

__all__ = ["from_bytes", "initial", "results", "written"]


def initial(network: Network, memory: Mapping[str, NDArray]) -> dict[Buffer, NDArray]:
    """Return the values of the buffers that processes read and none writes, in the order of `arguments`.

    Parameters
    ----------
    network : Network
    memory : mapping of str to array
        The values of the region's input arrays.
    """
    arrays = {array.name: array for array in network.region.arrays}
    values: dict[Buffer, NDArray] = {}
    for buffer, is_written in arguments(network):
        array = arrays[buffer.array]
        if not is_written:
            known = array.role in ("in", "inout")
            values[buffer] = memory[buffer.array] if known else np.zeros(array.shape, array.dtype)
    return values


def written(network: Network) -> dict[Buffer, NDArray]:
    """Return the buffers that processes write, each with an array of zeros, in the order of `arguments`."""
    arrays = {array.name: array for array in network.region.arrays}
    return {
        buffer: np.zeros(arrays[buffer.array].shape, arrays[buffer.array].dtype)
        for buffer, is_written in arguments(network)
        if is_written
    }


def from_bytes(network: Network, data: bytes) -> dict[Buffer, NDArray]:
    """Return the arrays of the buffers that processes write, which ``data`` has one after the other."""
    at, arrays = 0, {}
    for buffer, empty in written(network).items():
        flat = np.frombuffer(data, empty.dtype, prod(empty.shape), at)
        arrays[buffer] = flat.reshape(empty.shape).copy()
        at += flat.nbytes
    return arrays


def results(
    network: Network, values: Mapping[Buffer, NDArray], memory: Mapping[str, NDArray]
) -> dict[str, NDArray]:
    """Return the region's results; one that no process writes is the array in ``memory``, or else zeros."""
    arrays = {array.name: array for array in network.region.arrays}

    def before(name: str) -> NDArray:
        return memory[name].copy() if name in memory else np.zeros(arrays[name].shape, arrays[name].dtype)

    return {
        name: values[buffer] if buffer in values else before(name) for name, buffer in network.results.items()
    }
