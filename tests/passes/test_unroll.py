"""Iterations of a loop one after the other, in bands."""

import pytest

from dcarray.ir.nodes import Loop, TimeTiles
from dcarray.ir.passes import Log
from dcarray.ir.passes.cpu.pipeline import CPU
from dcarray.ir.passes.cpu.time_tiling import CacheLimits
from dcarray.ir.passes.cpu.unroll import unroll
from dcarray.ir.text import dump, parse
from dcarray.ir.verify import verify

#: As if caches were tiny and rows short.
SMALL = CacheLimits(last=0, near=1 << 12, far=1 << 12, points=2, tiles=2, sides=1, height=2)

STEP = """
    b[i+1,j] = add(a[i,j], a[i+2,j]) for i<58, j<9
    a[i+1,j] = subtract(b[i,j], b[i+2,j]) for i<58, j<9
"""


def region(body: str, bounds: str = "0, 21, 1"):
    found = parse(
        "region() {\ninout a: i64[60, 9];  inout b: i64[60, 9];  inout s: i64[];  in c: i64[40]\n"
        f"for t in range({bounds}) {{{body}}}\n}}"
    )
    verify(found)
    return found


#: Each iteration has another element of what nothing writes.
FORCED = "\na[0,j] = c[t] for j<9" + STEP.replace("add(a[i,j], ", "add(c[39-t], ")


@pytest.mark.parametrize("step", [STEP, FORCED])
@pytest.mark.parametrize("bounds", ["0, 21, 1", "20, 0, -2", "3, 5, 1", "0, 16, 1"])
def test_iterations_in_bands(bounds, step, same_meaning):
    before = region(step, bounds)
    log = Log()
    after = unroll(SMALL).fn(before, log)
    verify(after)
    assert isinstance(after.body[0], Loop) and isinstance(after.body[0].body[0], TimeTiles), (
        f"{dump(after)}{log}"
    )
    assert parse(dump(after)) == after
    same_meaning(before, after)
    assert unroll(SMALL).fn(after, Log()) is after


@pytest.mark.parametrize(("body", "bounds"), [
    (STEP.replace("add(a[i,j], ", "add(a[t,j], "), "0, 21, 1"),  # another row in each iteration
    (STEP.replace("a[i,j], a", "size(t), a"), "0, 21, 1"),
    (STEP, "0, 1, 1"),
    (STEP + "s[] add= a[i,j] for i<60, j<9\nif less(s[], 3) {\ns[] = 1\n}\n", "0, 21, 1"),
])  # fmt: skip
def test_what_stays(body, bounds):
    before = region(body, bounds)
    assert unroll(SMALL).fn(before, Log()) is before


def test_small_arrays_stay():
    before = region(STEP)
    after = CPU.run(before)
    assert not any(isinstance(stmt, TimeTiles) for loop in after.body for stmt in loop.body)
