"""C texts of the processes that move elements between memory and streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING

from ..network.nodes import Duplicate, Fifo, Merge, Read, Write
from .blocks import count, indented, lanes
from .counters import advance, counters, is_inside

if TYPE_CHECKING:
    from .printer import ProcessPrinter


def lines(
    printer: ProcessPrinter, process: Read | Duplicate | Merge | Write, fifos: Mapping[str, Fifo]
) -> Iterator[str]:
    """Yield the statements of the C function of a process."""
    match process:
        case Read(name, buffer, out):
            lines = [*_next(printer, fifos[out], buffer.pointer), printer.send(out, "v")]
            yield from printer.pipelined(name, count(fifos[out].vectors.size), lines)
        case Duplicate(name, source, several):
            fifo = fifos[source]
            lines = [f"const {printer.carried_by(fifo)} v = {printer.receive(source)};"]
            lines += [printer.send(out, "v") for out in several]
            yield from printer.pipelined(name, count(fifo.vectors.size), lines)
        case Merge(name, old, new, out):
            fifo = fifos[old]
            shape, start = fifo.vectors.shape, fifo.vectors.first
            yield from counters("x", start)
            lines = [f"{printer.carried_by(fifo)} v = {printer.receive(old)};"]
            lines += _overlaid(printer, fifos[new])
            lines += [printer.send(out, "v"), *advance("x", start, shape)]
            yield from printer.pipelined(name, count(fifo.vectors.size), lines)
        case Write(name, buffer, source, window, base):
            target = buffer.pointer
            if base is not None:
                whole = count(prod(printer.arrays[buffer.array].shape))
                yield from printer.pipelined(
                    f"{name}_copy", whole, [f"{target}[i] = {printer.element(base.pointer, 'i')};"]
                )
            if (fifo := fifos[source]).width > 1:  # the whole array
                stored = [f"{target}[i * {fifo.width} + j] = v.v[j];"]
                lines = [f"const {printer.carried_by(fifo)} v = {printer.receive(source)};"]
                lines += printer.unrolled(lanes(fifo.width), stored)
                yield from printer.pipelined(name, count(fifo.vectors.size), lines)
                return
            zeros = (0,) * len(window.shape)
            yield from counters("x", zeros)
            lines = [f"{target}[{printer.place(window)}] = {printer.receive(source)};"]
            lines += advance("x", zeros, window.shape)
            yield from printer.pipelined(name, count(prod(window.shape)), lines)


def _next(printer: ProcessPrinter, fifo: Fifo, name: str) -> Iterator[str]:
    """Yield the declaration of ``v``, item number ``i`` of a buffer, of the size that a FIFO carries."""
    kind, width = printer.carried_by(fifo), fifo.width
    if width == 1:
        yield f"const {kind} v = {printer.element(name, 'i')};"
        return
    yield f"{kind} v;"
    yield from printer.unrolled(lanes(width), [f"v.v[j] = {name}[i * {width} + j];"])


def _overlaid(printer: ProcessPrinter, new: Fifo) -> Iterator[str]:
    """Yield statements that replace elements of ``v``, at the point ``x0``, ``x1``, ..., by those that come
    in the FIFO ``new``, if it has any for that point."""
    inside, got = is_inside("x", new.vectors), printer.receive(new.name)
    if new.width == 1:
        yield f"if ({inside}) v = {got};"
        return
    last, width = len(new.box.first) - 1, new.width
    first, many = new.box.first[-1], new.box.shape[-1]
    whole = not (first % width or many % width)
    at = f"const int64_t at = x{last} * {width} + j;"
    some = f"if (at >= {first} && at < {first + many}) v.v[j] = n.v[j];"
    taken = ["v.v[j] = n.v[j];"] if whole else [at, some]
    yield f"if ({inside}) {{"
    yield f"  const {printer.carried_by(new)} n = {got};"
    yield from indented(printer.unrolled(lanes(width), taken))
    yield "}"
