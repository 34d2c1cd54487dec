"""Scans on devices: lines of a thread each, and chunks of long lines."""

import math
from dataclasses import replace

import numpy as np
import pytest
from device_statements import SMALL, run_both
from kernel_machine import Machine

from dcarray.ir import ops
from dcarray.ir.nodes import Apply, Array, Compute, Index, Load, Nest, Region, Symbol, Window
from dcarray.ir.windows import identity
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.gpu.scheduler import schedule
from dcarray.lowering.gpu.schedules.scans import STRIP
from dcarray.lowering.kernel.nodes import Stack


def scan(shape, axis, dtype, name, init, in_place=False):
    """A region with a scan of one array along an axis."""
    kind = np.dtype(dtype)
    a, b = Array("a", kind, shape, "inout"), Array("b", kind, shape, "inout")
    target = identity(a if in_place else b)
    one = Load(identity(a), kind)
    stmt = Compute(target, Apply(name, (one, one), kind), name, ops.const(init, kind), scan=axis)
    return Region((), (a, b), (stmt,))


CASES = [
    ((40,), 0, "d", "add", 0.0), ((41,), 0, "l", "add", 3), ((7,), 0, "b", "add", 0),
    ((100,), 0, "f", "maximum", -np.inf), ((1,), 0, "d", "add", 0.0), ((0,), 0, "d", "add", 0.0),
    ((33,), 0, "d", "multiply", 1.0), ((3, 30), 1, "d", "add", 1.0), ((30, 3), 0, "d", "add", 0.0),
    ((2, 30, 3), 1, "i", "bitwise_xor", 5), ((5, 0), 1, "d", "add", 0.0), ((0, 5), 1, "d", "add", 0.0),
    ((9, 40), 1, "D", "add", 0), ((60,), 0, "e", "add", 0), ((50,), 0, "?", "logical_or", False),
]  # fmt: skip


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_scans(case, lines, in_place):
    shape, axis, dtype, name, init = case
    made = scan(shape, axis, dtype, name, init, in_place)
    limits = replace(SMALL, short=0) if lines else SMALL
    (kernel,) = run_both(made, limits=limits)
    assert len(kernel.phases) == (1 if lines or shape[axis] <= 4 else 3)


ON_PROCESSORS = [
    *CASES, ((90,), 0, "d", "add", 0.0), ((30, 9), 0, "l", "add", 1), ((5, 300), 0, "d", "add", 0.5),
    ((2, 6, 513), 1, "f", "maximum", -np.inf), ((4, 256), 0, "D", "multiply", 1.0),
]  # fmt: skip


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("case", ON_PROCESSORS)
def test_scans_on_a_processor(case, in_place):
    shape, axis, dtype, name, init = case
    (kernel,) = run_both(scan(shape, axis, dtype, name, init, in_place), limits=replace(SMALL, vector=2))
    lines, wide = math.prod(shape) // max(shape[axis], 1), axis < len(shape) - 1
    if lines > 8 and wide:
        assert [s.size for s in kernel.phases[0].body if isinstance(s, Stack)] == [STRIP]


def test_long_lines_of_symbolic_size():
    from dcarray.ir import dims

    size = dims.symbol("N", 0)
    made = scan((3, size), 1, "d", "add", 2.0)
    made = replace(made, symbols=(Symbol("N", 0, 90),))
    for count in (0, 1, 3, 17, 90):
        run_both(made, {"N": count})


def test_the_errors_of_sums_do_not_grow_with_the_length():
    values = np.random.default_rng(1).standard_normal(3000) * 1e3 + 0.1
    a, b = (Array(name, values.dtype, values.shape, "inout") for name in "ab")
    stmt = Compute(identity(b), Load(identity(a), values.dtype), "add", ops.const(0.0, "d"), scan=0)
    kernel, binding = schedule(stmt, Region((), (a, b), (stmt,)), SMALL)
    flats = {"a": (values.copy(), 0), "b": (np.zeros_like(values), 0)}
    Machine(kernel, binding, flats, {})
    scale = np.add.accumulate(np.abs(values))
    want = np.array([math.fsum(values[: k + 1]) for k in range(0, values.size, 97)])
    assert np.all(np.abs(flats["b"][0][::97] - want) <= 6 * 2**-53 * scale[::97])


def test_a_scan_beside_other_statements_is_refused():
    made = scan((9,), 0, "d", "add", 0.0)
    kind, c = np.dtype("d"), Array("c", np.dtype("d"), (9,), "out")
    other = Compute(Window("c", (9,), (Index(0, 1, 0),)), Load(identity(made.arrays[0]), kind))
    nest = Nest((*made.body, other))
    with pytest.raises(Unsupported, match="beside"):
        schedule(nest, Region((), (*made.arrays, c), (nest,)))
