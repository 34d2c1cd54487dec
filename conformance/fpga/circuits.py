"""Functions compiled to process networks (processes joined by FIFOs), and their emulation and simulation.

Emulators and Verilator need kernels and networks themselves: this module, alone in this folder, uses
dcarray's private interfaces.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformance.fpga import emulator, verilog
from dcarray.core.errors import ProgramError
from dcarray.jit.program.region import TracedProgram
from dcarray.jit.program.static_region import static_region
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.hls.kernels import intel
from dcarray.lowering.hls.model.model import NetworkModel, model
from dcarray.lowering.hls.network.compose import compose
from dcarray.lowering.hls.network.nodes import Network
from dcarray.lowering.hls.project.boards import board_of
from dcarray.lowering.hls.project.fitting import fitted
from dcarray.lowering.hls.simulation.buffers import from_bytes, initial, results, written
from dcarray.lowering.hls.verilog import emit as circuits_in_verilog
from dcarray.lowering.hls.verilog.bench import bench

__all__ = [
    "Circuit", "Refused", "circuit_of", "emulate", "emulate_network", "simulate_network",
]  # fmt: skip

_Array = np.ndarray[Any, Any]


class Refused(Exception):
    """Raised if a function cannot be a process network or a target cannot express it; the text says why."""


@dataclass(frozen=True)
class Circuit:
    """The process network of a function for one call, with the arguments of that call."""

    network: Network
    model: NetworkModel
    memory: Mapping[str, _Array]  # the arrays that are the inputs of the network's region, by name
    _traced: TracedProgram
    _given: Mapping[str, Any]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the function's parameters, in order."""
        return tuple(self._given)

    def outputs(self, after_run: Mapping[str, _Array], changed: Sequence[str]) -> list[Any]:
        """Return the function's results, then the arguments named in ``changed``, as they are after the
        run."""
        after = dict(self._given)
        for parameter in self._traced.parameters:
            if parameter.symbol in after_run:
                after[parameter.name] = after_run[parameter.symbol]
        found: list[Any] = []
        for one in self._traced.results:
            match one.kind:
                case "alias":
                    found.append(after[one.name])
                case "value":
                    found.append(one.value)
                case _:
                    found.append(after_run[one.name])
        return [*found, *(after[name] for name in changed)]


def circuit_of(
    function: Callable[..., Any], given: Sequence[Any], target: str | None = None, **most: int
) -> Circuit:
    """Return a call of a function as a process network; ``most`` are limits of `fitted`.

    Streams carry one element at a time, or with ``target`` as many as exported projects for it have.

    Raises Refused.
    """
    names = inspect.signature(function).bind(*given)
    names.apply_defaults()
    try:
        static = static_region(function, tuple(given))
        if target is None:
            network = compose(static.region, **most)
        else:
            network = fitted(static.region, board_of(target, None), **most)
    except (ProgramError, Unsupported, TypeError, ValueError) as refused:
        raise Refused(str(refused)) from None
    return Circuit(network, model(network), static.memory, static.traced, names.arguments)


def emulate_network(
    network: Network,
    memory: Mapping[str, _Array],
    *,
    strict: bool = False,
    times: int = 1,
    timeout: float = 60,
) -> dict[str, _Array]:
    """Run a network ``times`` times on Intel's FPGA emulator, from the same inputs; return its outputs.

    Raises Unsupported, conformance.fpga.emulator.EmulatorError.
    """
    empty = written(network)
    values = {buffer.pointer: array for buffer, array in {**initial(network, memory), **empty}.items()}
    stages = [
        [(kernel.name, [buffer.pointer for buffer in kernel.arguments]) for kernel in stage]
        for stage in intel.kernels(network, "k")
    ]
    stages = [stages[k] for numbers, several in network.runs() for k in list(numbers) * several]
    job = emulator.Job(intel.emit(network, "k"), stages, values, [b.pointer for b in empty], times)
    found = emulator.run(job, strict=strict, timeout=timeout)
    return results(network, {buffer: found[buffer.pointer] for buffer in empty}, memory)


def simulate_network(
    network: Network, memory: Mapping[str, _Array]
) -> tuple[dict[str, _Array], tuple[int, ...]]:
    """Simulate an integer network in Verilator; return the results, and the cycles of each stage.

    Raises Unsupported, conformance.fpga.verilog.VerilogError.
    """
    design = circuits_in_verilog.emit(network, "circuit")
    given = b"".join(array.tobytes() for array in initial(network, memory).values())
    made, cycles = verilog.simulate(design.text, bench(network, design, "circuit"), "circuit", given)
    return results(network, from_bytes(network, made), memory), cycles


def emulate(circuit: Circuit, timeout: float = 60) -> dict[str, _Array]:
    """Run a circuit on Intel's FPGA emulator, and return its outputs.

    Raises Refused, conformance.fpga.emulator.EmulatorError.
    """
    try:
        return emulate_network(circuit.network, circuit.memory, timeout=timeout)
    except Unsupported as refused:
        raise Refused(str(refused)) from None
