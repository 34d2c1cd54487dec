"""What travels for the papers' kernels, by plans without data, beside what has to."""

import pytest

from benchmarks.papers import PROGRAMS, Program
from benchmarks.scaling_counts import bound, layouts, planned, region, summa
from dcarray import comm
from dcarray.comm.layout.layouts import Layout
from dcarray.comm.planning.planner import plan
from dcarray.ir.parse import parse

BY_NAME = {program.name: program for program in PROGRAMS}
RANKS = (4, 16, 1296)


@pytest.mark.parametrize("ranks", (2, 8, *RANKS))
@pytest.mark.parametrize("name", ["gemm", "k2mm", "k3mm"])
def test_products_of_matrices_take_the_bytes_of_summa(name: str, ranks: int) -> None:
    sizes = BY_NAME[name].at(ranks)
    found = planned(BY_NAME[name], sizes, ranks)
    assert not found.counted.whole
    assert 0 < found.received <= 1.1 * summa(name, sizes, ranks)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", ["atax", "bicg", "gemver", "gesummv", "mvt"])
def test_only_vectors_travel_for_products_with_vectors(name: str, ranks: int) -> None:
    sizes = BY_NAME[name].at(ranks)
    found = planned(BY_NAME[name], sizes, ranks)
    assert not found.counted.whole
    assert 0 < found.received <= 1.1 * bound(name, sizes, ranks).nbytes
    assert found.received < 40 * 8 * max(sizes.values())  # some vectors and never a matrix


@pytest.mark.parametrize("ranks", RANKS)
def test_nothing_travels_for_doitgen(ranks: int) -> None:
    found = planned(BY_NAME["doitgen"], BY_NAME["doitgen"].at(ranks), ranks)
    assert found.received == found.messages == 0 and not found.counted.whole


@pytest.mark.parametrize("ranks", RANKS)
def test_a_stencil_sends_its_halo_and_one_message_to_each_neighbour(ranks: int) -> None:
    for name, sides in (("jacobi_1d", 2), ("jacobi_2d", 4)):
        program: Program = BY_NAME[name]
        sizes = program.at(ranks)
        text, where = parse(region(name, sizes)), layouts(program, sizes, ranks)
        lay = where["A"]
        assert isinstance(lay, Layout)
        inside = [n // 2 for n in lay.grid.shape]
        rank = lay.grid.rank(inside)
        counts = plan(text, where, ranks, rank, costs=None).counts
        neighbours = sum((at > 0) + (at < n - 1) for at, n in zip(inside, lay.grid.shape, strict=True))
        assert counts.messages_received == 2 * neighbours  # two half steps
        own = lay.owned_shape(rank)
        rim = sum(
            ((at > 0) + (at < n - 1)) * (lay.elements(rank) // own[axis])
            for axis, (at, n) in enumerate(zip(inside, lay.grid.shape, strict=True))
        )
        assert neighbours <= sides and 0 < counts.bytes_received <= 2 * 8 * rim


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", ["jacobi_1d", "jacobi_2d"])
def test_exchanges_for_several_steps_send_hardly_more(name: str, ranks: int) -> None:
    program = BY_NAME[name]
    sizes = program.at(ranks)
    found = planned(program, sizes, ranks)
    steps = 2 * (sizes["T"] - 1)
    assert found.messages <= 4 * steps / 2
    assert found.received <= 1.02 * bound(name, sizes, ranks).nbytes


@pytest.mark.parametrize("ranks", [2, 4, 8, 27])
def test_a_stencil_in_space_sends_the_rims_of_its_blocks(ranks: int) -> None:
    n, halves = 480, 32
    step = (
        "  {0}[i+1,j+1,k+1] = add(multiply(0.125, add({1}[i+2,j+1,k+1], {1}[i,j+1,k+1])), "
        "add({1}[i+1,j+2,k+1], add({1}[i+1,j,k+1], add({1}[i+1,j+1,k+2], {1}[i+1,j+1,k])))) "
        f"for i<{n}-2, j<{n}-2, k<{n}-2\n"
    )
    body = "".join(step.format("B", "A") + step.format("A", "B") for _ in range(halves // 2))
    text = f"region() {{\n  inout A: f64[{n}, {n}, {n}]\n  inout B: f64[{n}, {n}, {n}]\n{body}}}"
    where = comm.suited(text, ["A", "B"], ranks)
    lay = where["A"]
    rank = lay.grid.rank([parts // 2 for parts in lay.grid.shape])
    found = comm.count(text, where, ranks, rank, again=True)
    rim = sum(
        ((c > 0) + (c < parts - 1)) * lay.elements(rank) // lay.owned_shape(rank)[axis]
        for axis, (c, parts) in enumerate(zip(lay.grid.coords(rank), lay.grid.shape, strict=True))
    )
    assert found.counts.bytes_received <= 1.06 * halves * 8 * rim
