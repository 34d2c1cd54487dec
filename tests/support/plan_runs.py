"""Plans run on arrays by name, and regions by the interpreter on copies of them."""

from typing import Any

import numpy as np

from dcarray.ir import interp
from dcarray.ir.nodes import Region
from dcarray.ir.passes import Log
from dcarray.ir.text import dump, parse
from dcarray.ir.verify import verify
from dcarray.lowering.runtime import array_memory

Memory = dict[str, Any]


def run_plan(plan: Any, memory: Memory, symbols: Any = (), threads: int = 1) -> int:
    """Run a plan on the arrays, in place; returns the flags."""
    arrays = [memory[name] for name in plan.arrays]
    return int(plan.run(arrays, [array_memory.address_of(array) for array in arrays], symbols, threads))


def whole_numbers(region: Region, seed: int = 0, low: int = -3, high: int = 4) -> Memory:
    """Small numbers for all arrays that a region is given: sums are exact in any order."""
    rng = np.random.default_rng(seed)
    given = [a for a in region.arrays if a.role in ("in", "inout") and a.base is None]
    return {a.name: np.asarray(rng.integers(low, high, a.shape)).astype(a.dtype) for a in given}


def interpreted(region: Region, memory: Memory, values: Any = None) -> Memory:
    """What the interpreter makes of copies of the arrays."""
    return interp.run(region, {name: array.copy("K") for name, array in memory.items()}, values)


def agree(got: Memory, want: Memory, rtol: float = 0, what: str = "") -> None:
    """Check that arrays are equal, or as near as `rtol`, for all names that are in both."""
    for name in got.keys() & want.keys():
        message = f"{name} {what}"
        if rtol:
            np.testing.assert_allclose(got[name], want[name], rtol=rtol, atol=rtol, err_msg=message)
        else:
            np.testing.assert_array_equal(got[name], want[name], err_msg=message)


def passed(one: Any, before: Region) -> Region:
    """A region after a pass: valid, final, and all of it is in its text."""
    after: Region = one.fn(before, Log())
    verify(after)
    assert parse(dump(after)) == after
    assert one.fn(after, Log()) is after, dump(after)
    return after


def same_products(region: Region, *others: Region, seed: int = 0, valid: bool = True) -> None:
    """Check that other regions mean what this one does, but for the order of sums, and are valid."""
    rng = np.random.default_rng(seed)
    given = [a for a in region.arrays if a.role in ("in", "inout") and a.base is None]
    memory = {a.name: (rng.integers(1, 5, a.shape) / 16).astype(a.dtype) for a in given}
    want = interpreted(region, memory)
    for other in others:
        if valid:
            verify(other)
        got = interpreted(other, memory)
        for name, array in want.items():
            near = 1e-12 * max(np.abs(array).max(), 1)
            np.testing.assert_allclose(got[name], array, 1e-9, near, err_msg=f"{name}\n{dump(other)}")
