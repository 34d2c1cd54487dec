"""Specialised kernels, with sizes as constants: the same results as with arguments."""

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_machine import Machine as Slow
from loop_regions import Loops

from dcarray.ir import dims
from dcarray.ir.text import parse
from dcarray.lowering import targets
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.cpu.llvm.emitter.emit import emit
from dcarray.lowering.cpu.llvm.object_code.engine import assembly, machine
from dcarray.lowering.cpu.schedules.scheduler import schedule
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel import nodes as k
from dcarray.lowering.kernel.specialise import specialise
from dcarray.lowering.kernel.text import kernel_text
from dcarray.lowering.kernel.verify import check

CPU = targets.get("cpu")
STENCIL = """
    b[i+1,j+1] = subtract(add(a[i,j+1], multiply(a[i+1,j], a[i+1,j+2])), a[i+2,j+1]) for i<4, j<{n}
"""


def text(n: int, body: str = STENCIL, dtype: str = "f64", width: int = 45) -> str:
    arrays = f"inout a: {dtype}[6, {width}];  inout b: {dtype}[6, {width}]"
    return f"region() {{\n{arrays}\n{body.replace('{n}', str(n))}\n}}"


def run(made: k.Kernel, binding: k.Binding, region: Any, seed: int = 0) -> list[bytes]:
    rng = np.random.default_rng(seed)
    arrays = {a.name: rng.integers(-5, 6, a.shape).astype(a.dtype) for a in region.arrays}
    addresses = []
    for pointer in binding.pointers:
        assert isinstance(pointer, k.Pointer)
        array = arrays[pointer.array]
        addresses.append(array.ctypes.data + pointer.offset * array.itemsize)
    launch = CPU.load(made, CPU.compile(CPU.emit(made)))
    numbers = [n for pair in zip(binding.extents, binding.work, strict=True) for n in pair]
    launch(launch.pack(*numbers, *addresses, *binding.ints), 1)
    return [array.tobytes() for array in arrays.values()]


@pytest.mark.parametrize("dtype", ["f64", "f32", "i16"])
@pytest.mark.parametrize("n", [0, 1, 5, 7, 8, 9, 16, 23, 32, 38, 43])
def test_rows_of_known_lengths(n: int, dtype: str) -> None:
    region = parse(text(n, dtype=dtype))
    plain, binding = schedule(region.body[0], region)
    made, fewer = specialise(plain, binding)
    check(made)
    if n > 1:
        assert len(made.ints) < len(plain.ints) and f".. {n} {{" in kernel_text(made)
    if n:
        assert run(made, fewer, region) == run(plain, binding, region)


def test_how_often_rows_come_is_an_argument() -> None:
    region = parse(text(38))
    made, binding = specialise(*schedule(region.body[0], region))
    assert binding.extents == (4,) and 4 in binding.ints
    assert {term.arg for term in made.phases[0].extent.terms} == set(made.ints)


def test_what_is_not_known_stays() -> None:
    arrays = "inout a: f64[6, N];  inout b: f64[6, N]"
    region = parse(f"region(N: int>=2) {{\n{arrays}\nb[i,j] = negative(a[i,j]) for i<3, j<N-1\n}}")
    plain, binding = schedule(region.body[0], region)
    made, fewer = specialise(plain, binding)
    assert (made, fewer) == (plain, binding) and made is plain


@pytest.mark.skipif(not machine().masks, reason="no vectors under masks")
@pytest.mark.parametrize("n", [3, 8, 11, 38])
def test_no_element_is_alone(n: int) -> None:
    """Short loops of a known length are not unrolled before there are vectors."""
    region = parse(text(n))
    made, _ = specialise(*schedule(region.body[0], region))
    code = assembly(emit(made, machine()))
    assert "vmulpd" in code and "vmulsd" not in code and "vaddsd" not in code
    assert ("{z}" in code) == bool(n % 8)


@pytest.mark.skipif(not machine().masks, reason="no vectors under masks")
@pytest.mark.parametrize("n", [8, 9, 10, 11, 16, 17, 18, 34])
def test_what_is_left_over_has_nothing_of_the_vectors(n: int, capfd: pytest.CaptureFixture[str]) -> None:
    """Of two elements LLVM makes no vector, and says so."""
    region = parse(text(n, "a[i,j] = multiply(b[i,j], add(b[i+1,j], b[i+1,j+1])) for i<4, j<{n}"))
    made, _ = specialise(*schedule(region.body[0], region))
    code = assembly(emit(made, machine()))
    assert "zmm" in code or machine().vector_bits < 512
    assert not capfd.readouterr().err


def test_launched_in_every_turn() -> None:
    """Statements large enough for all cores are launched one by one."""
    loop = "for t in range(0, 3000, 1) {" + STENCIL + STENCIL.replace("b[i", "c[i").replace("a[", "b[") + "}"
    source = text(700, loop.replace("i<4", "i<600"), width=702).replace("[6,", "[602,")
    plan = compile_region(parse(source.replace("{\n", "{\ninout c: f64[602, 702];  ", 1)))
    assert all(".. 700 {" in kernel_text(step.kernel) for step in plan.kernels) and len(plan.kernels) == 2
    once = compile_region(parse(text(38)))
    assert ".. 38 {" not in kernel_text(once.kernels[0].kernel)


@settings(max_examples=12, derandomize=True, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_random_loops(seed: int, symbolic: bool) -> None:
    loops = Loops(random.Random(seed), symbolic=symbolic)
    region, values = loops.region(), loops.values
    with dims.Guards(values), np.errstate(all="ignore"):
        for stmt in region.body:
            try:
                plain, binding = schedule(stmt, region)
            except Unsupported:
                continue
            made, fewer = specialise(plain, binding)
            check(made)
            results = []
            for kernel, bound in ((plain, binding), (made, fewer)):
                rng = np.random.default_rng(seed)
                memory = {}
                for array in region.arrays:
                    shape = [dims.evaluate(n, values) for n in array.shape]
                    flat = rng.integers(-3, 4, shape).astype(array.dtype).reshape(-1)
                    if array.dtype == np.int64 and not shape:
                        flat[...] = 0
                    memory[array.name] = flat if array.base is None else memory[array.base]
                Slow(kernel, bound, {name: (flat, 0) for name, flat in memory.items()}, values)
                results.append({name: flat.tobytes() for name, flat in memory.items()})
            assert results[0] == results[1]
