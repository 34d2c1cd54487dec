"""The views of streaming circuits in explanations: processes, FIFOs and their model, as text and drawing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dcarray.inspect.drawing import Node, Panel, size_text
from dcarray.inspect.formula import Names, statement_lines

if TYPE_CHECKING:
    from dcarray.ir.nodes import Region
    from dcarray.lowering.hls.model.costs import Cost
    from dcarray.lowering.hls.model.model import NetworkModel, ProcessModel
    from dcarray.lowering.hls.network.nodes import Network, Process

__all__ = ["TARGETS", "CircuitView", "view_circuit"]

TARGETS = ("vitis", "intel")
_LEGEND = {
    "in": "reads memory",
    "out": "writes memory",
    "kernel": "computes",
    "call": "joins or parts streams",
    "m": "FIFO of more than one element",
}
_KINDS = {"read": "in", "write": "out", "compute": "kernel"}


@dataclass(frozen=True)
class CircuitView:
    """A region as a streaming circuit.

    Attributes
    ----------
    target : str
        The target ("vitis" or "intel") whose tools read the text.
    reason : str
        Why there is no circuit, naming the statement; else empty.
    network : Network or None
    model : NetworkModel or None
    text : str
        The kernels as the target's tools take them.
    names : mapping of str to str
        Array name to the name shown for it.
    legend : mapping of str to str
        What the boxes and edges of the drawing are.
    """

    target: str
    reason: str
    network: Network | None
    model: NetworkModel | None
    text: str
    names: Names
    legend: ClassVar[Mapping[str, str]] = _LEGEND

    def lines(self) -> list[str]:
        """Return the text: the processes of each stage with their model, FIFOs and reasons."""
        if self.network is None or self.model is None:
            return [f"no circuit for {self.target}: {self.reason}"]
        lines = [f"circuit for {self.target}: {self._summary()}"]
        for number, (stage, model) in enumerate(zip(self.network.stages, self.model.stages, strict=True)):
            often = f"; it runs {model.times} times" if model.times > 1 else ""
            lines.append(
                f"  stage {number}: {model.cycles:,} cycles, {model.latency:,} with latencies{often}"
            )
            head = f"{'iterations':>12}{'interval':>10}{'latency':>9}{'DSP':>6}{'LUT':>8}{'FF':>8}{'BRAM':>6}"
            lines.append(f"    {'process':<28}{head}{'memory':>10}")
            for process, one in zip(stage.processes, model.processes, strict=True):
                lines.append(f"    {one.name:<28}{_figures(one)}")
                lines += [f"      {line}" for line in self._statement(process)]
                if one.why:
                    lines.append(f"      an iteration every {one.interval} cycles: {one.why}")
            for fifo in stage.fifos:
                wide = f", {fifo.width} at a time" if fifo.width > 1 else ""
                lines.append(f"    fifo {fifo.name}: {fifo.dtype.name}{wide}, depth {fifo.depth:,}")
            lines += [f"    streams of {why}" for why in stage.narrow]
        for statement, name, why in self.network.reasons:
            shown = self.names.get(name, name)
            lines.append(f"  statement {statement + 1} has {shown} in memory: {why}")
        return lines

    def panels(self) -> list[Panel]:
        """Return the drawing: for each stage its processes, and FIFOs between them."""
        if self.network is None or self.model is None:
            return []
        from dcarray.lowering.hls.network.nodes import outs, sources

        panels = []
        for number, (stage, model) in enumerate(zip(self.network.stages, self.model.stages, strict=True)):
            sender = {name: process.name for process in stage.processes for name in outs(process)}
            depth = {fifo.name: fifo.depth for fifo in stage.fifos}
            nodes, edges = {}, {}
            for process, one in zip(stage.processes, model.processes, strict=True):
                nodes[process.name] = Node(
                    _KINDS.get(one.kind, "call"),
                    "  ·  ".join(_head(one)),
                    (*self._statement(process), *self._waiting(process, depth)),
                )
                for name in sources(process):
                    edges[sender[name], process.name] = "m" if depth[name] > 1 else ""
            often = f"{model.times} times " if model.times > 1 else ""
            note = f"{often}{model.cycles:,} cycles, {model.latency:,} with latencies; {_cost(model.cost)}"
            panels.append(Panel(f"Stage {number} for {self.target}", note, nodes, edges))
        return panels

    def _summary(self) -> str:
        assert self.model is not None
        model = self.model
        parts = [
            f"{model.latency:,} cycles",
            f"an iteration every {model.interval}" if model.interval > 1 else "interval 1",
            f"{size_text(model.bytes_read)} read and {size_text(model.bytes_written)} written",
            _cost(model.cost),
        ]
        return "; ".join(parts)

    def _statement(self, process: Process) -> list[str]:
        """The statement of a process, or the array that it moves."""
        from dcarray.lowering.hls.network.nodes import Read, Work, Write

        match process:
            case Work():
                return statement_lines(process.stmt, self.names)
            case Read() | Write():
                name = process.buffer.array
                return [f"{self.names.get(name, name)}, version {process.buffer.version}"]
        return []

    def _waiting(self, process: Process, depth: dict[str, int]) -> Iterator[str]:
        """The FIFOs before a process in which more than one element may wait."""
        from dcarray.lowering.hls.network.nodes import sources

        for name in sources(process):
            if depth[name] > 1:
                yield f"behind a FIFO of depth {depth[name]:,}"


def view_circuit(region: Region, target: str, names: Names) -> CircuitView:
    """Return the view of a region as a circuit for a target of `TARGETS`; symbols have their values of an
    earlier run."""
    from dcarray.ir.sizes import with_sizes
    from dcarray.lowering.errors import Unsupported
    from dcarray.lowering.hls.kernels import intel, vitis
    from dcarray.lowering.hls.model.model import model
    from dcarray.lowering.hls.project.boards import board_of
    from dcarray.lowering.hls.project.fitting import fitted

    emit = {"vitis": vitis.emit, "intel": intel.emit}[target]
    hints = {symbol.name: symbol.hint for symbol in region.symbols if symbol.hint is not None}
    try:
        network = fitted(with_sizes(region, hints), board_of(target, None))
        text = emit(network, "kernel")
    except Unsupported as refused:
        return CircuitView(target, str(refused), None, None, "", names)
    return CircuitView(target, "", network, model(network), text, names)


def _figures(one: ProcessModel) -> str:
    cost = one.cost
    moved = size_text(one.bytes_read + one.bytes_written) if one.bytes_read + one.bytes_written else ""
    return (
        f"{one.iterations:>12,}{one.interval:>10,}{one.latency:>9,}{cost.dsp:>6,}{cost.lut:>8,}{cost.ff:>8,}"
        f"{cost.bram:>6,}{moved:>10}".rstrip()
    )


def _head(one: ProcessModel) -> Iterator[str]:
    yield one.kind
    yield f"{one.iterations:,} x {one.interval}"
    if one.bytes_read + one.bytes_written:
        yield size_text(one.bytes_read + one.bytes_written)
    if one.cost.dsp:
        yield f"{one.cost.dsp} DSP"


def _cost(cost: Cost) -> str:
    return f"about {cost.dsp:,} DSP, {cost.lut:,} LUT, {cost.ff:,} FF, {cost.bram:,} BRAM"
