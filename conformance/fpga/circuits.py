"""Functions as process networks, and what they run on.

Emulators and Verilator need kernels and networks themselves: this module, alone in this folder, looks behind
dcarray's public face.
"""

from __future__ import annotations

import ast
import inspect
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from conformance.fpga import emulator, verilog
from dcarray.core.errors import ProgramError
from dcarray.ir.nodes import Array
from dcarray.jit.program.annotations import Annotation, ArrayAnnotation, ScalarAnnotation
from dcarray.jit.program.region import TracedProgram, region_of
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.hls import csim, intel
from dcarray.lowering.hls import verilog as circuits_in_verilog
from dcarray.lowering.hls.model import NetworkModel, model
from dcarray.lowering.hls.network import Buffer, Network
from dcarray.lowering.hls.processes import arguments, pointer
from dcarray.lowering.hls.streaming import compose
from dcarray.lowering.hls.verilog_bench import bench

__all__ = ["Circuit", "Refused", "circuit_of", "emulate", "simulate_c", "simulate_cycles", "synthesise"]

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
    bound = inspect.signature(function).bind(*given)
    bound.apply_defaults()
    constants = {name: value for name, value in bound.arguments.items() if type(value) is int}
    types = {name: _type(value) for name, value in bound.arguments.items() if name not in constants}
    try:
        traced = region_of(function, types, constants)  # type: ignore[arg-type]
        network = compose(traced.region)
    except (ProgramError, Unsupported) as refused:
        raise Refused(str(refused)) from None
    inputs = [array for array in traced.region.arrays if array.role in ("in", "inout")]
    memory = {
        array.name: _value(array, text, bound.arguments)
        for array, text in zip(inputs, traced.inputs, strict=True)
    }
    return Circuit(network, model(network), memory, traced, bound.arguments)


def _type(value: Any) -> Annotation | None:
    if isinstance(value, np.ndarray):
        return ArrayAnnotation(value.dtype, value.shape)
    if isinstance(value, np.generic):
        return ScalarAnnotation(value.dtype, None)
    return ScalarAnnotation(np.dtype(type(value)), type(value)) if type(value) in (bool, float) else None


def _value(array: Array, text: str, given: Mapping[str, Any]) -> _Array:
    value = given[text] if text in given else ast.literal_eval(text)
    return np.asarray(value, array.dtype)


LANGUAGES = {"vitis": csim.VITIS, "intel": csim.INTEL}


def simulate_c(circuit: Circuit, target: str) -> dict[str, _Array]:
    """Run a circuit in C simulation for "vitis" or "intel".

    Raises
    ------
    Refused, dcarray.lowering.hls.csim.SimulationError
    """
    with tempfile.TemporaryDirectory() as folder:
        try:
            simulation = csim.Simulation([circuit.network], Path(folder), LANGUAGES[target])
        except Unsupported as refused:
            raise Refused(str(refused)) from None
        return simulation.run(0, circuit.memory)


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
