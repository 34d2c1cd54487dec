"""Library calls on CUDA devices: they get views of device memory, and nothing comes to the host."""

from typing import Any

import numpy as np
import pytest
from cuda_runs import Machine, machine, needs_gxx

import dcarray as dc
from dcarray.ir import interp
from dcarray.ir.parse import parse
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.gpu import devices
from dcarray.lowering.program.loaded_plan import deserialised
from dcarray.lowering.program.serialise import serialised

__all__ = ["machine"]

SPLIT = """region(N: int>=1) {
  in a: f64[N, N];  temp t: f64[N, N];  temp u: f64[N, N];  temp v: f64[N, N]
  out o: f64[N, N];  out p: f64[N, N]
  t[i,j] = add(a[i,j], 1.0) for i<N, j<N
  u[i,j] = multiply(t[i,j], t[j,i]) for i<N, j<N
  call blas.matmul(u, t) -> v
  o[i,j] = multiply(v[i,j], v[j,i]) for i<N, j<N
  p[i,j] = add(o[i,j], o[j,i]) for i<N, j<N
}"""


@needs_gxx
def test_a_product_is_a_call_between_two_graphs(machine: Machine) -> None:
    plan = compile_region(parse(SPLIT), "cuda")
    assert plan.stats["calls"] == 1 and plan.stats["kernels"] == 4
    for n in (7, 40):
        memory = {"a": np.random.default_rng(n).random((n, n))}
        downloads = machine.downloads
        machine.run(plan, parse(SPLIT), memory, {"N": n})
        assert machine.downloads == downloads + 3  # of the arguments, when all is done
        t = memory["a"] + 1
        v = (t * t.T) @ t
        np.testing.assert_array_equal(memory["o"], v * v.T)
        np.testing.assert_array_equal(memory["p"], v * v.T + (v * v.T).T)
    assert machine.cupy.log == ["matmul"] * 2
    assert machine.core.launches == 4 and machine.core.instantiations == 2


@pytest.mark.parametrize("call, shapes", [
    ("call blas.matmul(a, b) -> o", {"a": (3, 4), "b": (4, 5), "o": (3, 5)}),
    ("call blas.matmul(a[j,i for i<4, j<3], b) -> o", {"a": (3, 4), "b": (3, 5), "o": (4, 5)}),
    ("call blas.matmul(a, b) -> o[j,i for i<3, j<5]", {"a": (3, 4), "b": (4, 5), "o": (5, 3)}),
    ("call blas.matmul(a[i+1,j+2 for i<2, j<2], b[j,i+1 for i<2, j<3]) -> o[i+1,j+1 for i<2, j<3]",
     {"a": (3, 4), "b": (4, 5), "o": (5, 5)}),
    ("call blas.matmul(a[2-i,2*j+1 for i<3, j<2], b[i+1,j for i<2, j<5]) -> o[i+1,j for i<3, j<5]",
     {"a": (3, 4), "b": (4, 5), "o": (5, 5)}),
    ("call blas.matmul(a, b) -> o", {"a": (2, 3, 4), "b": (4, 5), "o": (2, 3, 5)}),
    ("call blas.matmul(a, b) -> o", {"a": (2, 3, 1, 4), "b": (4, 5), "o": (2, 3, 1, 5)}),
    ("call blas.matmul(a, b) -> o", {"a": (2, 3, 4), "b": (2, 4, 5), "o": (2, 3, 5)}),
    ("call blas.matmul(a, b) -> o", {"a": (3, 4), "b": (2, 4, 5), "o": (2, 3, 5)}),
    ("call blas.matmul(a, b) -> o", {"a": (6, 2, 3, 4), "b": (6, 2, 4, 1), "o": (6, 2, 3, 1)}),
    ("call blas.matmul(a, b) -> o", {"a": (3, 4), "b": (4,), "o": (3,)}),
    ("call blas.matmul(a, b) -> o", {"a": (3,), "b": (3, 4), "o": (4,)}),
    ("call blas.matmul(a[j,i for i<4, j<3], b[2*i for i<3]) -> o[2*i+1 for i<4]",
     {"a": (3, 4), "b": (6,), "o": (9,)}),
    ("call blas.matmul(a, b) -> o", {"a": (1, 4), "b": (4, 3), "o": (1, 3)}),
    ("call blas.matmul(a, b) -> o", {"a": (4,), "b": (4,), "o": ()}),
    ("call blas.matmul(a, b) -> a", {"a": (4, 4), "b": (4, 4)}),
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["f32", "c128"])
def test_products_of_views(
    machine: Machine, call: str, shapes: dict[str, tuple[int, ...]], dtype: str
) -> None:
    roles = {"a": "inout" if "-> a" in call else "in", "b": "in", "o": "inout"}
    declared = ";  ".join(f"{roles[name]} {name}: {dtype}{list(shape)}" for name, shape in shapes.items())
    region = parse(f"region() {{\n  {declared}\n  {call}\n}}")
    plan = compile_region(region, "cuda")
    assert plan.stats == {"kernels": 0, "calls": 1, "interpreted": 0}
    rng = np.random.default_rng(1)
    kind = {"f32": np.float32, "c128": np.complex128}[dtype]
    memory = {name: rng.integers(-9, 9, shape).astype(kind) for name, shape in shapes.items()}
    want = {name: array.copy() for name, array in memory.items()}
    interp.run(region, want)
    machine.run(plan, region, memory, {})
    for name in shapes:
        np.testing.assert_array_equal(memory[name], want[name])
    assert machine.cupy.log == ["matmul"]


@needs_gxx
@pytest.mark.parametrize("accelerated", [False, True])
def test_programs_that_add_products(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, accelerated: bool
) -> None:
    def program(a: Any, b: Any, c: Any, alpha: float, beta: float) -> None:
        c[:] = alpha * a @ b + beta * c
        c[1:] -= a[1:] @ b
        a += a @ np.ones((70, 70))  # one of its own factors
        c[:] = np.maximum(a @ b + c, 0)

    monkeypatch.setitem(devices._found, "cuda", [machine.device])
    rng = np.random.default_rng(0)
    given = [rng.integers(-4, 4, shape) * 1.0 for shape in ((60, 70), (70, 80), (60, 80))]
    arrays = [dc.asarray(x, device="cuda:0") for x in given]
    with dc.options(jit="eager", eager_below=0, cache_dir=None):
        for beta in (0.5, 0.5, 0.0):
            machine.cupy.log.clear()
            given[2][0, 0] = arrays[2][0, 0] = np.nan
            program(*given, 2.0, beta)
            (dc.accelerate(program) if accelerated else program)(*arrays, 2.0, beta)
            for x, want in zip(arrays, given, strict=True):
                np.testing.assert_array_equal(np.asarray(x), want)
            assert machine.cupy.log.count("matmul") == 4


def test_a_plan_with_a_library_call_is_loaded_in_another_process(machine: Machine) -> None:
    text = "region() {\n  in a: f64[3, 3];  out o: f64[3, 3]\n  call blas.matmul(a, a) -> o\n}"
    plan = deserialised(serialised(compile_region(parse(text), "cuda"), []))
    source, target = machine.device.allocate(72), machine.device.allocate(72)
    a, o = np.arange(9.0).reshape(3, 3), np.empty((3, 3))
    machine.device.upload(a, source)
    plan.run([], [source, target], (), machine.device)
    machine.device.download(target, o)
    np.testing.assert_array_equal(o, a @ a)


def test_integers_are_multiplied_by_a_kernel() -> None:
    text = "region() {\n  in a: i64[3, 3];  out o: i64[3, 3]\n  call blas.matmul(a, a) -> o\n}"
    assert compile_region(parse(text), "cuda").stats == {"kernels": 1, "calls": 0, "interpreted": 0}
