"""C texts of HLS processes that compute a statement, such as a stencil, on streams of elements.

A stream's elements come in row-major order.  The loop runs over *ticks*, the points of a *raster* (a box from
0 on that contains the operands' boxes and the domain).  Each stream has a line buffer: a shift register whose
*taps* are the elements that the statement's loads need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING

from ..network.folds import neutral
from ..network.line_buffers import Parts, parts
from ..network.nodes import Fifo, Work
from ..network.tables import Table, copies, in_memory
from ..network.ticks import point_of, tick_span
from .blocks import count, indented, lanes
from .counters import advance, counters, is_inside

if TYPE_CHECKING:
    from .printer import ProcessPrinter


def lines(printer: ProcessPrinter, work: Work, fifos: Mapping[str, Fifo]) -> Iterator[str]:
    """Yield the C statements of a process: at each tick the shift registers advance, and at ticks inside of
    the domain the statement is computed."""
    raster, stmt = work.raster, work.stmt
    first, last = tick_span(work, fifos)
    for name in work.tables:
        yield from _table(printer, work, name)
    for n, line in enumerate(work.inputs):
        pieces = parts(work, line, printer.shortest_delay)
        yield from printer.registers(fifos[line.source], f"line{n}", pieces.registers)
        for k, length in enumerate(pieces.delays):
            yield from printer.delay(fifos[line.source], f"delay{n}_{k}", length)
            yield f"int64_t at{n}_{k} = 0;"
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
    """Yield the body of the loop over ticks."""
    for n, line in enumerate(work.inputs):
        pieces = parts(work, line, printer.shortest_delay)
        for k, length in enumerate(pieces.delays):
            yield from printer.delayed(f"delay{n}_{k}", length)
        yield from _moved(printer, n, pieces)
        inside = is_inside(f"a{n}x", fifos[line.source].vectors)
        yield f"if ({inside}) line{n}[{pieces.registers - 1}] = {printer.receive(line.source)};"
    yield f"if ({is_inside('h', work.vectors)}) {{"
    yield from indented(_point(printer, work) if work.width == 1 else _points(printer, work, fifos))
    yield "}"
    for n in range(len(work.inputs)):
        yield from advance(f"a{n}x", None, work.raster)
    yield from advance("h", None, work.raster)


def _moved(printer: ProcessPrinter, n: int, pieces: Parts) -> Iterator[str]:
    """Yield the statements that advance line buffer ``n`` by one element, the oldest element first."""
    begin = 0
    for k, (first, last) in enumerate(pieces.runs):
        end = begin + last - first  # the number of the run's last register
        if end > begin:
            moved = [f"line{n}[j] = line{n}[j + 1];"]
            yield from printer.unrolled(f"int j = {begin}; j < {end}; j++", moved)
        if k < len(pieces.delays):
            yield f"line{n}[{end}] = delay{n}_{k}[at{n}_{k}];"
            yield f"delay{n}_{k}[at{n}_{k}] = line{n}[{end + 1}];"
            yield f"if (++at{n}_{k} == {pieces.delays[k]}) at{n}_{k} = 0;"
        begin = end + 1


def table_of(printer: ProcessPrinter, work: Work, name: str) -> Table:
    """Return the table (copies in block memory) of an array that a statement reads at any position."""
    many = len(in_memory(work.stmt, name, (tap.load for tap in work.taps))) * work.width
    return Table(f"table_{name}", copies(many) if printer.copies_tables else 1, work.width)


def tables(printer: ProcessPrinter, work: Work) -> dict[str, Table]:
    """Return the tables of a statement by the names of their arrays."""
    return {name: table_of(printer, work, name) for name in work.tables}


def _table(printer: ProcessPrinter, work: Work, name: str) -> Iterator[str]:
    """Yield the loop that copies an array from memory to its table in block memory."""
    table, array = table_of(printer, work, name), printer.arrays[name]
    size = prod(array.shape)
    yield from printer.table(printer.type(array.dtype), table.name, table.copies, size)
    given = printer.element(dict(work.held)[name].pointer, "i")
    stored = [f"const {printer.type(array.dtype)} v = {given};"]
    stored += printer.unrolled(f"int c = 0; c < {table.copies}; c++", [f"{table.name}[c][i] = v;"])
    yield from printer.pipelined(f"{work.name}_{name}", count(size), stored)


def _point(printer: ProcessPrinter, work: Work) -> Iterator[str]:
    """Yield the statements that compute and deliver the value at a tick inside of the domain."""
    for axis, start in enumerate(work.box.first):
        yield f"const int64_t x{axis} = h{axis}{less(start)};"
    result, lines = printer.value(work.stmt.body, work, tables(printer, work))
    yield from lines
    yield from printer.deliver(work, result)


def _points(printer: ProcessPrinter, work: Work, fifos: Mapping[str, Fifo]) -> Iterator[str]:
    """Yield the statements for a tick inside of the domain if each tick has a vector of several points."""
    stmt, width, last = work.stmt, work.width, len(work.box.first) - 1
    for axis, start in enumerate(work.box.first[:-1]):
        yield f"const int64_t x{axis} = h{axis}{less(start)};"
    result, lines = printer.value(stmt.body, work, tables(printer, work))
    after: list[str] = []
    if stmt.combine is None:
        yield f"{printer.carried_by(fifos[work.out])} v = {{{{0}}}};"
        stored, after = f"v.v[j] = {result};", [*printer.deliver(work, "v")]
    elif work.adds_vectors:
        row, place = f"h{last}", ""
        for axis in work.kept[:-1]:
            place = f"({place} * {stmt.target.shape[axis]} + x{axis})" if place else f"x{axis}"
        at = f"{place} * {work.row} + {row}" if place else row
        many = printer.lanes(work)
        spot = f"acc[{at}][{'lane' if many > 1 else '0'}].v[j]"
        stored = f"{spot} = {printer.combined(work, spot, result)};"
        after = [f"lane = (lane + 1) % {many};"] if many > 1 else []
    else:
        dtype = printer.arrays[stmt.target.array].dtype
        nothing = neutral(stmt.combine, dtype)
        assert nothing is not None
        yield f"{printer.type(dtype)} part = {printer.literal(nothing)};"
        stored = f"part = {printer.combined(work, 'part', result)};"
        after = [*printer.deliver(work, "part")]
    first, count = work.box.first[-1], work.box.shape[-1]
    lane = [*lines, stored]
    if first % width or count % width:  # some of a vector's elements are not of the domain
        lane = [f"if (x{last} >= 0 && x{last} < {count}) {{", *indented(lane), "}"]
    at = f"const int64_t x{last} = h{last} * {width} + j{less(first)};"
    yield from printer.unrolled(lanes(width), [at, *lane])
    yield from after


def less(start: int) -> str:
    """Return the C text ``- start``; empty if ``start`` is 0."""
    return f" - {start}" if start else ""


def tapped(line: str, place: int, shift: int, width: int) -> str:
    """Return the C text of a shift register's element for a load; of vectors, for the lane ``j``."""
    if width == 1:
        return f"{line}[{place}]"
    if shift == 0:
        return f"{line}[{place}].v[j]"
    before = f"{place} + " if place else ""
    return f"{line}[{before}(j + {shift}) / {width}].v[(j + {shift}) % {width}]"
