"""Functions as process networks, and what they run on.

Emulators and Verilator need kernels and networks themselves: this module, alone in this folder, looks behind
dcarray's public face.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from conformance.fpga import emulator, verilog
from dcarray.core.errors import ProgramError
from dcarray.ir.nodes import Array
from dcarray.jit.program.region import TracedProgram
from dcarray.jit.program.static_region import static_region
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.hls import intel
from dcarray.lowering.hls import verilog as circuits_in_verilog
from dcarray.lowering.hls.model import NetworkModel, model
from dcarray.lowering.hls.network import Buffer, Network
from dcarray.lowering.hls.processes import arguments, pointer
from dcarray.lowering.hls.streaming import compose
from dcarray.lowering.hls.verilog_bench import bench

__all__ = ["Circuit", "Refused", "circuit_of", "emulate", "simulate_cycles", "synthesise"]

_Array = np.ndarray[Any, Any]


class Refused(Exception):
    """A function is no process network, or a target has no text for it; the text says why."""


@dataclass(frozen=True)
class Circuit:
    """A call of a function as a process network.

    Attributes
    ----------
    network : Network
    model : NetworkModel
    memory : mapping of str to array
        What the region is given.
    """

    network: Network
    model: NetworkModel
    memory: Mapping[str, _Array]
    _traced: TracedProgram
    _given: Mapping[str, Any]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the function's parameters, in order."""
        return tuple(self._given)

    def outputs(self, results: Mapping[str, _Array], written: Sequence[str]) -> list[Any]:
        """Return what the function returns, and then the arguments of some names, which it changes."""
        after = dict(self._given)
        for parameter in self._traced.parameters:
            if parameter.symbol in results:
                after[parameter.name] = results[parameter.symbol]
        found: list[Any] = []
        for one in self._traced.results:
            match one.kind:
                case "alias":
                    found.append(after[one.name])
                case "value":
                    found.append(one.value)
                case _:
                    found.append(results[one.name])
        return [*found, *(after[name] for name in written)]


def circuit_of(function: Callable[..., Any], given: Sequence[Any]) -> Circuit:
    """Return a call of a function as a process network.

    Raises
    ------
    Refused
    """
    names = inspect.signature(function).bind(*given)
    names.apply_defaults()
    try:
        static = static_region(function, tuple(given))
        network = compose(static.region)
    except (ProgramError, Unsupported, TypeError, ValueError) as refused:
        raise Refused(str(refused)) from None
    return Circuit(network, model(network), static.memory, static.traced, names.arguments)


def _buffers(circuit: Circuit) -> tuple[dict[str, _Array], dict[Buffer, Array]]:
    """The values of all buffers in the beginning, and those that are written."""
    arrays = {array.name: array for array in circuit.network.region.arrays}
    values, written = {}, {}
    for buffer, is_written in arguments(circuit.network):
        array = arrays[buffer.array]
        known = not is_written and buffer.array in circuit.memory
        empty = np.zeros(array.shape, array.dtype)
        values[pointer(buffer)] = circuit.memory[buffer.array] if known else empty
        if is_written:
            written[buffer] = array
    return values, written


def _results(circuit: Circuit, found: Mapping[str, _Array]) -> dict[str, _Array]:
    return {
        name: found[pointer(buffer)] if pointer(buffer) in found else circuit.memory[name]
        for name, buffer in circuit.network.results.items()
    }


def emulate(circuit: Circuit, timeout: float = 60) -> dict[str, _Array]:
    """Run a circuit on Intel's FPGA emulator.

    Raises
    ------
    Refused, conformance.fpga.emulator.EmulatorError
    """
    values, written = _buffers(circuit)
    try:
        text = intel.emit(circuit.network, "k")
    except Unsupported as refused:
        raise Refused(str(refused)) from None
    stages = [
        [(kernel.name, [pointer(buffer) for buffer in kernel.arguments]) for kernel in stage]
        for stage in intel.kernels(circuit.network, "k")
    ]
    job = emulator.Job(text, stages, values, [pointer(buffer) for buffer in written])
    return _results(circuit, emulator.run(job, timeout=timeout))


def _design(circuit: Circuit) -> circuits_in_verilog.Design:
    try:
        return circuits_in_verilog.emit(circuit.network, "circuit")
    except Unsupported as refused:
        raise Refused(str(refused)) from None


def simulate_cycles(circuit: Circuit) -> tuple[dict[str, _Array], tuple[int, ...]]:
    """Run a circuit of integers in Verilator; return the results, and the cycles of each stage.

    Raises
    ------
    Refused, conformance.fpga.verilog.VerilogError
    """
    values, written = _buffers(circuit)
    design = _design(circuit)
    taken = {pointer(buffer) for buffer in written}
    given = b"".join(array.tobytes() for name, array in values.items() if name not in taken)
    text = bench(circuit.network, design, "circuit")
    made, cycles = verilog.simulate(design.text, text, "circuit", given)
    at, found = 0, {}
    for buffer, array in written.items():
        flat = np.frombuffer(made, array.dtype, prod(array.shape), at)
        found[pointer(buffer)] = flat.reshape(array.shape)
        at += flat.nbytes
    return _results(circuit, found), cycles


def synthesise(circuit: Circuit) -> verilog.Cells:
    """Synthesise a circuit of integers with Yosys.

    Raises
    ------
    Refused, conformance.fpga.verilog.VerilogError
    """
    return verilog.synthesise(_design(circuit).text, "circuit")
