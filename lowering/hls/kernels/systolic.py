"""C texts of the HLS processes of a matrix product in a systolic array (see `products`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import prod
from typing import TYPE_CHECKING

from ..network.systolic_products import Collect, Element, Feed, Product

if TYPE_CHECKING:
    from .printer import ProcessPrinter


def comment(process: Feed | Element | Collect) -> str:
    """Return the text of a comment that says what a process does."""
    product = process.product
    match process:
        case Feed(which=0):
            what = f"sends columns of {product.elements} elements of the first factor"
        case Feed():
            what = f"sends rows of {product.columns} elements of the second factor"
        case Element(place=place):
            what = f"processing element {place + 1} of {product.elements}"
        case Collect():
            what = f"stores tiles of {product.elements} by {product.columns}"
    return what


def lines(printer: ProcessPrinter, process: Feed | Element | Collect) -> Iterator[str]:
    """Yield the statements of the C function of a process."""
    match process:
        case Feed(which=0):
            yield from _first_factor(printer, process)
        case Feed():
            yield from _second_factor(printer, process)
        case Element():
            yield from _element(printer, process)
        case Collect():
            yield from _collect(printer, process)


def _first_factor(printer: ProcessPrinter, feed: Feed) -> Iterator[str]:
    product, kind = feed.product, printer.type(feed.product.dtype)
    rank, window = len(product.stack), product.factor(0)
    yield f"{kind} panel[{product.elements}][{product.terms}];  // the rows of a tile"
    row, term = f"x{rank}", f"x{rank + 1}"
    read = [
        f"const int64_t {row} = row_tile * {product.elements} + p;",
        f"{kind} v = 0;",
        f"if ({row} < {product.rows}) v = {feed.buffer.pointer}[{printer.place(window)}];",
        f"panel[p][{term}] = v;",
    ]
    loaded = _nest(
        printer.plain, [("p", product.elements)], printer.pipelined("", _count(term, product.terms), read)
    )
    sent = printer.pipelined("", _count("p", product.elements), [printer.send(feed.out, "panel[p][k]")])
    around = [("column_tile", product.column_tiles), ("k", product.terms)]
    body = [*loaded, *_nest(printer.plain, around, sent)]
    yield from _nest(printer.plain, [*_stack(product), ("row_tile", product.row_tiles)], body)


def _second_factor(printer: ProcessPrinter, feed: Feed) -> Iterator[str]:
    product, kind = feed.product, printer.type(feed.product.dtype)
    rank, window = len(product.stack), product.factor(1)
    row, column = f"x{rank}", f"x{rank + 1}"
    sent = [
        f"const int64_t {column} = column_tile * {product.columns} + m;",
        f"{kind} v = 0;",
        f"if ({column} < {product.width}) v = {feed.buffer.pointer}[{printer.place(window)}];",
        printer.send(feed.out, "v"),
    ]
    around = [*_tiles(product), (row, product.terms)]
    inner = printer.pipelined("", _count("m", product.columns), sent)
    yield from _nest(printer.plain, around, inner)


def _element(printer: ProcessPrinter, element: Element) -> Iterator[str]:
    product, dtype = element.product, element.product.dtype
    kind, columns = printer.type(dtype), element.product.columns
    yield f"{kind} acc[{columns}];"
    yield f"{kind} a = 0;"
    step = [f"if (m == 0) a = {printer.receive(element.factors[0])};"]
    if element.outs:
        handed = printer.send(element.outs[0], printer.receive(element.factors[0]))
        step.append(f"else if (m <= {element.others}) {handed}")
    step.append(f"const {kind} b = {printer.receive(element.factors[1])};")
    if element.outs:
        step.append(printer.send(element.outs[1], "b"))
    product_text = printer.printer.apply("multiply", ["a", "b"], [dtype, dtype], dtype)
    step.append(f"const {kind} term = {product_text};")
    step.append(f"const {kind} so_far = k == 0 ? ({kind})0 : acc[m];")
    step.append(f"acc[m] = {printer.joined('add', dtype, 'so_far', 'term')};")
    step.append(f"if (++m == {columns}) {{ m = 0; k++; }}")
    body = ["int64_t k = 0, m = 0;"]
    body += printer.interleaved(_count("i", product.terms * columns), step, "acc", columns)
    if element.before is not None:
        handed = printer.send(element.out, printer.receive(element.before))
        body += printer.pipelined("", _count("i", element.place * columns), [handed])
    body += printer.pipelined("", _count("i", columns), [printer.send(element.out, "acc[i]")])
    yield from printer.plain("", _count("tile", product.tiles), body)


def _collect(printer: ProcessPrinter, collect: Collect) -> Iterator[str]:
    product, rank = collect.product, len(collect.product.stack)
    target = collect.buffer.pointer
    if collect.base is not None:
        count = _count("i", prod(printer.arrays[collect.buffer.array].shape))
        yield from printer.pipelined("", count, [f"{target}[i] = {collect.base.pointer}[i];"])
    row, column = f"x{rank}", f"x{rank + 1}"
    stored = [
        f"const int64_t {row} = row_tile * {product.elements} + p;",
        f"const int64_t {column} = column_tile * {product.columns} + m;",
        f"const {printer.type(product.dtype)} v = {printer.receive(collect.source)};",
        f"if ({row} < {product.rows} && {column} < {product.width}) "
        f"{target}[{printer.place(product.call.writes[0])}] = v;",
    ]
    inner = printer.pipelined("", _count("m", product.columns), stored)
    yield from _nest(printer.plain, [*_tiles(product), ("p", product.elements)], inner)


def _stack(product: Product) -> list[tuple[str, int]]:
    return [(f"x{axis}", count) for axis, count in enumerate(product.stack)]


def _tiles(product: Product) -> list[tuple[str, int]]:
    """Return the loops over tiles, the outermost first: the name and the number of iterations of each."""
    return [*_stack(product), ("row_tile", product.row_tiles), ("column_tile", product.column_tiles)]


def _nest(
    loop: Callable[[str, str, Iterable[str]], Iterator[str]],
    around: list[tuple[str, int]],
    body: Iterable[str],
) -> list[str]:
    nested = [*body]
    for name, count in reversed(around):
        nested = [*loop("", _count(name, count), nested)]
    return nested


def _count(name: str, count: int) -> str:
    return f"int64_t {name} = 0; {name} < {count}; {name}++"
