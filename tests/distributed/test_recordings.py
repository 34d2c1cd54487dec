"""Recordings on distributed arrays give NumPy's results; `rank_programs` has the programs."""

import gc
from typing import Any

import numpy as np
import pytest
import rank_programs
from fresh import python
from launching import ROOT, launch, needs_mpi
from simulated import on_ranks

import dcarray as dc
from dcarray.comm import MismatchError, run, world
from dcarray.comm.planning.rank_program import matching as checking
from dcarray.core.processes import communicator
from dcarray.distributed.array_distribution import distribute


def test_no_ranks_are_asked_for() -> None:
    assert communicator() is None
    assert run(1, communicator) == [None]
    assert [comm.size for comm in run(3, communicator)] == [3] * 3


@pytest.mark.parametrize("ranks", [2, 5])
@pytest.mark.parametrize("program", rank_programs.PROGRAMS, ids=lambda program: program.__name__)
def test_programs(ranks: int, program: rank_programs.Program) -> None:
    run(ranks, rank_programs.check, program)


def test_programs_are_checked_before_they_run(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[int] = []
    plain = checking.check
    monkeypatch.setattr(checking, "check", lambda *args: (plain(*args), checked.append(1)))

    def program() -> None:
        with dc.options(debug=True):
            x = distribute(np.arange(24.0).reshape(6, 4))
            y = x.copy()
            y[1:-1] = x[:-2] + x[2:]
            assert np.array_equal(y[1], [8, 10, 12, 14])

    run(3, program)
    assert len(checked) >= 3


@needs_mpi
@pytest.mark.parametrize("ranks", [2, 4])
def test_programs_under_mpi(ranks: int) -> None:
    done = launch(ranks, "-m", "rank_programs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ended") == ranks


@on_ranks(3)
def test_shared_memory_stays_shared() -> None:
    a = np.arange(12.0)
    with dc.options(distribute_above=0):
        x = dc.asarray(a)
        x += 1
        assert x.layout.local_shape(world().rank) == (4,)
        dc.evaluate(x)
        assert np.array_equal(a, np.arange(12.0) + 1)
        a[:] = 7  # its owner may, while nothing is pending
        assert np.array_equal(np.asarray(x * 2), np.full(12, 14.0))
        b = np.zeros(12)
        y = dc.asarray(b)
        y += 7
        assert y.layout.local_shape(world().rank) == (4,)
        del y
        dc.evaluate()
        assert np.array_equal(a, b)


@on_ranks(2)
def test_exposed_memory_is_up_to_date() -> None:
    with dc.options(distribute_above=0):
        x = dc.asarray(np.arange(6.0)) * 2
        plain = np.asarray(x)
        x += 1
        assert plain[2] == 5
        plain[:] = 0
        assert (x + 1).sum() == 6
        target = np.zeros(6)
        target += x
        np.add(x, 3, out=target)
        assert target.sum() == 18


@on_ranks(3)
def test_local_blocks() -> None:
    x = distribute(np.arange(12.0), halo=1)
    mine = x.local
    assert mine.shape == (4,) and mine[0] == 4 * world().rank
    mine += 1
    mine[1] = -1
    assert np.array_equal(np.asarray(x)[:4], [1, -1, 3, 4])
    with pytest.raises(dc.comm.LayoutError, match=r"read x\.local again"):
        mine[0] = 3
    with pytest.raises(dc.comm.LayoutError, match=r"read x\.local again"):
        mine += 3


@on_ranks(3)
def test_gather_on_one_rank() -> None:
    a = np.random.default_rng(0).random((6, 4))
    x = distribute(a)
    last = world().size - 1
    for part, plain in ((x, a), (x[1:, 1:], a[1:, 1:])):
        found = part.gather(last)
        assert np.array_equal(found, plain) if world().rank == last else found is None
        assert np.array_equal(part.gather(), plain)
    again = distribute(x, (1, world().size))
    assert again.layout.grid.shape == (1, world().size)
    assert np.array_equal(np.asarray(again), a)


@on_ranks(2)
def test_ranks_may_differ_in_what_the_garbage_collector_has_found() -> None:
    gc.disable()
    x = distribute(np.arange(6.0))
    y = x * 2
    if world().rank == 0:
        ring: list[Any] = [y]
        ring.append(ring)
    del y
    assert (x + 1).sum() == 21
    gc.enable()


def test_floating_point_errors_are_those_of_all_ranks() -> None:
    def program(divide: str) -> None:
        x = distribute(np.arange(6.0))
        for both in (False, True):
            with np.errstate(divide=divide):  # type: ignore[call-overload]
                y = 1 / (x + 1) + 3 / x if both else 1 / x
            if divide == "raise":
                with pytest.raises(FloatingPointError, match="divide by zero encountered in divide"):
                    np.asarray(y)
            else:
                assert np.isinf(np.asarray(y)[0])

    run(3, program, "raise")
    run(3, program, "ignore")


WHERE = (
    r"rank \d calls run\(\d recorded.* \(.*test_recordings.py:\d+\) "
    r"where rank \d calls run\(.*test_recordings.py:\d+"
)


@on_ranks(2)
def test_ranks_that_record_different_calls_raise() -> None:
    x = distribute(np.arange(6.0))
    y = x + 1 if world().rank else x - 1
    with pytest.raises(MismatchError, match=WHERE):
        np.asarray(y)


@on_ranks(2)
def test_strict_refuses_gathers() -> None:
    x = distribute(np.arange(12.0).reshape(4, 3))
    with dc.options(strict=True), pytest.raises(dc.StrictError):
        dc.evaluate(np.linalg.pinv(x))


MADE = [
    lambda np: np.zeros((7, 5)), lambda np: np.ones((7, 5), np.float32), lambda np: np.full(9, 2.5),
    lambda np: np.arange(20), lambda np: np.arange(3, 40, 2), lambda np: np.arange(0.1, 2.7, 0.3),
    lambda np: np.arange(7.5, -2, -0.7), lambda np: np.linspace(0.1, 1.3, 17),
    lambda np: np.linspace(3, -2, 11, False), lambda np: np.linspace(1, 1, 6),
]  # fmt: skip


@pytest.mark.parametrize("make", MADE)
@on_ranks(3)
def test_arrays_are_made_in_blocks(make: Any) -> None:
    want = make(np)
    with dc.options(distribute_above=0):
        x = make(dc)
        assert x._store.mem is None  # nobody has the whole of it
        assert sum(x.layout.local_shape(world().rank)) < sum(x.shape)
        found = np.asarray(x)
    assert found.dtype == want.dtype
    assert found.tobytes() == want.tobytes()


@on_ranks(6)
def test_a_grid_may_be_asked_for() -> None:
    with dc.options(distribute_above=0, grid=(2, 3)):
        assert dc.zeros((8, 9)).layout.grid.shape == (2, 3)
    with dc.options(grid=(4, 2)), pytest.raises(dc.comm.GridError, match="there are 6"):
        distribute(np.ones((8, 8)))


@on_ranks(2)
def test_nothing_is_distributed_where_that_is_asked_for() -> None:
    with dc.options(distribute_above=None, eager_below=0):
        x = dc.asarray(np.full(5 + world().rank, world().rank)) + 1  # each rank's own
        assert x.sum() == (5 + world().rank) * (world().rank + 1)


def test_unseeded_generators_agree() -> None:
    draws = run(3, lambda: dc.random.default_rng().random(4).tolist())
    assert draws[0] == draws[1] == draws[2] != run(3, lambda: dc.random.default_rng().random(4).tolist())[0]


@on_ranks(2)
def test_a_call_that_raises_leaves_nothing_to_run() -> None:
    x = distribute(np.arange(6, dtype=np.uint8))
    for _ in range(2):
        with pytest.raises(OverflowError):
            x += -3
        assert x.tolist() == [0, 1, 2, 3, 4, 5]


@on_ranks(2)
def test_selections_of_computed_arrays() -> None:
    with dc.options(distribute_above=0, jit="off"):
        x, y = dc.asarray(np.arange(8.0)), dc.asarray(np.ones(8))
        x[y > 2] += 1
        chosen = x[x > 3]
        (x + y).sum()
        assert np.array_equal(x, np.arange(8.0))  # which makes, and lets go, what is not stored
        assert chosen.tolist() == [4, 5, 6, 7]


@on_ranks(3)
def test_one_element_is_not_gathered_for() -> None:
    x = distribute(np.arange(12.0))
    assert (x[7], x[-1], x[3] + x[4]) == (7, 11, 7)
    assert x._store.remote is not None and x._store.mem is None


@needs_mpi
def test_a_script_that_knows_nothing_of_ranks() -> None:
    done = launch(
        3, "-m", "dcarray", "run", "--report", "examples/heat.py", "64", "6", DCARRAY_DISTRIBUTE_ABOVE="0"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    alone = python("examples/heat.py", "64", "6", cwd=ROOT)
    (found, took), (wanted, _) = done.stdout.splitlines(), alone.stdout.splitlines()
    assert found == wanted and took.endswith(" s")
    assert "rank 2: " in done.stderr and done.stderr.count("dcarray report") == 1


def test_arrays_of_a_tile_are_local() -> None:
    def tile(k: int) -> Any:
        return (dc.asarray(np.full(5 + k, k)) + 1) * 2

    def program() -> None:
        with dc.options(distribute_above=0):
            x = dc.zeros(7) + 1
            found = dc.pmap(tile, range(9))
            assert [a.tolist() for a in found] == [[2 * k + 2] * (5 + k) for k in range(9)]
            assert x.sum() == 7

    run(3, program)


def test_files(tmp_path: Any) -> None:
    a = np.random.default_rng(0).random((7, 5))

    def program() -> None:
        np.save(tmp_path / "x", distribute(a))
        with dc.options(distribute_above=0):
            x = dc.load(tmp_path / "x.npy")
            assert x.layout == dc.comm.Layout.chosen((7, 5), world().size)
            assert np.array_equal(x, a)
            with pytest.raises(FileNotFoundError):
                dc.load(tmp_path / "y.npy")
        assert isinstance(dc.load(tmp_path / "x.npy"), dc.ndarray)

    run(3, program)
    assert np.array_equal(np.load(tmp_path / "x.npy"), a)


@on_ranks(2)
def test_messages_are_explained() -> None:
    x = distribute(np.arange(24.0).reshape(6, 4))

    def step() -> Any:
        y = x.copy()
        y[1:-1] = x[:-2] + x[2:]
        return y

    for text in (str(dc.explain(step)), str(dc.explain(x[1:] + x[:-1]))):
        assert f"this is rank {world().rank}'s part, which sends" in text
        assert "call comm.halo(" in text and "layout 'grid(2), block(0), whole" in text
        assert "comm.halo x: each rank receives" in text and "comm.beyond x" not in text
        assert "receives 1 message, 32 bytes" in text or "sends 1 message, 32 bytes" in text
        assert "shown below; nothing travels" in text and "region 1, step " in text
        assert "kernel 1" in text and "test_recordings.py:" in text
    assert "<svg" in dc.explain(step).svg()
    assert "exchange halo of a0_1; sends 1 message, 32 bytes, receives 1" in str(dc.explain(step))
    text = str(dc.explain(lambda: x.max(axis=0)))
    assert "(maximum) with the ranks (0, 1); 32 bytes of each rank" in text


def _turns(a: Any, b: Any, n: int) -> Any:
    total = 0.0
    for k in range(1, n):
        a[k] = a[k - 1] * 0.5 + b[k]
        b[k, 1:] += a[k, :-1]
        total += a[k, 0]
    return a, b, total


@pytest.mark.parametrize("jit", ["eager", "background"])
def test_compiled_loops_gather_their_arrays(jit: str) -> None:
    first, second = np.random.default_rng(2).random((2, 12, 5))
    want = _turns(first.copy(), second.copy(), 12)
    loop = dc.accelerate(_turns)

    def program() -> None:
        with dc.options(distribute_above=8, jit=jit, strict=False):
            for _ in range(3):
                a, b, total = loop(distribute(first), distribute(second) + 0, 12)
                np.testing.assert_allclose(a, want[0], rtol=1e-12)
                np.testing.assert_allclose(b, want[1], rtol=1e-12)
                assert np.isclose(total, want[2])
        told = [row for row in dc.report().fallbacks if row.function == "a compiled loop (gathered)"]
        assert told and "test_recordings.py" in told[0].where
        with dc.options(distribute_above=0, strict=True):
            a, b, total = loop(distribute(first), distribute(second), 12)  # as written: nothing is gathered
            assert a._store.remote is not None and np.allclose(a.gather(), want[0])

    run(2, program)


def _steps(a: Any, b: Any, n: int) -> None:
    for _ in range(n):
        b[1:-1] = a[:-2] + a[2:]
        a[1:-1] = 0.5 * b[1:-1]


def test_loops_with_large_statements_run_distributed() -> None:
    first = np.random.default_rng(3).random((40, 3))
    want = first.copy()
    _steps(want, first.copy(), 5)
    loop = dc.accelerate(_steps)

    def program() -> None:
        with dc.options(distribute_above=16, jit="eager"):
            a = distribute(first)
            loop(a, distribute(first), 5)
            assert a._store.family.remote is not None and a.layout is not None
            np.testing.assert_array_equal(a.gather(), want)
        assert "statements work on arrays in blocks" in str(dc.report())
        assert "(gathered)" not in str(dc.report())

    dc.report(reset=True)
    run(2, program)


@pytest.mark.parametrize("call", [
    lambda x: np.linalg.pinv(x),
    lambda x: np.apply_along_axis(np.vectorize(abs), 0, x),
    lambda x: np.linalg.svd(x),
    lambda x: np.add.accumulate(x.ravel()),
])  # fmt: skip
@on_ranks(2)
def test_gathers_are_reported_and_refused(call: Any) -> None:
    a = np.arange(12.0).reshape(4, 3)
    with dc.options(distribute_above=0, eager_below=0):
        with dc.options(strict=True), pytest.raises(dc.StrictError):
            dc.evaluate(call(distribute(a)))
        found, want = call(distribute(a)), call(a.copy())
        for x, y in zip(*(z if isinstance(z, tuple) else (z,) for z in (found, want)), strict=True):
            assert (x is None and y is None) or np.allclose(x, y)
    assert "(gathered)" in str(dc.report())
