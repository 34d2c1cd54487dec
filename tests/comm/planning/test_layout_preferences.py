"""Layouts chosen for the factors of products."""

import pytest

from dcarray.comm.algorithms.contraction_plan import Contraction
from dcarray.comm.algorithms.product_axes import parse
from dcarray.comm.algorithms.product_layouts import choose
from dcarray.comm.layout.derived_layouts import simplify
from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Layout
from dcarray.comm.planning.placement.layout_preferences import final_arrays, preferred_layouts
from dcarray.comm.planning.planner import plan
from dcarray.comm.planning.rank_program.steps import Exchanges
from dcarray.comm.transport.protocol import Counts
from dcarray.ir.parse import parse as region

DOITGEN = """region() {
  inout A: f64[60, 60, 128];  in C4: f64[128, 128];  temp t: f64[60, 60, 128]
  call blas.matmul(A, C4) -> t
  A[i,j,k] = t[i,j,k] for i<60, j<60, k<128
}"""
ATAX = """region() {
  in A: f64[400, 500];  in x: f64[500];  temp t: f64[400];  out y: f64[500]
  call blas.matmul(A, x) -> t
  call blas.matmul(t, A) -> y
}"""


def usual(text: str, ranks: int) -> dict[str, Layout | None]:
    return {array.name: Layout.chosen(array.shape, ranks) for array in region(text).arrays}


@pytest.mark.parametrize("ranks", [2, 3, 4, 7, 16, 36])
def test_of_a_stack_of_vectors_nothing_travels(ranks: int) -> None:
    found = preferred_layouts(region(DOITGEN), usual(DOITGEN, ranks), {"A", "C4", "t"}, ranks)
    a = found["A"]
    assert a is not None and a.parts[2].parts == 1
    of = parse("rqp,pn->rqn", (60, 60, 128), (128, 128))
    c4 = found["C4"] or Layout.copies((128, 128), a.grid)
    scheme = choose(of, a, c4, a)
    assert scheme.need_a == scheme.out_parts == simplify(a)
    assert "t" not in found
    if 128 * 128 * ranks <= 60 * 60 * 128:
        assert found["C4"] is None
        assert Contraction(scheme, ranks - 1).counts((8, 8, 8, 8)) == Counts()


@pytest.mark.parametrize("ranks", [4, 6, 36])
def test_matrices_stay_and_short_vectors_are_whole(ranks: int) -> None:
    before = usual(ATAX, ranks)
    after = preferred_layouts(region(ATAX), before, before.keys(), ranks)
    assert after["A"] == before["A"] and after["x"] is None


@pytest.mark.parametrize("ranks", [2, 3, 6, 8, 10, 12, 30, 48, 144, 1296])
@pytest.mark.parametrize("sizes", [(1000, 1100, 1200), (800, 850, 900), (400, 300, 500)])
@pytest.mark.parametrize("role", ["temp", "inout"])
def test_products_of_oblong_matrices_move_what_summa_does(
    ranks: int, sizes: tuple[int, int, int], role: str
) -> None:
    m, n, k = sizes
    text = f"""region() {{
      in A: f64[{m}, {k}];  in B: f64[{k}, {n}];  {role} C: f64[{m}, {n}]
      call blas.matmul(A, B) -> C
    }}"""
    before = usual(text, ranks)
    after = preferred_layouts(region(text), before, before.keys(), ranks)
    of = parse("mk,kn->mn", (m, k), (k, n))
    a, b = after["A"], after["B"]
    assert a is not None and b is not None
    scheme = choose(of, a, b, after.get("C"))
    grids = [(p, ranks // p) for p in range(1, ranks + 1) if ranks % p == 0]
    summa = min(8 * ((q - 1) / q * m / p * k + (p - 1) / p * k * n / q) for p, q in grids)
    for rank in (0, ranks // 2, ranks - 1):
        assert Contraction(scheme, rank).counts((8, 8, 8, 8)).bytes_received <= 1.1 * summa


def test_factors_of_sums_of_products_stay_whole() -> None:
    text = """region() {
      in A: f64[400, 500];  in x: f64[500];  inout z: f64[500];  out y: f64[400];  in w: f64[400]
      y[i] add= multiply(A[i,j], x[j]) init 0.0 for i<400, j<500
      z[j] = multiply(z[j], x[j]) for j<500
      y[i] = add(y[i], w[i]) for i<400
    }"""
    before = usual(text, 4)
    after = preferred_layouts(region(text), before, before.keys(), 4)
    assert {name for name in after if after[name] is None} == {"x"}
    assert all(after[name] == before[name] for name in "Azyw")
    many = usual(text, 1000)
    assert preferred_layouts(region(text), many, many.keys(), 1000) == many


def test_what_lies_somewhere_stays_there() -> None:
    layouts = usual(DOITGEN, 4)
    assert preferred_layouts(region(DOITGEN), layouts, set(), 4) == layouts
    fixed = Layout.blocks((60, 60, 128), ProcessGrid((1, 1, 4)))
    layouts["A"] = fixed
    assert preferred_layouts(region(DOITGEN), layouts, {"C4", "t"}, 4)["A"] == fixed


@pytest.mark.parametrize("ranks", [2, 4, 6, 12])
def test_a_product_is_made_where_it_is_added(ranks: int) -> None:
    text = """region() {
      in A: f64[80, 52];  in B: f64[52, 92];  inout C: f64[80, 92];  temp t: f64[80, 92]
      call blas.matmul(A, B) -> t
      C[i,j] = add(t[i,j], multiply(0.5, C[i,j])) for i<80, j<92
    }"""
    assert final_arrays(region(text)) == {"t": "C"}
    rows = {"C": Layout.blocks((80, 92), ProcessGrid((ranks,)))}
    layouts = {name: layout for name, layout in (usual(text, ranks) | rows).items() if name != "t"}
    made = plan(region(text), layouts, ranks, 0)
    assert not any(isinstance(step, Exchanges) for step in made.steps)  # the product's own messages apart
