"""The text of device kernels: the type of indices, and branches of whole blocks at the end of a phase."""

import numpy as np
import pytest
from devices import needs_opencl
from kernel_machine import Machine

from dcarray.lowering.c_family.device_kernels import emit
from dcarray.lowering.gpu import devices
from dcarray.lowering.gpu.cuda.dialect import CUDA
from dcarray.lowering.gpu.kernels import DeviceKernel
from dcarray.lowering.gpu.opencl.dialect import OPENCL_C
from dcarray.lowering.kernel import nodes as k
from dcarray.lowering.kernel.affine import Term, affine
from dcarray.lowering.kernel.verify import check

F8, I8, TRUTH = np.dtype("f8"), np.dtype("i8"), np.dtype("?")
SIDE, THREADS = 8, 64
ROWS, COLUMNS, DOWN = (affine(0, Term(1, name)) for name in ("n0", "n1", "n3"))


def var(name: str, coef: int = 1) -> Term:
    return Term(coef, None, name)


def integer(value: int) -> k.Lit:
    return k.Lit(np.int64(value).tobytes(), I8)


def inside(row: Term | int, column: Term | int) -> k.Expr:
    """Whether an element of a block's tile is in the array."""
    at = affine(0, var("q", SIDE), row) if isinstance(row, Term) else affine(row, var("q", SIDE))
    to = affine(0, var("r", SIDE), column) if isinstance(column, Term) else affine(column, var("r", SIDE))
    rows = k.Op("less", (k.Index(at), k.Index(ROWS)), TRUTH)
    return k.Op("logical_and", (rows, k.Op("less", (k.Index(to), k.Index(COLUMNS)), TRUTH)), TRUTH)


def threads(suffix: str, numbered: bool, guarded: bool) -> k.Threads:
    """The threads of a block, whose names end in ``suffix``."""
    lane, x, y = (name + suffix for name in "txy")
    at = affine(0, Term(SIDE, "n1", "q"), Term(1, "n1", y), var("r", SIDE), var(x))
    value: k.Expr = k.Op("multiply", (k.Elem("p0", at, F8), k.Lit(np.float64(2).tobytes(), F8)), F8)
    if numbered:
        value = k.Op("add", (value, k.Op("cast", (k.Local("q", I8),), F8)), F8)
    store = k.Store("p1", at, value)
    body = (
        k.Let(x, k.Op("bitwise_and", (k.Index(affine(0, var(lane))), integer(SIDE - 1)), I8)),
        k.Let(y, k.Op("right_shift", (k.Index(affine(0, var(lane))), integer(3)), I8)),
        k.If(inside(var(y), var(x)), (store,)) if guarded else store,
    )
    return k.Threads(lane, THREADS, body)


def tiles(numbered: bool = False) -> k.Kernel:
    """Twice an array, a tile for each block; ``numbered``: plus the number of the tile's row."""
    row = k.Op("floor_divide", (k.Index(affine(0, var("b"))), k.Index(affine(0, Term(1, "n2")))), I8)
    body = (
        k.Let("q", row),
        k.Let("r", k.Index(affine(0, var("b"), Term(-1, "n2", "q")))),
        k.If(
            inside(SIDE - 1, SIDE - 1),
            (threads("", numbered, guarded=False),),
            (threads("1", numbered, guarded=True),),
        ),
    )
    phase = k.Phase("b", DOWN, "blocks", body, (), THREADS)
    buffers = k.Buffer("p0", F8, "r"), k.Buffer("p1", F8, "w")
    made = k.Kernel(buffers, ("n0", "n1", "n2", "n3"), (phase,))
    check(made)
    return made


def counts(shape: tuple[int, int]) -> tuple[int, int]:
    """The number of tiles down and across."""
    return -(-shape[0] // SIDE), -(-shape[1] // SIDE)


@pytest.mark.parametrize("numbered", [False, True])
@pytest.mark.parametrize("shape", [(16, 24), (17, 23), (3, 100), (1, 1)])
@needs_opencl
def test_tiles_with_a_way_for_whole_blocks(shape: tuple[int, int], numbered: bool) -> None:
    kernel = tiles(numbered)
    a = np.random.default_rng(2).random(shape)
    want = 2 * a + (np.arange(shape[0])[:, None] // SIDE if numbered else 0)
    down, across = counts(shape)
    ints = (*shape, across, down * across)

    slow = np.zeros(a.size)
    binding = k.Binding((k.Pointer("a", 0), k.Pointer("o", 0)), ints, ints[3:], (1,))
    Machine(kernel, binding, {"a": (a.ravel(), 0), "o": (slow, 0)}, {})
    np.testing.assert_array_equal(slow.reshape(shape), want)

    one = devices.get("opencl:0")
    source, target = one.allocate(a.nbytes), one.allocate(a.nbytes)
    one.upload(a, source)
    loaded = DeviceKernel(emit(kernel, OPENCL_C), (THREADS,), (8, 8))
    loaded(one, (down * across,), ((source, 0), (target, 0)), ints)
    fast = np.zeros(shape)
    one.download(target, fast)
    np.testing.assert_array_equal(fast, want)


@pytest.mark.parametrize("dialect", [OPENCL_C, CUDA])
def test_what_is_an_index_alone_has_their_type(dialect: object) -> None:
    text = emit(tiles(), dialect)
    for name in ("q", "r", "x", "y", "x1", "y1"):
        assert f"const index_t {name} = " in text
    assert "int64_t" not in text[text.index("phase0") :].replace("(int64_t)", "")
    numbered = emit(tiles(numbered=True), dialect)
    assert f"const {dialect.type(I8)} q = " in numbered and "const index_t r = " in numbered


@pytest.mark.parametrize("dialect", [OPENCL_C, CUDA])
def test_no_thread_waits_at_the_end(dialect: object) -> None:
    assert dialect.barrier not in emit(tiles(), dialect)
