"""Kernels of every statement kind through the LLVM target."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dcarray.lowering import targets
from dcarray.lowering.cpu.llvm.emitter.emit import emit
from dcarray.lowering.cpu.llvm.object_code import engine
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel import flags
from dcarray.lowering.kernel import nodes as k
from dcarray.lowering.kernel.flags import DIVIDE, OVERFLOW

CPU = targets.get("cpu")
F8, F4, I8, B1 = np.dtype("d"), np.dtype("f"), np.dtype("q"), np.dtype("?")
Array = np.ndarray[Any, Any]


def var(name: str, coef: int = 1, arg: str | None = None) -> k.Term:
    return k.Term(coef, arg, name)


def at(*terms: k.Term, const: int = 0) -> k.Affine:
    return k.affine(const, *terms)


def elem(buffer: str, *terms: k.Term, const: int = 0, dtype: Any = F8) -> k.Elem:
    return k.Elem(buffer, at(*terms, const=const), np.dtype(dtype))


def lit(value: Any, dtype: Any = F8) -> k.Lit:
    return k.Lit(np.array(value, dtype).tobytes(), np.dtype(dtype))


def op(name: str, *args: k.Expr, dtype: Any = None) -> k.Op:
    return k.Op(name, args, np.dtype(dtype or args[-1].dtype))


def run(
    kernel: k.Kernel,
    extents: list[int],
    arrays: list[Array],
    ints: list[int],
    threads: int = 1,
    work: int = 1,
) -> int:
    launch = CPU.load(kernel, CPU.compile(CPU.emit(kernel)))
    heads = [n for extent in extents for n in (extent, work)]
    return launch(launch.pack(*heads, *(a.ctypes.data for a in arrays), *ints), threads)


def buffers(*specs: tuple[Any, str]) -> tuple[k.Buffer, ...]:
    return tuple(k.Buffer(f"p{i}", np.dtype(d), access) for i, (d, access) in enumerate(specs))


def flat(body: tuple[k.Stmt, ...], *specs: tuple[Any, str], pre: tuple[k.Let, ...] = ()) -> k.Kernel:
    """A one-dimensional kernel over ``n0``."""
    phase = k.Phase("i", at(k.Term(1, "n0")), "vector", body, pre)
    return k.Kernel(buffers(*specs), ("n0",), (phase,))


def test_no_contraction() -> None:
    rng = np.random.default_rng(0)
    x, y, z = (rng.standard_normal(1003) for _ in range(3))
    out = np.empty(1003)
    value = op("add", op("multiply", elem("p0", var("i")), elem("p1", var("i"))), elem("p2", var("i")))
    kernel = flat((k.Store("p3", at(var("i")), value),), (F8, "r"), (F8, "r"), (F8, "r"), (F8, "w"))
    assert run(kernel, [1003], [x, y, z, out], [1003]) == 0
    np.testing.assert_array_equal(out, x * y + z)


def test_no_reassociation_of_plain_arithmetic() -> None:
    x = np.random.default_rng(0).standard_normal(517)
    out = np.empty(517)
    e = elem("p0", var("i"))
    value = op("subtract", op("add", op("add", e, lit(1e16)), lit(1.0)), lit(1e16))
    run(flat((k.Store("p1", at(var("i")), value),), (F8, "r"), (F8, "w")), [517], [x, out], [517])
    np.testing.assert_array_equal(out, ((x + 1e16) + 1.0) - 1e16)


@pytest.mark.parametrize("char", ["e", "f", "d", "F", "D", "q", "b", "?"])
@pytest.mark.parametrize("reassoc", [False, True])
def test_folds(char: str, reassoc: bool) -> None:
    dtype = np.dtype(char)
    rng = np.random.default_rng(1)
    x = (rng.integers(-8, 8, 300) + (1j if char in "FD" else 0)).astype(dtype)
    start = np.asarray(3).astype(dtype)
    names = ["add", "maximum", "minimum"] + ([] if char in "efF?" else ["multiply"])
    names += {"?": ["logical_and", "logical_or"], "q": ["bitwise_and"], "b": ["bitwise_xor"]}.get(char, [])
    for name in names:
        body = (
            k.Declare("acc", lit(start, dtype), reassoc),
            k.For(
                "i", at(), (at(k.Term(1, "n0")),), 1, "vector" if reassoc else "serial",
                (k.Update("acc", name, elem("p0", var("i"), dtype=dtype)),),
            ),
            k.Store("p1", at(), k.Local("acc", dtype)),
        )  # fmt: skip
        kernel = k.Kernel(
            buffers((dtype, "r"), (dtype, "w")), ("n0",), (k.Phase("one", at(const=1), "serial", body),)
        )
        out = np.empty(1, dtype)
        run(kernel, [1], [x, out], [300])
        ufunc = getattr(np, name)
        expected = start
        with np.errstate(all="ignore"):
            for value in x:
                expected = ufunc(expected, value)
        assert out[0] == expected, name


@pytest.mark.parametrize("name", ["maximum", "minimum"])
@pytest.mark.parametrize("char", ["e", "f", "d"])
def test_an_extreme_keeps_nan(char: str, name: str) -> None:
    dtype = np.dtype(char)
    fold = k.Update("acc", name, elem("p0", var("i"), dtype=dtype))
    body = (
        k.Declare("acc", elem("p0", dtype=dtype), True),
        k.For("i", at(), (at(k.Term(1, "n0")),), 1, "vector", (fold,)),
        k.Store("p1", at(), k.Local("acc", dtype)),
    )
    phase = k.Phase("one", at(const=1), "serial", body)
    kernel = k.Kernel(buffers((dtype, "r"), (dtype, "w")), ("n0",), (phase,))
    launch = CPU.load(kernel, CPU.compile(CPU.emit(kernel)))
    out = np.zeros(1, dtype)
    rng = np.random.default_rng(1)
    for size in (1, 9, 300):
        for nans in ((), (0,), (size // 2,), (size - 1,), (0, size - 1), range(size)):
            x = rng.normal(size=size).astype(dtype)
            x[rng.integers(size)] = np.inf
            x[list(nans)] = np.nan
            raised = launch(launch.pack(1, 1, x.ctypes.data, out.ctypes.data, size), 1)
            np.testing.assert_array_equal(out[0], getattr(np, name).reduce(x))
            assert raised == 0


def test_gather_with_bool_and_let_and_if() -> None:
    x = np.arange(100, dtype=F8)
    index = np.random.default_rng(2).integers(0, 10, 64).astype(np.uint8)
    out = np.full(64, -1.0)
    gathered = k.Elem("p0", at(const=3), F8, ((elem("p1", var("i"), dtype="B"), at(k.Term(1, "n1"))),))
    clear = k.If(op("equal", k.Local("v", F8), lit(3.0), dtype="?"), (k.Store("p2", at(var("i")), lit(0.0)),))
    body = (
        k.Let("v", gathered),
        k.If(
            op("greater", k.Local("v", F8), lit(50.0), dtype="?"),
            (k.Store("p2", at(var("i")), op("multiply", k.Local("v", F8), lit(2.0))),),
            (clear,),
        ),
    )  # fmt: skip
    phase = k.Phase("i", at(k.Term(1, "n0")), "vector", body)
    kernel = k.Kernel(buffers((F8, "r"), ("B", "r"), (F8, "w")), ("n0", "n1"), (phase,))
    run(kernel, [64], [x, index, out], [64, 7])
    v = x[3 + 7 * index.astype(int)]
    np.testing.assert_array_equal(out, np.where(v > 50, v * 2, np.where(v == 3, 0, -1)))


def test_two_phases_with_scratch_and_index_values() -> None:
    x = np.arange(1000, dtype=F8)
    partial, out = np.empty(10), np.empty(1)
    fold = k.For(
        "i", at(var("b", 1, "n0")), (at(var("b", 1, "n0"), k.Term(1, "n0")),), 1, "vector",
        (k.Update("acc", "add", elem("p0", var("i"))),),
    )  # fmt: skip
    weight = op("cast", k.Index(at(var("b"), const=1)), dtype="d")
    first = k.Phase(
        "b", at(k.Term(1, "n1")), "serial",
        (
            k.Declare("acc", k.Local("zero", F8), True), fold,
            k.Store("p1", at(var("b")), op("multiply", k.Local("acc", F8), weight)),
        ),
        (k.Let("zero", lit(0.0)),),
    )  # fmt: skip
    add = k.Update("acc", "add", elem("p1", var("b")))
    second = k.Phase(
        "one", at(const=1), "serial",
        (
            k.Declare("acc", lit(0.0)),
            k.For("b", at(), (at(k.Term(1, "n1")),), 1, "serial", (add,)),
            k.Assign("acc", op("negative", k.Local("acc", F8))),
            k.Store("p2", at(), k.Local("acc", F8)),
        ),
    )  # fmt: skip
    kernel = k.Kernel(buffers((F8, "r"), (F8, "rw"), (F8, "w")), ("n0", "n1"), (first, second))
    for threads in (1, 2, 4):
        run(kernel, [10, 1], [x, partial, out], [100, 10], threads, 1 << 20)
        assert out[0] == -sum(x[100 * b : 100 * b + 100].sum() * (b + 1) for b in range(10))


def test_an_empty_extent_does_nothing() -> None:
    out = np.zeros(3)
    kernel = flat((k.Store("p0", at(var("i")), lit(1.0)),), (F8, "w"))
    assert run(kernel, [0], [out], [0]) == 0
    assert run(kernel, [-2], [out], [-2], 2) == 0
    assert not out.any()


@pytest.mark.parametrize("threads", [1, 2])
def test_flags_come_from_every_thread(threads: int) -> None:
    size = 100_000
    value = op("divide", lit(1.0), elem("p0", var("i")))
    kernel = flat((k.Store("p1", at(var("i")), value),), (F8, "r"), (F8, "w"))
    x, out = np.ones(size), np.empty(size)
    assert run(kernel, [size], [x, out], [size], threads, 1000) == 0
    for position in (3, size - 3):
        x[:] = 1
        x[position] = 0
        assert run(kernel, [size], [x, out], [size], threads, 1000) == DIVIDE
        assert out[position] == np.inf


def test_integer_division_flags_and_the_mask() -> None:
    value = op("floor_divide", elem("p0", var("i"), dtype=I8), elem("p1", var("i"), dtype=I8))
    kernel = flat((k.Store("p2", at(var("i")), value),), (I8, "r"), (I8, "r"), (I8, "w"))
    x, y, out = np.full(100, 7), np.full(100, 2), np.empty(100, I8)
    assert run(kernel, [100], [x, y, out], [100]) == 0
    y[50] = 0
    assert run(kernel, [100], [x, y, out], [100]) == DIVIDE
    y[50], x[50] = -1, np.iinfo(I8).min
    assert run(kernel, [100], [x, y, out], [100]) == OVERFLOW
    assert flags.kernel_flags(kernel) == DIVIDE | OVERFLOW


@settings(derandomize=True, deadline=None, max_examples=10)
@given(st.data())
def test_a_nan_raises_nothing_in_comparisons(data: st.DataObject) -> None:
    # The sum makes "invalid" a flag that is looked at.
    name = data.draw(st.sampled_from(["less", "less_equal", "greater", "greater_equal", "not_equal"]))
    size = data.draw(st.integers(1, 40))
    numbers = st.lists(st.sampled_from([0.0, 1.0, -1.0, np.nan]), min_size=size, max_size=size)
    x, y = np.array(data.draw(numbers)), np.array(data.draw(numbers))
    a, b = elem("p0", var("i")), elem("p1", var("i"))
    value = op("where", op(name, a, b, dtype="?"), op("add", a, b), op("maximum", a, b))
    kernel = flat((k.Store("p2", at(var("i")), value),), (F8, "r"), (F8, "r"), (F8, "w"))
    out = np.empty(size)
    assert run(kernel, [size], [x, y, out], [size]) == 0
    np.testing.assert_array_equal(out, np.where(getattr(np, name)(x, y), x + y, np.maximum(x, y)))


@pytest.mark.parametrize("char", ["f", "d"])
def test_results_do_not_depend_on_position(char: str) -> None:
    x = np.abs(np.random.default_rng(3).standard_normal(4096)).astype(char)
    value = elem("p0", var("i"), dtype=char)
    stores = []
    for number, name in enumerate(["exp", "tanh", "cbrt", "log", "arctan", "fmod"]):
        args = (value, lit(0.3, char)) if name == "fmod" else (value,)
        stores.append(k.Store(f"p{number + 1}", at(var("i")), op(name, *args)))
    kernel = flat(tuple(stores), (char, "r"), *[(char, "w")] * len(stores))
    whole, piece = (np.empty((len(stores), 4096), char) for _ in range(2))
    run(kernel, [4096], [x, *whole], [4096])
    for start, stop in ((0, 1), (1, 8), (5, 21), (5, 77), (4000, 4095)):
        part = x[start:stop].copy()
        run(kernel, [stop - start], [part, *piece], [stop - start])
        np.testing.assert_array_equal(piece[:, : stop - start], whole[:, start:stop])


def test_vector_functions_of_constants() -> None:
    value = op("power", op("log1p", lit(0.5)), elem("p0", var("i")))
    value = op("add", op("fmod", value, lit(0.25)), op("cast", op("exp", lit(0.5, "f")), dtype="d"))
    x, out = np.linspace(0, 1, 100), np.empty(100)
    run(flat((k.Store("p1", at(var("i")), value),), (F8, "r"), (F8, "w")), [100], [x, out], [100])
    np.testing.assert_allclose(out, np.fmod(np.log1p(0.5) ** x, 0.25) + np.exp(np.float32(0.5)), 1e-14)


def test_vector_functions_in_loops_of_mixed_types() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal(333).astype("f"), rng.standard_normal(333)
    single = op("exp", elem("p0", var("i"), dtype="f"))
    value = op("add", op("cast", single, dtype="d"), op("exp", elem("p1", var("i"))))
    kernel = flat((k.Store("p2", at(var("i")), value),), ("f", "r"), (F8, "r"), (F8, "w"))
    out = np.empty(333)
    run(kernel, [333], [x, y, out], [333])
    np.testing.assert_allclose(out, np.exp(x).astype("d") + np.exp(y), 1e-6)
    text = engine.optimised(CPU.emit(kernel))
    assert "call <" in text or not engine.machine().vector_math


def test_other_machines() -> None:
    """The emitter serves processors without vector math, and says what it cannot do."""
    x = (k.Store("p1", at(var("i")), op("exp", elem("p0", var("i")))),)
    kernel = flat(x, (F8, "r"), (F8, "w"))
    plain = emit(kernel, engine.Machine())
    assert "@exp(double" in plain and "_ZGV" not in plain
    launch = CPU.load(kernel, CPU.compile(plain))
    a, out = np.linspace(-3, 3, 37), np.empty(37)
    launch(launch.pack(37, 1, a.ctypes.data, out.ctypes.data, 37), 1)
    np.testing.assert_allclose(out, np.exp(a), 1e-15)
    half = flat(
        (k.Store("p1", at(var("i")), op("sqrt", elem("p0", var("i"), dtype="e"))),), ("e", "r"), ("e", "w")
    )
    with pytest.raises(Unsupported, match="float16"):
        emit(half, engine.Machine())


def test_what_llvm_refuses_is_unsupported() -> None:
    with pytest.raises(Unsupported):
        CPU.compile("not LLVM text")
    kernel = flat((k.Store("p0", at(var("i")), lit(1.0)),), (F8, "w"))
    with pytest.raises(Unsupported):
        CPU.load(kernel, b"not object code")


def test_an_unknown_function_is_unsupported() -> None:
    body = "define void @phase0() { call void @no_such_function() ret void }"
    with pytest.raises(Unsupported, match="no_such_function"):
        CPU.compile("declare void @no_such_function()\n" + body)


@pytest.mark.parametrize("bits", [128, 256, 512])
@pytest.mark.parametrize("dtype", ["?", "e", "f", "d", "D"])
def test_tiles_are_transposed(dtype: str, bits: int) -> None:
    kind = np.dtype(dtype)
    sizes = at(k.Term(1, "n0")), at(k.Term(1, "n1"))
    turn = k.TransposeTile("p1", at(var("i")), at(k.Term(1, "n3")), "p0", at(), at(k.Term(1, "n2")),
                  sizes[:1], (sizes[1], at(const=1000)), kind)  # fmt: skip
    kernel = k.Kernel(buffers((kind, "r"), (kind, "w")), ("n0", "n1", "n2", "n3"),
                      (k.Phase("i", at(const=1), "serial", (turn,)),))  # fmt: skip
    machine = dataclasses.replace(engine.machine(), vector_bits=bits)
    launch = CPU.load(kernel, CPU.compile(emit(kernel, machine)))
    rng = np.random.default_rng(1)
    for rows, cols in [(1, 1), (2, 3), (8, 8), (16, 32), (33, 17), (5, 40), (64, 7)]:
        a = rng.integers(0, 2, (rows, cols + 3)).astype(kind)
        b = np.zeros((cols, rows + 5), kind)
        sizes_ = rows, cols, a.shape[1], b.shape[1]
        launch(launch.pack(1, 1, a.ctypes.data, b.ctypes.data, *sizes_), 1)
        np.testing.assert_array_equal(b[:, :rows], a[:, :cols].T)
        assert not b[:, rows:].any()
