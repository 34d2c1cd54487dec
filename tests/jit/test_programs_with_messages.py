"""``dc.program`` of functions that send messages: what is between them is compiled, with the same results."""

import random
from typing import Any

import numpy as np
import pytest
from written import written

import dcarray as dc
from dcarray import comm
from dcarray.core.counters import counters, settle
from dcarray.core.errors import ProgramError

N, M = dc.symbol("N"), dc.symbol("M")
K = dc.symbol("K")
EVERYBODY = comm.Allreduce


@dc.program
def ring(x: dc.types.float64[N], y: dc.types.float64[N], steps: int):  # type: ignore[no-untyped-def]
    ranks = comm.world()
    after, before = (ranks.rank + 1) % ranks.size, (ranks.rank - 1) % ranks.size
    for t in range(steps):
        y[:] = np.sqrt(x * x + 1.0) - 0.5 * x + t
        requests = [comm.Isend(y, after, t), comm.Irecv(x, before, t)]
        comm.Waitall(requests)
    total = comm.Allreduce(np.sum(x))
    return x + total, total


def ring_plain(xs: list[Any], ys: list[Any], steps: int) -> list[Any]:
    """What `ring` does on all ranks."""
    for t in range(steps):
        for x, y in zip(xs, ys, strict=True):
            y[:] = np.sqrt(x * x + 1.0) - 0.5 * x + t
        for k, x in enumerate(xs):
            x[:] = ys[k - 1]
    total = np.zeros(())
    for x in xs:
        total = total + np.sum(x)
    return [(x + total, total) for x in xs]


@pytest.mark.parametrize("wraps", [False, True])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_messages_between_compiled_statements(ranks: int, wraps: bool) -> None:
    rng = np.random.default_rng(ranks)
    for n in (30, 7, 40):
        xs, ys = rng.random((ranks, n)), rng.random((ranks, n))
        given = xs.copy(), ys.copy()

        def rank(given: Any = given) -> Any:
            me = comm.world().rank
            x, y = given[0][me], given[1][me]
            if wraps:
                x, y = dc.asarray(x), dc.asarray(y)
            found = ring(x, y, 3)
            return found, type(found[0]), np.array(x), np.array(y)

        before = counters.runs
        found = comm.run(ranks, rank)
        assert counters.runs > before
        expected = ring_plain([*xs], [*ys], 3)
        for k, ((result, total), kind, x, y) in enumerate(found):
            np.testing.assert_allclose(result, expected[k][0], rtol=1e-14)
            np.testing.assert_allclose(total, expected[k][1], rtol=1e-14)
            assert np.array_equal(x, xs[k])
            assert np.array_equal(y, ys[k])
            assert kind is (dc.ndarray if wraps else np.ndarray)


@dc.program
def smoothed(a: dc.types.float64[N + 2], b: dc.types.float64[N + 2], west: int | None, east: int | None):  # type: ignore[no-untyped-def]
    comm.Waitall(
        [
            comm.Irecv(a[0:1], west, 0),
            comm.Irecv(a[N + 1 :], east, 1),
            comm.Isend(a[N : N + 1], east, 0),
            comm.Isend(a[1:2], west, 1),
        ]
    )
    for i in range(1, N + 1):
        b[i] = 0.5 * a[i] + 0.25 * (a[i - 1] + a[i + 1])


@dc.program
def chain(x: dc.types.float64[M], steps: int):  # type: ignore[no-untyped-def]
    cart = comm.Cart_create((comm.world().size,))
    block = comm.BlockScatter(x, cart)
    a, b = np.zeros(block.shape[0] + 2), np.zeros(block.shape[0] + 2)
    a[1:-1] = block
    for _ in range(steps):
        smoothed(a, b, cart.neighbour(-1), cart.neighbour(1))
        a, b = b, a
    return comm.BlockGather(a[1:-1], cart)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_a_program_with_messages_calls_programs_with_messages_and_loops(ranks: int) -> None:
    x = np.random.default_rng(0).random(29)
    padded = np.pad(x, 1)
    for _ in range(4):
        padded[1:-1] = 0.5 * padded[1:-1] + 0.25 * (padded[:-2] + padded[2:])
    before = counters.loops
    for found in comm.run(ranks, chain, x, 4):
        np.testing.assert_allclose(found, padded[1:-1], rtol=1e-14)
    assert counters.loops >= before + 4 * ranks - 1


@dc.program
def compiled_part(x: dc.types.float64[K]):  # type: ignore[no-untyped-def]
    return 2.0 * x + np.arange(K)


@dc.program
def with_part(x: dc.types.float64[N, 2]):  # type: ignore[no-untyped-def]
    first = compiled_part(x[:, 0].copy())
    second = comm.Bcast(np.full(N, float(comm.world().rank + 1)), 0)
    return first + second * N


@pytest.mark.parametrize("ranks", [1, 3])
def test_programs_without_messages_and_sizes(ranks: int) -> None:
    x = np.random.default_rng(1).random((12, 2))
    before = counters.loops
    for found in comm.run(ranks, with_part, x):
        assert np.array_equal(found, 2.0 * x[:, 0] + np.arange(12) + 12.0)
    assert counters.loops == before + ranks


def test_types_and_sizes_are_checked(  # type: ignore[no-untyped-def]
) -> None:
    with pytest.raises(ValueError, match=r"ring\(\): the argument y is expected to be float64\[N\]"):
        ring(np.ones(3), np.ones(4), 1)
    with dc.options(strict=True), pytest.raises(TypeError, match="the argument x is expected to be float64"):
        ring(np.ones(3, np.float32), np.ones(3), 1)
    with (
        dc.options(strict=True),
        pytest.raises(TypeError, match=r"west is expected to be int \| None, not 1.5"),
    ):
        smoothed(np.ones(3), np.ones(3), 1.5, None)


def test_arguments_of_other_types_run_with_a_line_in_the_report() -> None:
    x, y = np.ones(3, np.float32), np.ones(3, np.float32)
    result, _ = ring(x, y, 2)
    expected = np.ones(3, np.float32), np.ones(3, np.float32)
    ((other, _),) = ring_plain([expected[0]], [expected[1]], 2)
    assert np.array_equal(result, other)
    settle()
    assert "x is expected to be float64[N], not float32" in str(dc.report())


def test_arrays_in_blocks_are_refused() -> None:
    def rank() -> str:
        x = dc.distribute(np.ones(40))
        with pytest.raises(ValueError, match="one that it is given lies in blocks"):
            ring(x, np.ones(40), 1)
        return "refused"

    assert comm.run(2, rank) == ["refused"] * 2


def test_large_arrays_are_each_ranks_own() -> None:
    def rank() -> Any:
        with dc.options(distribute_above=4):
            return ring(np.full(30, 1.0 + comm.world().rank), np.ones(30), 1)[0]

    expected = ring_plain([np.full(30, 1.0), np.full(30, 2.0)], [np.ones(30), np.ones(30)], 1)
    for found, (one, _) in zip(comm.run(2, rank), expected, strict=True):
        np.testing.assert_allclose(found, one, rtol=1e-14)


@dc.program
def free_size(x: dc.types.float64[N]):  # type: ignore[no-untyped-def]
    y = np.zeros(M)
    return comm.Allreduce(y)


@dc.program
def any_number(x: dc.types.float64[N], *others: float):  # type: ignore[no-untyped-def]
    return EVERYBODY(x)


def test_errors_have_file_and_line() -> None:
    with pytest.raises(ProgramError, match=r"test_programs_with_messages.py:\d+: the value of M does not"):
        free_size.compile()
    with pytest.raises(ProgramError, match=r"any_number takes any number of arguments"):
        any_number.compile()
    assert ring.compile() is ring
    for asked in (ring.region, ring.schedule):
        with pytest.raises(ProgramError, match=r"test_programs_with_messages.py:\d+: ring sends messages"):
            asked()


def test_explain_shows_the_pieces() -> None:
    text = ring.explain()
    assert "ring sends messages" in text
    assert "    y[:] = np.sqrt(x * x + 1.0) - 0.5 * x + t" in text
    assert "Isend" not in text


# ---- random programs ----------------------------------------------------------------------------------
LOCAL = (
    "a[:] = b * {c} + np.abs(a)",
    "b[1:] = a[:-1] - {c} * b[1:]",
    "c = np.maximum(a, b) + {c}\n{pad}a[:] = c - c.mean()",
    "for i in range(1, N):\n{pad}    b[i] = 0.5 * b[i - 1] + a[i]",
    "b = b[::-1] * {c}",
    "a += N * {c}",
)
SENT = (
    "comm.Waitall([comm.Isend(a, after, {t}), comm.Irecv(b, before, {t})])",
    "comm.Bcast(a, {t} % ranks.size)",
    "b = comm.Allreduce(a, 'max')",
    "request = comm.Irecv(b[: N // 2], before, {t})\n{pad}comm.Isend(a[: N // 2], after, {t}).wait()\n"
    "{pad}comm.Wait(request)",
    "a = comm.BlockScatter(comm.BlockGather(a, (ranks.size,)), (ranks.size,), root=0)",
)


def random_body(rng: random.Random, pad: str, depth: int = 0) -> str:
    """Return statements, of which some send messages."""
    lines = []
    for _ in range(rng.randint(2, 5)):
        if depth < 2 and rng.random() < 0.25:
            lines.append(f"{pad}for t{depth} in range({rng.randint(1, 3)}):")
            lines.append(random_body(rng, pad + "    ", depth + 1))
            continue
        kind = LOCAL if rng.random() < 0.6 else SENT
        text = rng.choice(kind).format(c=round(rng.uniform(-1, 1), 2), t=rng.randint(0, 9), pad=pad)
        lines.append(pad + text)
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed: int) -> None:
    rng = random.Random(seed)
    text = (
        "def f(a: dc.types.float64[N], b: dc.types.float64[N]):\n"
        "    ranks = comm.world()\n"
        "    after, before = (ranks.rank + 1) % ranks.size, (ranks.rank - 1) % ranks.size\n"
        f"{random_body(rng, '    ')}\n    return a, b\n"
    )
    names = {"np": np, "dc": dc, "comm": comm, "N": N}
    work = written(text, **names)
    program = dc.program(work)
    for ranks in (1, 2, 3, 4):
        n = rng.choice((8, 13, 24))
        values = np.random.default_rng(seed).random((2, ranks, n))

        def rank(as_program: bool, values: Any = values, n: int = n) -> Any:
            a, b = values[:, comm.world().rank].copy()
            if as_program:
                return a, b, program(a, b)
            plain = type(work)(work.__code__, {**work.__globals__, "N": n})
            return a, b, plain(a, b)

        for found, expected in zip(comm.run(ranks, rank, True), comm.run(ranks, rank, False), strict=True):
            for one, other in zip((*found[:2], *found[2]), (*expected[:2], *expected[2]), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12, err_msg=text)
