"""The simulation of the processes of a matrix product."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.ir.nodes import Window
from dcarray.ir.numpy_views import NDArray
from dcarray.lowering.hls.network.systolic_products import Collect, Element, Feed, Product

if TYPE_CHECKING:
    from dcarray.lowering.hls.network.nodes import Buffer

#: As in `simulate`: a step is asked for by the FIFOs to receive from and to send to.
Running = Generator[tuple[tuple[str, ...], tuple[str, ...]], list[Any], None]


def steps(
    process: Feed | Element | Collect,
    buffers: Mapping[Buffer, NDArray],
    waiting: Mapping[str, deque[Any]],
    place: Callable[[Window, tuple[int, ...]], tuple[int, ...]],
) -> Running:
    """Yield the steps of a process: what it receives and sends in each."""
    product = process.product
    zero = product.dtype.type(0)
    match process:
        case Feed(which=which, buffer=buffer, out=out):
            memory, window = buffers[buffer], product.factor(which)

            def element(point: tuple[int, ...]) -> Any:
                inside = all(x < n for x, n in zip(point, window.shape, strict=True))
                return memory[place(window, point)] if inside else zero

            sent = _first if which == 0 else _second
            for point in sent(product):
                if point is None:
                    yield (), ()  # an element of the panel is read
                    continue
                yield (), (out,)
                waiting[out].append(element(point))
        case Element():
            yield from _element(process, waiting)
        case Collect(buffer=buffer, source=source, base=base):
            memory, window = buffers[buffer], product.call.writes[0]
            if base is not None:
                memory[...] = buffers[base]
            for stack, top, left in _tiles(product):
                for p in range(product.elements):
                    for m in range(product.columns):
                        (value,) = yield (source,), ()
                        if top + p < product.rows and left + m < product.width:
                            memory[place(window, (*stack, top + p, left + m))] = value


def _tiles(product: Product) -> Generator[tuple[tuple[int, ...], int, int], None, None]:
    for stack in np.ndindex(product.stack):
        for r in range(product.row_tiles):
            for c in range(product.column_tiles):
                yield stack, r * product.elements, c * product.columns


def _first(product: Product) -> Generator[tuple[int, ...] | None, None, None]:
    for stack, top, left in _tiles(product):
        if left == 0:
            for _ in range(product.elements * product.terms):
                yield None
        for k in range(product.terms):
            for p in range(product.elements):
                yield (*stack, top + p, k)


def _second(product: Product) -> Generator[tuple[int, ...], None, None]:
    for stack, _, left in _tiles(product):
        for k in range(product.terms):
            for m in range(product.columns):
                yield (*stack, k, left + m)


def _element(element: Element, waiting: Mapping[str, deque[Any]]) -> Running:
    product = element.product
    first, second = element.factors
    for _ in range(product.tiles):
        acc = [product.dtype.type(0)] * product.columns
        for _ in range(product.terms):
            for m in range(product.columns):
                hands_on = bool(element.outs) and 0 < m <= element.others
                receives = (first, second) if m == 0 or hands_on else (second,)
                sends = element.outs if hands_on else element.outs[1:]
                got = yield receives, sends
                if m == 0:
                    a = got[0]
                elif hands_on:
                    waiting[element.outs[0]].append(got[0])
                if element.outs:
                    waiting[element.outs[1]].append(got[-1])
                with np.errstate(all="ignore"):
                    acc[m] = acc[m] + a * got[-1]
        if element.before is not None:
            for _ in range(element.place * product.columns):
                (value,) = yield (element.before,), (element.out,)
                waiting[element.out].append(value)
        for value in acc:
            yield (), (element.out,)
            waiting[element.out].append(value)
