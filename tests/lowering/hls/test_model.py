"""The analytic model of process networks: its cycles are those of the simulator."""

import numpy as np
import pytest
from process_cycles import simulate

from dcarray.ir.parse import parse
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.hls.model.costs import memory, multiplier
from dcarray.lowering.hls.model.model import model
from dcarray.lowering.hls.network.compose import compose
from dcarray.lowering.hls.network.folds import LANES
from tests.support.ir_regions import make_case
from tests.support.stencil_chains import memory_of, stencil_chain


def stages(network, memory):
    """For each stage what the simulator counts, and its model."""
    with np.errstate(all="ignore"):
        counted = simulate(network, memory).cycles
    return list(zip(counted, model(network).stages, strict=True))


def test_cycles_of_chains_of_stencils_are_those_of_the_simulator():
    """Where streams of several rasters meet a process may wait in between: there the model has too few."""
    exact = total = 0
    for seed in range(60):
        network = compose(stencil_chain(seed))
        for counted, stage in stages(network, memory_of(network.region)):
            assert counted * 0.85 <= stage.cycles <= counted <= stage.latency
            exact += counted == stage.cycles
            total += 1
    assert exact > 0.85 * total and total > 50


def test_cycles_of_random_regions_are_those_of_the_simulator():
    """The simulator begins an iteration each cycle; where the model says that this is possible they agree."""
    compared = 0
    for seed in range(60):
        case = make_case(seed, control=False, calls=False, aliases=False, dtypes="ddlli?fB")
        try:
            network = compose(case.region)
        except Unsupported:
            continue
        for counted, stage in stages(network, case.memory()):
            if all(process.interval == 1 for process in stage.processes):
                assert counted * 0.9 <= stage.cycles <= counted
                compared += 1
    assert compared > 40


JACOBI = """region() {
  in A: f64[40, 50];  out B: f64[40, 50];  in C: f64[]
  B[i,j] = A[i,j] for i<40, j<50
  B[i+1,j+1] = multiply(C[], add(add(A[i,j+1], A[i+2,j+1]), add(A[i+1,j], A[i+1,j+2]))) for i<38, j<48
}"""


def test_a_stencil_reads_and_writes_memory_once_and_has_its_line_buffer():
    network = compose(parse(JACOBI))
    found = model(network)
    assert found.bytes_read == 40 * 50 * 8 + 8 and found.bytes_written == 40 * 50 * 8
    assert found.interval == 1
    assert 40 * 50 < found.cycles < 40 * 50 + 4 * 50 < found.latency + 2 * 50 < found.cycles + 1000
    step = next(process for process in found.processes if process.name == "compute_1")
    assert step.cost.dsp == 3 * 3 + 8  # three additions and a multiplication
    assert step.latency == 7 + 7 + 7
    assert step.cost.lut > 64 * 100 // 32  # two rows of 64 bits, 32 of them in a LUT


@pytest.mark.parametrize(("statement", "interval", "why"), [
    ("s[] add= A[i] init 0.0 for i<99", 1, ""),
    ("s[] maximum= A[i] init 0.0 for i<99", 2, "maximum takes 2 cycles"),
    ("B[i] = add(A[-i+98], multiply(A[i], A[98])) for i<99", 1, ""),
    ("B[i] = add(A[-i+98], A[-98*i+98*98]) for i<1", 2, "2 elements of A come through one port"),
])  # fmt: skip
def test_intervals_have_their_reasons(statement, interval, why):
    region = parse(f"region() {{ in A: f64[9605];  out B: f64[99];  out s: f64[]\n {statement} }}")
    work = next(process for process in model(compose(region)).processes if process.kind == "compute")
    assert (work.interval, work.why) == (interval, why)


def test_a_sum_adds_to_as_many_accumulators_as_an_addition_takes():
    region = parse("region() { in A: f64[500];  out s: f64[]\n s[] add= A[i] init 0.0 for i<500 }")
    (stage,) = model(compose(region)).stages
    work = stage.processes[1]
    assert work.interval == 1 and work.iterations == 501
    assert stage.latency > stage.cycles + 7 * LANES


def test_memories_and_multipliers():
    assert memory(2, 64).bram == 0 and memory(512, 36).bram == 1 and memory(512, 72).bram == 2
    assert memory(513, 36).bram == 2 and memory(16384, 1).bram == 1
    assert [multiplier(bits).dsp for bits in (8, 16, 32, 64)] == [0, 1, 3, 10]
