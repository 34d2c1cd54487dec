"""Distributed random arrays: each rank keeps its block of the elements of NumPy's single stream."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.derived_layouts import row_layout
from dcarray.comm.layout.layouts import Layout
from dcarray.comm.transport.protocol import Communicator
from dcarray.core.backend import NOT_DISTRIBUTED
from dcarray.core.config import current
from dcarray.core.processes import communicating, communicator

from .function_dispatch import ndarray_of
from .layout_choice import default_layout
from .random_blocks import block

__all__ = ["distributed_random"]

# Methods that draw element by element, by the number of arguments before ``size``.
_BEFORE_SIZE = {
    0: "random random_sample ranf sample standard_cauchy standard_exponential standard_normal",
    1: """chisquare exponential geometric logseries pareto poisson power rayleigh standard_gamma standard_t
       weibull zipf""",
    2: """beta binomial f gamma gumbel integers laplace logistic lognormal negative_binomial
       noncentral_chisquare normal randint uniform vonmises wald""",
    3: "hypergeometric noncentral_f triangular",
}
_SIZE = {name: before for before, names in _BEFORE_SIZE.items() for name in names.split()}
_BY_EXTENTS = ("rand", "randn")  # whose arguments are the extents
_WHOLE_WORDS = 4  # bytes of the smallest integers that use up whole words of the stream
_SCALARS = (bool, int, float, str, np.generic)
CHUNK = 1 << 18  # elements that a rank draws at once where it keeps only some of them


def distributed_random(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return a large random array in blocks; `NOT_DISTRIBUTED`, with nothing drawn, for any other call.

    Where the bit generator can be advanced to any element, a rank draws only its own block; else all ranks
    draw all elements, a chunk at a time, and keep their own.  All ranks' generators end where NumPy's would.

    Parameters
    ----------
    function : callable
        A method of NumPy's `Generator` or `RandomState`, bound to it.
    args, kwargs
        Its arguments.
    """
    comm = communicator()
    request = None if comm is None else _parse_request(function.__name__, args, kwargs)
    if comm is None or request is None:
        return NOT_DISTRIBUTED
    shape, args, kwargs = request
    if not shape or min(shape) < 0 or math.prod(shape) <= current().distribute_above:
        return NOT_DISTRIBUTED
    name, generator = function.__name__, getattr(function, "__self__", None)
    if isinstance(generator, np.random.Generator):
        try:
            layout = default_layout(shape, current(), comm)
            window = tuple(slice(begin, begin + n) for begin, n in _intervals(layout, comm.rank))
            own = np.asarray(block(generator, name, shape, window, *args, **kwargs))
            return ndarray_of(DistArray(comm, layout, own))
        except (TypeError, ValueError):  # the generator cannot be advanced, or NumPy raises the error below
            pass
    if name in ("integers", "randint") and np.dtype(kwargs.get("dtype", np.int64)).itemsize < _WHOLE_WORDS:
        return NOT_DISTRIBUTED
    return _draw_all_and_keep_block(function, shape, args, kwargs, comm)


def _parse_request(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[int, ...], tuple[Any, ...], dict[str, Any]] | None:
    """Return the requested shape, and the other arguments; None for other arguments than scalars."""
    others = dict(kwargs)
    if name in _BY_EXTENTS and not kwargs:
        size: Any = args
        args = ()
    elif name in _SIZE and len(args) > _SIZE[name]:
        at = _SIZE[name]
        size = args[at]
        if len(args) > at + 2:
            return None
        args, others = args[:at], {**others, **({"dtype": args[at + 1]} if len(args) > at + 1 else {})}
    elif name in _SIZE:
        size = others.pop("size", None)
    else:
        return None
    given = (*args, *(value for key, value in others.items() if key != "dtype"))
    if size is None or "out" in others or not all(isinstance(v, _SCALARS) for v in given):
        return None
    try:
        shape = tuple(map(operator.index, size)) if isinstance(size, Iterable) else (operator.index(size),)
    except TypeError:
        return None
    return shape, args, others


def _intervals(layout: Layout, rank: int) -> Iterator[tuple[int, int]]:
    """Yield for each axis the start and the length of the rank's block."""
    for part, place, n in zip(layout.parts, layout.part_indices(rank), layout.owned_shape(rank), strict=True):
        yield part.to_global(place, 0), n


def _draw_all_and_keep_block(
    function: Callable[..., Any],
    shape: tuple[int, ...],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    comm: Communicator,
) -> Any:
    """Draw all elements, a chunk at a time, and keep this rank's block."""
    total, each = math.prod(shape), math.prod(shape[1:])
    cut = row_layout(shape, comm.size)
    first_row, count = next(_intervals(cut, comm.rank))
    low, high = first_row * each, (first_row + count) * each
    mine: Any = None
    for begin in range(0, total, CHUNK):
        count = min(CHUNK, total - begin)
        by_extents = function.__name__ in _BY_EXTENTS
        some = function(count) if by_extents else function(*args, size=count, **kwargs)
        if mine is None:
            mine = np.empty(high - low, some.dtype)
        first, last = max(low, begin), min(high, begin + some.size)
        if first < last:
            mine[first - low : last - low] = some[first - begin : last - begin]
    piece = DistArray(comm, cut, mine.reshape(cut.local_shape(comm.rank)))
    with communicating():
        piece = piece.redistribute(default_layout(shape, current(), comm))
    return ndarray_of(piece)
