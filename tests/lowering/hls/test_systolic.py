"""Products of matrices by a row of processing elements."""

import random

import numpy as np
import pytest
from process_cycles import Deadlock, simulate

from dcarray.ir import interp
from dcarray.ir.parse import parse
from dcarray.lowering.hls.model.model import model
from dcarray.lowering.hls.network.compose import compose
from dcarray.lowering.hls.network.systolic_products import Element
from dcarray.lowering.hls.network.text import dump
from dcarray.lowering.hls.simulation.csim import INTEL, VITIS, Simulation
from tests.support.stencil_chains import memory_of, with_depth

ELEMENTS = (1, 4, 32)


def product(seed):
    """A product of matrices, vectors or stacks, whole or parts of arrays, transposed or not."""
    rng = random.Random(seed)
    kind = rng.choice(["f64", "f32", "i64", "u8"])
    n, k, m = (rng.choice([1, 2, 5, 9, 17, 20]) for _ in range(3))
    stack = rng.choice([(), (), (2,), (3, 2)])
    left = stack[rng.randint(0, len(stack)) :]
    right = stack if len(left) < len(stack) else rng.choice([stack, (1,) * len(stack), stack[1:]])
    a, b, c = (*left, n, k), (*right, k, m), (*stack, n, m)
    first = "A"
    if rng.random() < 0.2 and not stack:
        a, c = (k,), (m,)
    elif rng.random() < 0.3 and not stack:
        first, a = f"A[j,i for i<{n}, j<{k}]", (k, n)
    result, shape = "C", c
    if rng.random() < 0.4:
        shape = (*c[:-1], c[-1] + 2)
        axes = "ijkl"[: len(c)]
        domain = ", ".join(f"{axis}<{count}" for axis, count in zip(axes, c, strict=True))
        result = f"C[{','.join([*axes[:-1], axes[-1] + '+1'])} for {domain}]"
    role = "inout" if shape != c else "out"
    lines = [f"in A: {kind}{list(a)}", f"in B: {kind}{list(b)}", f"{role} C: {kind}{list(shape)}"]
    return parse("\n".join(["region() {", *lines, f"call blas.matmul({first}, B) -> {result}", "}"]))


NETWORKS = [compose(product(seed), elements=ELEMENTS[seed % 3]) for seed in range(24)]


def check(network, got):
    memory = memory_of(network.region)
    want = interp.run(network.region, {name: array.copy() for name, array in memory.items()})
    rtol, atol = (1e-4, 1e-3) if got["C"].dtype == np.float32 else (1e-12, 1e-10)
    np.testing.assert_allclose(got["C"], want["C"], rtol=rtol, atol=atol, err_msg=dump(network))


@pytest.mark.parametrize("language", [VITIS, INTEL], ids=["vitis", "intel"])
def test_random_products(language, tmp_path):
    simulation = Simulation(NETWORKS, tmp_path, language)
    for number, network in enumerate(NETWORKS):
        check(network, simulation.run(number, memory_of(network.region), times=2))


def test_in_the_simulator():
    for network in NETWORKS:
        check(network, simulate(network, memory_of(network.region)).arrays)


def _gemm(elements):
    text = "in A: f64[9, 7]; in B: f64[7, 21]; out C: f64[9, 21]; call blas.matmul(A, B) -> C"
    return compose(parse("region() {\n" + text.replace("; ", "\n") + "\n}"), elements=elements)


@pytest.mark.parametrize("elements", ELEMENTS)
def test_the_model_has_the_cycles_of_the_simulator(elements):
    network = _gemm(elements)
    (cycles,) = simulate(network, memory_of(network.region)).cycles
    assert model(network).cycles == cycles


def test_so_many_processing_elements_take_so_much_less_time():
    cycles = {p: model(_gemm(p)).cycles for p in (1, 4)}
    assert cycles[1] > 2 * cycles[4]
    count = [len([one for one in _gemm(p).stages[0].processes if isinstance(one, Element)]) for p in ELEMENTS]
    assert count == [1, 4, 9]  # no more than rows


def test_half_the_depth_between_processing_elements_is_a_deadlock():
    network = _gemm(4)
    deep = [fifo.name for fifo in network.stages[0].fifos if fifo.depth > 1]
    assert len(deep) == 3
    for name in deep:
        with pytest.raises(Deadlock):
            simulate(with_depth(network, name, 1), memory_of(network.region))


def test_no_addition_waits_for_the_one_before_it():
    network = _gemm(4)
    assert "DEPENDENCE variable=acc type=inter direction=RAW distance=16 true" in VITIS.kernel(network, "k")
    assert "#pragma ivdep array(acc) safelen(16)" in INTEL.kernel(network, "k")
