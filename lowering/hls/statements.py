"""Statements with streams, as statements of functions in C."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from .blocks import indented, lanes
from .counters import advance, counters, is_inside, point_of, tick_span
from .folds import neutral
from .network import Fifo, Work

if TYPE_CHECKING:
    from .processes import ProcessPrinter


def lines(printer: ProcessPrinter, work: Work, fifos: Mapping[str, Fifo]) -> Iterator[str]:
    """A statement: at each tick the shift registers move on, and in the domain it is computed."""
    raster, stmt = work.raster, work.stmt
    first, last = tick_span(work, fifos)
    for n, line in enumerate(work.inputs):
        yield from printer.registers(fifos[line.source], f"line{n}", line.length)
        yield from counters(f"a{n}x", point_of(first + line.lead, raster))
    yield from counters("h", point_of(first, raster))
    head = f"int64_t tick = {first}; tick <= {last}; tick++"
    if stmt.combine is None:
        yield from printer.pipelined(work.name, head, _tick(printer, work, fifos))
    else:
        yield from printer.begin(work)
        yield from printer.folding(work, head, _tick(printer, work, fifos))
        yield from printer.finish(work)


def _tick(printer: ProcessPrinter, work: Work, fifos: Mapping[str, Fifo]) -> Iterator[str]:
    """The body of a statement's loop."""
    for n, line in enumerate(work.inputs):
        if line.length > 1:
            moved = [f"line{n}[j] = line{n}[j + 1];"]
            yield from printer.unrolled(f"int j = 0; j < {line.length - 1}; j++", moved)
        inside = is_inside(f"a{n}x", fifos[line.source].vectors)
        yield f"if ({inside}) line{n}[{line.length - 1}] = {printer.receive(line.source)};"
    yield f"if ({is_inside('h', work.vectors)}) {{"
    yield from indented(_point(printer, work) if work.width == 1 else _points(printer, work, fifos))
    yield "}"
    for n in range(len(work.inputs)):
        yield from advance(f"a{n}x", None, work.raster)
    yield from advance("h", None, work.raster)


def _point(printer: ProcessPrinter, work: Work) -> Iterator[str]:
    """What is done at a tick in the domain."""
    for axis, start in enumerate(work.box.first):
        yield f"const int64_t x{axis} = h{axis} - {start};"
    result, lines = printer.value(work.stmt.body, work)
    yield from lines
    yield from printer.deliver(work, result)


def _points(printer: ProcessPrinter, work: Work, fifos: Mapping[str, Fifo]) -> Iterator[str]:
    """What is done at a tick in the domain, where there are several points."""
    stmt, width, last = work.stmt, work.width, len(work.box.first) - 1
    for axis, start in enumerate(work.box.first[:-1]):
        yield f"const int64_t x{axis} = h{axis} - {start};"
    result, lines = printer.value(stmt.body, work)
    if stmt.combine is None:
        yield f"{printer.carried_by(fifos[work.out])} v = {{{{0}}}};"
        stored = f"v.v[j] = {result};"
    else:
        dtype = printer.arrays[stmt.target.array].dtype
        nothing = neutral(stmt.combine, dtype)
        assert nothing is not None
        yield f"{printer.type(dtype)} part = {printer.literal(nothing)};"
        stored = f"part = {printer.combined(work, 'part', result)};"
    first, count = work.box.first[-1], work.box.shape[-1]
    lane = [*lines, stored]
    if first % width or count % width:  # some of a vector's elements are not of the domain
        lane = [f"if (x{last} >= 0 && x{last} < {count}) {{", *indented(lane), "}"]
    at = f"const int64_t x{last} = h{last} * {width} + j - {first};"
    yield from printer.unrolled(lanes(width), [at, *lane])
    yield from printer.deliver(work, "v" if stmt.combine is None else "part")


def tapped(line: str, place: int, shift: int, width: int) -> str:
    """The element of a shift register that a load is; of vectors that of the lane ``j``."""
    if width == 1:
        return f"{line}[{place}]"
    if shift == 0:
        return f"{line}[{place}].v[j]"
    return f"{line}[{place} + (j + {shift}) / {width}].v[(j + {shift}) % {width}]"
