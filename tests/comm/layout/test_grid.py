"""Process grids and their choice."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dcarray.comm.layout.grid import ProcessGrid, choose_grid
from dcarray.comm.transport.errors import GridError


@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3), (3, 1, 4)])
def test_ranks_are_row_major(shape: tuple[int, ...]) -> None:
    grid = ProcessGrid(shape)
    table = np.arange(grid.size).reshape(shape)
    for coords in np.ndindex(*shape):
        assert grid.rank(coords) == table[coords]
        assert grid.coords(int(table[coords])) == coords


def test_neighbours() -> None:
    grid = ProcessGrid((2, 3))
    assert grid.neighbour(0, (1, 1)) == 4
    assert grid.neighbour(0, (-1, 0)) is None
    assert grid.neighbour(0, (-1, -1), (True, True)) == 5
    with pytest.raises(GridError, match="along 1 axes were given"):
        grid.neighbour(0, (1,))
    assert grid.neighbour(2, (0, 1), (True, False)) is None


def test_sub_grids() -> None:
    grid = ProcessGrid((2, 3, 4))
    table = np.arange(24).reshape(2, 3, 4)
    for rank in range(24):
        i, j, k = grid.coords(rank)
        assert grid.sub(rank, (True, False, True)) == (ProcessGrid((2, 4)), tuple(table[:, j, :].ravel()))
        assert grid.sub(rank, (False,) * 3) == (ProcessGrid(()), (rank,))
        assert grid.sub(rank, (False, True, False))[1] == tuple(table[i, :, k])


def test_errors() -> None:
    grid = ProcessGrid((2, 3))
    with pytest.raises(GridError, match="at least one rank"):
        ProcessGrid((2, 0))
    with pytest.raises(GridError, match="has 6 ranks, but there are 5"):
        grid.check(5)
    with pytest.raises(GridError, match="rank 6 is not in grid"):
        grid.coords(6)
    with pytest.raises(GridError, match="coordinates"):
        grid.rank((2, 0))
    with pytest.raises(GridError, match="coordinates"):
        grid.rank((0,))
    with pytest.raises(GridError, match="2 axes, not 1"):
        grid.sub(0, (True,))
    with pytest.raises(GridError, match="without axes"):
        choose_grid((), 2)
    with pytest.raises(GridError, match="make no grid"):
        choose_grid((4,), 0)


def _all_grids(axes: int, ranks: int) -> list[tuple[int, ...]]:
    return [g for g in product(range(1, ranks + 1), repeat=axes) if math.prod(g) == ranks]


@pytest.mark.parametrize("shape", [
    (8,), (3,), (100, 100), (7, 8), (1000, 3), (4, 9, 16), (0, 5), (2, 2, 2), (40, 5000), (5000, 40),
    (60, 50, 70),
])  # fmt: skip
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6, 7, 12, 13, 36])
def test_the_chosen_grid_is_the_best_of_all(shape: tuple[int, ...], ranks: int) -> None:
    extents = [max(1, n) for n in shape]

    def cost(grid: tuple[int, ...]) -> tuple[int, Fraction]:
        busy = math.prod(min(p, n) for p, n in zip(grid, extents, strict=True))
        return -busy, sum((Fraction(p - 1, n) for p, n in zip(grid, extents, strict=True)), Fraction(0))

    best = min(map(cost, _all_grids(len(shape), ranks)))
    assert cost(choose_grid(shape, ranks).shape) == best
    rows = choose_grid(shape, ranks, rows=True).shape
    assert cost(rows) == best or (
        rows[0] == ranks and cost(rows)[0] == best[0] and cost(rows)[1] <= Fraction(13, 10) * best[1]
    )


def test_what_is_chosen() -> None:
    assert choose_grid((1000, 1000), 4).shape == (2, 2)
    assert choose_grid((1000, 1000), 7).shape == (7, 1)  # equal to (1, 7), and more contiguous
    assert choose_grid((10, 1000), 4).shape == (1, 4)
    assert choose_grid((1000, 1250), 2).shape == (1, 2)
    assert choose_grid((1000, 1250), 2, rows=True).shape == (2, 1)
    assert choose_grid((1000, 1350), 2, rows=True).shape == (1, 2)
    assert choose_grid((1000, 1250), 4, rows=True).shape == (2, 2)
    assert choose_grid((64, 64, 64), 1296).shape == (12, 12, 9)
    assert choose_grid((), 1).shape == ()
