"""The cost model: collective operations and phases computed by hand, and lines fitted to points on them."""

import math

import pytest

from dcarray.comm.planning.performance_model import (
    Collective,
    Line,
    Link,
    Machine,
    Phase,
    collective,
    fit,
    predict,
)

LINK = Link((Line(2.0, 10.0),), gap=0.5)
MACHINE = Machine("by hand", LINK, flops=4.0, memory=2.0, cache=8.0, cached=16, step=0.25)


def test_messages_share_the_bandwidth_and_each_further_one_costs_a_gap() -> None:
    assert LINK.time(40) == 6
    assert LINK.time(40, 3) == 7
    assert LINK.time(0, 0) == 0


@pytest.mark.parametrize(("kind", "ranks", "nbytes", "want"), [
    ("allreduce", 1, 80, 0),
    ("allreduce", 4, 0, 2 * 2),
    ("allreduce", 4, 8000, 4 * 2 + 2 * 6000 / 10),  # halved and doubled back
    ("bcast", 8, 10, 3 * 3),
    ("bcast", 8, 80_000, 10 * 2 + 2 * 70_000 / 10),  # scattered and gathered
    ("reduce", 5, 0, 3 * 2),
    ("allgather", 4, 80, 2 * 2 + 6),
    ("alltoall", 4, 80, 3 * 2 + 6),
])  # fmt: skip
def test_collective_operations(kind: str, ranks: int, nbytes: float, want: float) -> None:
    assert collective(Collective(kind, ranks, nbytes), LINK) == pytest.approx(want)


def test_a_collective_operation_without_a_model() -> None:
    with pytest.raises(ValueError, match="gossip"):
        collective(Collective("gossip", 2, 1), LINK)


def test_phases() -> None:
    work = Phase(flops=40, moved=16)
    assert predict([work], MACHINE) == 10 + 0.25
    assert predict([Phase(flops=4, moved=16)], MACHINE) == 8 + 0.25  # memory is slower
    assert predict([Phase(flops=4, moved=16, held=16)], MACHINE) == 2 + 0.25  # the cache is not
    both = Phase(flops=40, messages=1, nbytes=40, times=3)
    assert predict([both], MACHINE) == 3 * (10 + 6 + 0.25)
    hidden = Phase(flops=40, messages=1, nbytes=40, overlapped=True, steps=0)
    assert predict([hidden], MACHINE) == 10
    assert predict([Phase(steps=0, collectives=(Collective("bcast", 2, 10),))], MACHINE) == 3


def test_two_lines_are_found_again() -> None:
    short, long = Line(1e-6, 1e9, limit=8192), Line(5e-6, 8e9)
    points = [(float(n), (short if n <= 8192 else long).time(n)) for n in (8 << k for k in range(18))]
    link = fit(points, gap=1e-7)
    assert link.gap == 1e-7 and link.lines[0].limit == 8192
    for found, want in zip(link.lines, (short, long), strict=True):
        assert math.isclose(found.latency, want.latency, rel_tol=1e-6)
        assert math.isclose(found.bandwidth, want.bandwidth, rel_tol=1e-6)


def test_neither_latency_nor_bandwidth_is_negative() -> None:
    falling = fit([(8, 2.0), (16, 1.9), (1000, 10.0), (2000, 25.0)])
    assert all(line.latency >= 0 and line.bandwidth > 0 for line in falling.lines)
    assert math.isinf(falling.lines[0].bandwidth) and falling.lines[1].latency == 0


def test_too_few_points() -> None:
    with pytest.raises(ValueError, match="four"):
        fit([(8, 1.0), (16, 1.0), (32, 1.0)])
