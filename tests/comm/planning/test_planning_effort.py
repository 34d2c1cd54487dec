"""Planning a statement for 1,296 ranks makes as few calls as for 4, and lists no messages."""

import pytest
from comm_planning_effort import planned

from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Block, Cyclic, Layout, Whole
from dcarray.comm.planning.planner import plan
from dcarray.ir.parse import parse

N = 20000
STATEMENTS = {
    "transposed": "B[i,j] = A[j,i] for i<{N}, j<{N}",
    "shifted": "B[i+3,j] = add(A[i,j], A[i+3,j]) for i<{N}-3, j<{N}",
    "corners": "B[i+1,j+1] = add(A[i,j], A[i+2,j+2]) for i<{N}-2, j<{N}-2",
    "strided": "B[i,j] = A[2*i,j] for i<{N}/2, j<{N}",
    "backwards": "B[i,j] = A[{N}-1-i,j] for i<{N}, j<{N}",
    "a row everywhere": "B[i,j] = add(A[i,j], A[5,j]) for i<{N}, j<{N}",
    "a diagonal": "x[i] = A[i,i] for i<{N}",
    "sums of rows": "x[i] add= A[i,j] init 0.0 for i<{N}, j<{N}",
    "stretched": "B[i,j] = multiply(A[i,j], x[j]) for i<{N}, j<{N}",
    "a product": "call blas.matmul(A, B) -> B",
}
LAYOUTS = {
    "alike": lambda p: ([Block(0), Block(1)], [Block(0), Block(1)]),
    "turned": lambda p: ([Block(0), Block(1)], [Block(1), Block(0)]),
    "in turn": lambda p: ([Cyclic(0, 8), Cyclic(1, 8)], [Block(0), Block(1)]),
    "rows": lambda p: ([Block(0), Whole()], [Whole(), Block(1)]),
}


@pytest.mark.parametrize("lie", LAYOUTS)
@pytest.mark.parametrize("name", STATEMENTS)
def test_planning_for_1296_ranks_takes_no_longer_than_for_4(name: str, lie: str) -> None:
    text = STATEMENTS[name].replace("{N}-2", str(N - 2)).replace("{N}-3", str(N - 3))
    text = text.replace("{N}-1", str(N - 1)).replace("{N}/2", str(N // 2)).replace("{N}", str(N))
    region = parse(
        f"region() {{\n  inout A: f64[{N}, {N}];  inout B: f64[{N}, {N}];  inout x: f64[{N}]\n  {text}\n}}"
    )

    def taken(p: int) -> tuple[int, int]:
        grid = ProcessGrid((p, p))
        a, b = LAYOUTS[lie](p)
        layouts = {
            "A": Layout((N, N), grid, a),
            "B": Layout((N, N), grid, b),
            "x": Layout.chosen((N,), p * p),
        }
        assert plan(region, layouts, p * p, 0).size == p * p
        return planned(region, layouts, p * p, (p // 2) * p + p // 2)

    (few, listed), (many, also) = taken(2), taken(36)
    assert many <= 1.2 * few
    # What travels to see whether work goes on meanwhile: halos, with neighbours on a side and on all sides.
    assert listed <= also <= (16 if name in ("shifted", "corners") else 0)
