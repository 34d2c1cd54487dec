"""The making of a matrix product's processes and of the FIFOs between them."""

from __future__ import annotations

from .boxes import Box
from .nodes import Buffer, Fifo, Process
from .systolic_products import Collect, Element, Feed, Product


def systolic_array(
    product: Product, first: Buffer, second: Buffer, to: Buffer, base: Buffer | None
) -> tuple[tuple[Process, ...], tuple[Fifo, ...]]:
    """Return the processes of a matrix product and their FIFOs.

    A processing element gets its element of the first factor two cycles after the first elements of the
    second factor arrive, so the FIFOs between processing elements have a depth of 2."""
    fifos: list[Fifo] = []
    per_tile = product.terms * product.columns

    def fifo(name: str, count: int, depth: int) -> str:
        stream = f"s_product_{product.number}_{name}"
        fifos.append(Fifo(stream, product.dtype, Box((0,), (product.tiles * count,)), depth))
        return stream

    count = product.elements
    a = [fifo(f"a{p}", product.terms * (count - p), 1) for p in range(count)]
    b = [fifo(f"b{p}", per_tile, 2 if p else 1) for p in range(count)]
    c = [fifo(f"c{p}", (p + 1) * product.columns, 1) for p in range(count)]
    name = f"product_{product.number}"
    feeds = [Feed(f"{name}_a", product, 0, first, a[0]), Feed(f"{name}_b", product, 1, second, b[0])]
    elements = [
        Element(
            f"{name}_element_{p}",
            product,
            p,
            (a[p], b[p]),
            c[p - 1] if p else None,
            (a[p + 1], b[p + 1]) if p + 1 < count else (),
            c[p],
        )
        for p in range(count)
    ]
    return (*feeds, *elements, Collect(f"{name}_c", product, to, c[-1], base)), tuple(fifos)
