"""The printer of networks as readable text."""

from __future__ import annotations

from dcarray.ir.nodes import Region
from dcarray.ir.text import dtype_name, show_stmt

from .nodes import (
    Duplicate,
    Merge,
    Network,
    Process,
    Read,
    Sequential,
    Work,
    Write,
    buffers_read,
    buffers_written,
    outs,
    sources,
)
from .systolic_products import Collect, Element, Feed


def dump(network: Network) -> str:
    """Return a network as text."""
    lines = []
    for number, stage in enumerate(network.stages):
        lines.append(f"stage {number}")
        lines += [f"  {_show(process, network.region)}" for process in stage.processes]
        for fifo in stage.fifos:
            shape = ", ".join(f"{f}:{f + n}" for f, n in zip(fifo.box.first, fifo.box.shape, strict=True))
            width = f", {fifo.width} at a time" if fifo.width > 1 else ""
            lines.append(f"  fifo {fifo.name}: {dtype_name(fifo.dtype)}[{shape}]{width}, depth {fifo.depth}")
        lines += [f"  narrow: {why}" for why in stage.narrow]
    for one in network.repeats:
        lines.append(f"stages {one.first} to {one.last} run {one.times} times")
    lines += [f"result {name} = {buffer}" for name, buffer in network.results.items()]
    lines += [f"statement {k} has {name} in memory: {why}" for k, name, why in network.reasons]
    return "\n".join(lines) + "\n"


def _show(process: Process, region: Region) -> str:
    match process:
        case Read(name, buffer, out):
            return f"{name}: {buffer} -> {out}"
        case Duplicate(name, source, several):
            return f"{name}: {source} -> {', '.join(several)}"
        case Merge(name, old, new, out):
            return f"{name}: {old} overlaid with {new} -> {out}"
        case Work():
            read = [f"{line.source}[{line.tail}..{line.lead}]" for line in process.inputs]
            read += [str(buffer) for buffer in buffers_read(process)]
            stmt = show_stmt(process.stmt, region).strip()
            return f"{process.name}: {', '.join(read)} -> {process.out}  # {stmt}"
        case Write(name, buffer, source, _, base):
            return f"{name}: {source} -> {buffer}" + (f", over a copy of {base}" if base else "")
        case Sequential(name, _, body):
            given = ", ".join(map(str, buffers_read(process)))
            changed = ", ".join(map(str, buffers_written(process)))
            first = show_stmt(body[0], region).strip().splitlines()[0]
            return f"{name}: {given} -> {changed}  # {first}{' ...' if len(body) > 1 else ''}"
        case Feed(name, product, _, buffer, out):
            return f"{name}: {buffer} -> {out}  # {show_stmt(product.call, region).strip()}"
        case Element():
            return f"{process.name}: {', '.join(sources(process))} -> {', '.join(outs(process))}"
        case Collect(name, _, buffer, source, base):
            return f"{name}: {source} -> {buffer}" + (f", over a copy of {base}" if base else "")
