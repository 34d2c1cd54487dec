"""Rows of any length, in whole vectors and a masked remainder: the same bits, and no store beyond the row."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dcarray.lowering import targets
from dcarray.lowering.cpu.llvm.emitter.emit import emit
from dcarray.lowering.cpu.llvm.emitter.masked_tails import lanes
from dcarray.lowering.cpu.llvm.object_code.engine import Machine, assembly, machine
from dcarray.lowering.kernel import nodes as k
from dcarray.lowering.kernel.flags import DIVIDE

CPU = targets.get("cpu")
F8, F4, B1 = np.dtype("d"), np.dtype("f"), np.dtype("?")
WIDE = Machine(512, masks=True)
J = k.Term(1, None, "j")
ROW = k.Term(1, "n2", "i")


def at(*terms: k.Term, const: int = 0) -> k.Affine:
    return k.affine(const, *terms)


def elem(buffer: str, dtype: Any, *terms: k.Term, const: int = 0) -> k.Elem:
    return k.Elem(buffer, at(*(terms or (ROW, J)), const=const), np.dtype(dtype))


def lit(value: float, dtype: Any) -> k.Lit:
    return k.Lit(np.array(value, dtype).tobytes(), np.dtype(dtype))


def op(name: str, *args: k.Expr, dtype: Any = None) -> k.Op:
    return k.Op(name, args, np.dtype(dtype) if dtype is not None else args[-1].dtype)


def rows(*body: k.Stmt, lower: int = 0) -> k.For:
    return k.For("j", k.affine(lower), (at(k.Term(1, "n1")),), 1, "vector", body)


def kernel(loop: k.For, dtype: Any, access: str = "r") -> k.Kernel:
    """``n0`` rows of ``n1`` elements that are ``n2`` apart."""
    buffers = (k.Buffer("p0", np.dtype(dtype), access), k.Buffer("p1", np.dtype(dtype), "rw"))  # type: ignore[arg-type]
    return k.Kernel(buffers, ("n0", "n1", "n2"), (k.Phase("i", at(k.Term(1, "n0")), "serial", (loop,)),))


def run(made: k.Kernel, arrays: list[np.ndarray[Any, Any]], ints: list[int]) -> int:
    launch = CPU.load(made, CPU.compile(CPU.emit(made)))
    return launch(launch.pack(ints[0], 1, *(a.ctypes.data for a in arrays), *ints), 1)


def three_point(dtype: Any) -> k.For:
    near = op("add", elem("p0", dtype), elem("p0", dtype, ROW, J, const=2))
    value = op("multiply", lit(0.3, dtype), op("subtract", near, elem("p0", dtype, ROW, J, const=1)))
    return rows(
        k.Let("v", value), k.Store("p1", at(ROW, J, const=1), op("add", k.Local("v", np.dtype(dtype)), value))
    )


@pytest.mark.parametrize("dtype", [F8, F4])
def test_rows_of_any_length(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    made = kernel(three_point(dtype), dtype)
    launch = CPU.load(made, CPU.compile(CPU.emit(made)))
    for n in range(70):
        a, b = (rng.standard_normal((5, 80)).astype(dtype) for _ in "ab")
        want = b.copy()
        if n:
            v = dtype.type(0.3) * ((a[:, :n] + a[:, 2 : n + 2]) - a[:, 1 : n + 1])
            want[:, 1 : n + 1] = v + v
        assert launch(launch.pack(5, 1, a.ctypes.data, b.ctypes.data, 5, n, 80), 1) == 0
        assert (b.view(np.uint8) == want.view(np.uint8)).all(), n


@pytest.mark.parametrize("lower", [0, 3])
def test_rows_in_place(lower: int) -> None:
    loop = rows(k.Store("p1", at(ROW, J), op("multiply", elem("p1", F8), elem("p1", F8))), lower=lower)
    for n in (1, 3, 4, 8, 11, 16, 21):
        a = np.arange(120.0).reshape(3, 40)
        want = a.copy()
        want[:, lower:n] **= 2
        run(kernel(loop, F8), [a, a], [3, n, 40])
        assert (a == want).all()


def test_no_element_beside_a_row_is_touched_or_heard_of() -> None:
    """Beyond the row are NaNs that signal, and values whose squares overflow."""
    beside = np.array([0x7FF0000000000001], np.uint64).view(F8)[0]
    loop = rows(k.Store("p1", at(ROW, J), op("sqrt", op("square", elem("p0", F8)))))
    for n in range(1, 20):
        for other in (beside, 1e300):
            a = np.full((4, 24), other)
            a[:, :n] = np.arange(n) - 3.0
            b = np.full((4, 24), 7.0)
            assert run(kernel(loop, F8), [a, b], [4, n, 24]) == 0
            assert (b[:, :n] == abs(a[:, :n])).all() and (b[:, n:] == 7).all()


def test_rows_up_to_the_end_of_memory() -> None:
    """The last row ends where no memory follows."""
    import mmap

    page = mmap.PAGESIZE
    room = mmap.mmap(-1, 2 * page)
    memory = np.frombuffer(room, F8)
    address = memory.ctypes.data
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(address + page), ctypes.c_size_t(page), 0):
        pytest.skip("memory cannot be protected here")
    try:
        loop = rows(k.Store("p1", at(ROW, J), op("add", elem("p0", F8), lit(1, F8))))
        a = memory[: page // 8]
        for n in (1, 5, 8, 13):
            ends = a[a.size - 3 * n :].reshape(3, n)
            ends[:] = 1.0
            run(kernel(loop, F8), [ends, ends], [3, n, n])
            assert (ends == 2).all()
    finally:
        libc.mprotect(ctypes.c_void_p(address + page), ctypes.c_size_t(page), 3)
        del a, ends, memory


def test_a_division_by_what_moves_raises_nothing() -> None:
    loop = rows(k.Store("p1", at(ROW, J), op("divide", lit(1, F8), elem("p0", F8))))
    a, b = np.full((3, 11), 4.0), np.zeros((3, 11))
    assert run(kernel(loop, F8), [a, b], [3, 11, 11]) == 0
    assert (b == 0.25).all()


def test_divided_by_one_number() -> None:
    first = k.Elem("p0", k.affine(), F8)
    loop = rows(k.Store("p1", at(ROW, J), op("divide", elem("p0", F8), first)))
    assert lanes(loop, WIDE) == 8
    for divisor, flags in ((2.0, 0), (0.0, DIVIDE)):
        a, b = np.full((3, 11), 4.0), np.zeros((3, 11))
        a[0, 0] = divisor
        made = run(kernel(loop, F8), [a, b], [3, 11, 11])
        assert made & DIVIDE == flags
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(b, a / a[0, 0])


STORE = k.Store("p1", at(ROW, J), elem("p0", F8))


@pytest.mark.parametrize(("loop", "size"), [
    (rows(STORE), 8),
    (three_point(F4), 16),
    (replace(rows(STORE), step=2), 0),
    (replace(rows(STORE), kind="serial"), 0),
    (rows(k.Update("s", "add", elem("p0", F8))), 0),
    (rows(k.Store("p1", at(ROW), elem("p0", F8))), 0),  # all in one place
    (rows(k.Store("p1", at(ROW, k.Term(2, None, "j")), elem("p0", F8))), 0),
    (rows(k.Store("p1", at(ROW, J), elem("p0", F8, ROW, k.Term(1, "n1", "j")))), 0),
    (rows(k.Store("p1", at(ROW, J), op("cast", elem("p0", F4), dtype=F8))), 0),  # of two sizes
    (rows(k.Store("p1", at(ROW, J), elem("p0", "q"))), 0),
    (rows(k.Store("p1", at(ROW, J), elem("p0", "e"))), 0),
    (rows(k.Store("p1", at(ROW, J), op("divide", lit(1, F8), elem("p0", F8)))), 0),
    (
        rows(
            k.Let("v", elem("p0", F8)),
            k.Store("p1", at(ROW, J), op("divide", lit(1, F8), op("negative", k.Local("v", F8)))),
        ),
        0,
    ),
    (rows(k.Store("p1", at(ROW, J), op("divide", elem("p0", F8), k.Local("outside", F8)))), 8),
    (rows(k.Store("p1", at(ROW, J), op("log", elem("p0", F8)))), 0),
])  # fmt: skip
def test_which_loops(loop: k.For, size: int) -> None:
    assert lanes(loop, WIDE) == size
    assert lanes(loop, Machine(256, masks=True)) == size // 2
    assert lanes(loop, Machine(512)) == 0


@pytest.mark.skipif(not machine().masks, reason="no vectors under masks")
def test_no_element_is_alone() -> None:
    """No loop is left that LLVM does element by element."""
    text = assembly(emit(kernel(three_point(F8), F8), machine()))
    assert "{z}" in text and "vmulpd" in text
    assert "vmulsd" not in text and "vaddsd" not in text


def test_llvm_says_nothing_of_chunks_that_are_smaller_than_a_vector(
    capfd: pytest.CaptureFixture[str],
) -> None:
    first = k.Term(4096, None, "i")
    whole = k.Store("p1", at(J), op("add", elem("p0", F8, J), lit(1, F8)))
    loop = k.For("j", at(first), (at(first, const=4096), at(const=4)), 1, "vector", (whole,))
    a, b = np.arange(8.0), np.zeros(8)
    assert run(kernel(loop, F8), [a, b], [1, 4, 4]) == 0
    assert b.tolist() == [1, 2, 3, 4, 0, 0, 0, 0]
    assert not capfd.readouterr().err
