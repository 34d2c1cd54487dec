"""The arguments of one run of a region: arrays by name, checked, and the sizes that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from operator import index
from typing import Any

import numpy as np

from dcarray.ir import dims
from dcarray.ir.analysis.effects import families
from dcarray.ir.nodes import Array, Region
from dcarray.ir.numpy_views import NDArray
from dcarray.ir.records import record

__all__ = ["Arguments", "arguments_of"]


@record(frozen=True, slots=True)
class Arguments:
    """The memory of a region's arrays, and the values of its symbols, for one run."""

    memory: dict[str, NDArray]
    sizes: dict[str, int]

    def with_results(self, region: Region) -> dict[str, NDArray]:
        """Return the memory with new arrays for those with the role ``out``."""
        memory = dict(self.memory)
        for array in region.arrays:
            if array.role == "out" and array.base is None:
                shape = [dims.evaluate(n, self.sizes) for n in array.shape]
                memory[array.name] = np.empty(shape, array.dtype)
        for array in region.arrays:
            if array.role == "out" and array.base is not None:
                shape = [dims.evaluate(n, self.sizes) for n in array.shape]
                memory[array.name] = memory[array.base].reshape(-1).view(array.dtype).reshape(shape)
        return memory


def arguments_of(region: Region, values: Mapping[str, Any]) -> Arguments:
    """Return the arguments of a run.

    Raises
    ------
    TypeError, ValueError
        If they do not fit the region; the text has the name.
    """
    arrays = [a for a in region.arrays if a.role in ("in", "inout")]
    symbols = {symbol.name: symbol for symbol in region.symbols}
    unknown = values.keys() - {a.name for a in arrays} - symbols.keys()
    if unknown:
        raise TypeError(f"the region has no array or symbol {', '.join(sorted(unknown))}")
    memory = {a.name: _array(a, values) for a in arrays}
    sizes = {name: index(values[name]) for name in symbols if name in values}
    for _ in symbols:  # each time at least one more is known
        for a in arrays:
            _solve(a, memory[a.name].shape, sizes)
    missing = symbols.keys() - sizes.keys()
    if missing:
        raise TypeError(f"the value of {', '.join(sorted(missing))} has to be given")
    for a in arrays:
        expected = tuple([dims.evaluate(n, sizes) for n in a.shape])
        if memory[a.name].shape != expected:
            raise ValueError(f"{a.name} has the shape {memory[a.name].shape}, and {expected} is expected")
        if not _lies_as_declared(a, memory[a.name], sizes):
            order = "contiguous in C order" if a.strides is None else f"with the strides {a.strides}"
            raise ValueError(f"{a.name} has to be aligned, and {order}")
    for symbol in region.symbols:
        if sizes[symbol.name] < symbol.minimum:
            raise ValueError(f"{symbol.name} is at least {symbol.minimum}, not {sizes[symbol.name]}")
    for guard in region.guards:
        if not dims.evaluate(guard, sizes):
            raise ValueError(f"the region needs {dims.show(guard)}, with {sizes}")
    root = families(region)
    for one, other in combinations(arrays, 2):
        written = "inout" in (one.role, other.role) and root[one.name] != root[other.name]
        if written and np.may_share_memory(memory[one.name], memory[other.name]):
            raise ValueError(f"{one.name} and {other.name} share memory, and one of them is written")
    return Arguments(memory, sizes)


def _array(array: Array, values: Mapping[str, Any]) -> NDArray:
    name = array.name
    if name not in values:
        raise TypeError(f"the array {name} has to be given")
    value = values[name]
    if not array.shape and array.role == "in" and not isinstance(value, np.ndarray):
        return np.array(value, array.dtype)
    if not isinstance(value, np.ndarray) or value.dtype != array.dtype or value.ndim != len(array.shape):
        what = (
            f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
        )
        raise TypeError(f"{name} is {array.dtype} with {len(array.shape)} axes, not {what}")
    if array.role == "inout" and not value.flags.writeable:
        raise ValueError(f"{name} is written, and read-only")
    return value


def _lies_as_declared(array: Array, value: NDArray, sizes: Mapping[str, int]) -> bool:
    """Whether memory is aligned and has the strides of the declaration, where they matter."""
    if array.strides is None:
        return value.flags.c_contiguous and value.flags.aligned
    wanted = [dims.evaluate(step, sizes) * value.itemsize for step in array.strides]
    pairs = zip(value.shape, value.strides, wanted, strict=True)
    return value.flags.aligned and all(n <= 1 or own == other for n, own, other in pairs)


def _solve(array: Array, shape: tuple[int, ...], sizes: dict[str, int]) -> None:
    """Compute the symbols that a shape determines: an axis is a symbol, perhaps with a constant or factor."""
    for n, size in zip(array.shape, shape, strict=True):
        free = dims.free_symbols(n) - sizes.keys()
        if len(free) == 1:
            (name,) = free
            factor = dims.slope(n, name)
            if type(factor) is int and factor != 0:
                rest = dims.evaluate(n, {**sizes, name: 0})
                sizes[name] = (size - rest) // factor
