"""Draws of random numbers as calls of a region."""

from typing import Any

import numpy as np
import pytest

from dcarray.ir import draw_calls, draws, interp
from dcarray.ir.analysis.idempotence import idempotent_arrays
from dcarray.ir.analysis.independence import iteration_conflict
from dcarray.ir.nodes import Array, Call, Compute, Index, Load, Loop, Region, Window
from dcarray.ir.ops import const
from dcarray.ir.passes.cpu.pipeline import cpu_pipeline
from dcarray.ir.text import dump, parse
from dcarray.ir.verify import VerifyError, verify
from dcarray.jit.loops.entry import generators
from dcarray.lowering.cpu.caches import limits

F8, U8, BOOL = np.dtype(np.float64), np.dtype(np.uint64), np.dtype(np.bool_)
STATE = Window("state", (14,), (Index(0, 1, 0),))
ADDRESS, ORDER = Window("address", (), ()), Window("order", (), ())
ARRAYS = (
    Array("state", np.dtype(np.uint32), (14,), "inout"),
    Array("address", U8, (), "in"),
    Array("order", BOOL, ()),
    Array("scale", F8, (), "in"),
    Array("made", F8, (8,), "out"),
)
FIRST = Compute(ORDER, const(True, BOOL))


def region() -> Region:
    """``for k in range(8): made[k] = normal(0.5, scale)``."""
    from dcarray.ir import dims

    target = Window("made", (), (Index(dims.symbol("k", None)),))
    arguments = [const(-5e-7, F8), Load(Window("scale", (), ()), F8)]
    call = draw_calls.call_of(STATE, ORDER, ADDRESS, "random_normal", arguments, target, None)
    return Region((), ARRAYS, (FIRST, Loop("k", (0, 8, 1), (call,))))


def memory(seed: int) -> tuple[Any, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    held = generators._parts_in_numpy(rng, rng.bit_generator)
    assert held is not None
    parts = held[1]
    return rng, {"state": parts.state, "address": parts.address, "scale": np.array(2.0), "made": np.zeros(8)}


def test_meaning() -> None:
    rng, arrays = memory(3)
    drawn = region()
    verify(drawn)
    interp.run(drawn, arrays)
    other = np.random.default_rng(3)
    assert arrays["made"].tolist() == [other.normal(-5e-7, 2.0) for _ in range(8)]
    assert repr(rng.bit_generator.state) == repr(other.bit_generator.state)


def test_text() -> None:
    drawn = region()
    assert "call random.draw(state, order, address, scale) -> state, order, made[k] {function: " in dump(
        drawn
    )
    assert parse(dump(drawn)) == drawn


def test_functions() -> None:
    """All functions are NumPy's, and found in this process."""
    assert all(draws.address(name) for name in draws.DRAWS)


def test_draws_stay_where_they_are() -> None:
    drawn = region()
    loop = drawn.body[1]
    assert isinstance(loop, Loop)
    assert iteration_conflict(loop, drawn) is not None
    assert idempotent_arrays(drawn) == frozenset()
    planned = cpu_pipeline(limits(2)).run(drawn)

    assert dump(planned).count("random.draw") == 1


def test_what_is_no_draw() -> None:
    (first, loop) = region().body
    assert isinstance(loop, Loop)
    (call,) = loop.body
    assert isinstance(call, Call)
    wrong = Call(call.op, call.reads, (ORDER, STATE, call.writes[2]), call.attrs)
    with pytest.raises(VerifyError):
        verify(Region((), ARRAYS, (first, Loop("k", (0, 8, 1), (wrong,)))))
