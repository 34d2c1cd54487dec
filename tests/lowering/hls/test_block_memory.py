"""What lies in block memory: long line buffers, and small arrays that are used in any order."""

import random

import numpy as np
import pytest
from process_cycles import simulate

from dcarray.ir import interp
from dcarray.ir.parse import parse
from dcarray.lowering.hls.model.model import model
from dcarray.lowering.hls.network.compose import compose
from dcarray.lowering.hls.network.line_buffers import parts
from dcarray.lowering.hls.network.nodes import Work
from dcarray.lowering.hls.simulation.csim import INTEL, VITIS, Simulation
from tests.support.stencil_chains import memory_of

TABLES = """region() {{
  in A: f64[{rows}, {columns}];  in W: f64[{columns}];  in V: i64[7];  in K: i64[{rows}, {columns}]
  in T: f64[3, 5];  out B: f64[{rows}, {columns}];  out C: i64[{rows}, {columns}];  out s: f64[]
  B[i,j] = add(multiply(A[i,j], W[j]), multiply(W[-j+{last}], T[1,2])) for i<{rows}, j<{columns}
  C[i,j] = add(gather(V, K[i,j]), gather(V, remainder(add(K[i,j], 3), 7))) for i<{rows}, j<{columns}
  s[] add= multiply(A[i,j], gather(T, 2, minimum(K[i,j], 4))) init 0.0 for i<{rows}, j<{columns}
}}"""


def table_region(rows, columns):
    region = parse(TABLES.format(rows=rows, columns=columns, last=columns - 1))
    memory = memory_of(region)
    memory["K"] = np.random.default_rng(0).integers(0, 7, (rows, columns))
    return region, memory


def far_stencil(seed, columns):
    """A sum of elements that are rows apart, of which some are tapped side by side."""
    rng = random.Random(seed)
    taps = [(rng.randint(0, 3), rng.randint(0, 2)) for _ in range(rng.randint(2, 4))]
    value = f"A[i+{taps[0][0]},j+{taps[0][1]}]"
    for row, column in taps[1:]:
        value = f"subtract({value}, A[i+{row},j+{column}])"
    text = f"B[i+2,j+1] = add({value}, B[i+2,j+1]) for i<5, j<{columns - 2}"
    return parse(f"region() {{ in A: i32[8, {columns}];  inout B: i32[8, {columns}]\n {text} }}")


def agrees(got, region, memory):
    want = interp.run(region, {name: array.copy() for name, array in memory.items()})
    for name, array in want.items():
        np.testing.assert_allclose(got[name], array, rtol=1e-12, err_msg=name)


@pytest.fixture(scope="module", params=[VITIS, INTEL], ids=["vitis", "intel"])
def compiled(request, tmp_path_factory):
    cases = [(*table_region(rows, columns), width) for rows, columns in ((3, 8), (9, 16)) for width in (1, 4)]
    for seed in range(12):
        region = far_stencil(seed, (72, 200, 320)[seed % 3])
        cases.append((region, memory_of(region), (1, 2, 4)[seed // 4]))
    networks = [compose(region, width=width) for region, _, width in cases]
    return Simulation(networks, tmp_path_factory.mktemp("memory"), request.param), cases


def test_kernels_agree(compiled):
    simulation, cases = compiled
    for number, (region, memory, _) in enumerate(cases):
        for times in (1, 2):
            agrees(simulation.run(number, memory, times), region, memory)


def test_tables_are_read_each_cycle():
    """A table has a port for each load of each lane; without one, elements would come one after the other."""
    region, memory = table_region(9, 16)
    network = compose(region, width=4)
    agrees(simulate(network, memory).arrays, region, memory)
    works = [process for stage in network.stages for process in stage.processes if isinstance(process, Work)]
    assert [work.tables for work in works] == [("W",), ("V",), ("T",)]
    assert {work.width for work in works} == {4} and model(network).interval == 1
    text = VITIS.kernel(network, "k")
    assert "table_W[4][16];" in text and "table_V[4][7];" in text and "table_T[2][15];" in text
    assert "table_W[(4 + j) / 2][" in text and "variable=table_W complete dim=1" in text
    assert "table_W[1][16];" in INTEL.kernel(network, "k")


def test_an_array_that_is_too_large_is_no_table():
    region = parse("region() { in A: f64[90, 90];  out B: f64[90, 90]\n B[i,j] = A[j,i] for i<90, j<90 }")
    (stage,) = compose(region, width=2).stages
    assert stage.processes[0].tables == () and "elements of A come through one port" in stage.narrow[0]


def test_rows_of_a_stencil_lie_in_block_memory():
    region = parse(
        "region() { in A: f64[8, 600];  out B: f64[6, 598]\n"
        " B[i,j] = add(add(A[i,j+1], A[i+2,j+1]), add(A[i+1,j], A[i+1,j+2])) for i<6, j<598 }"
    )
    network = compose(region)
    work = next(process for process in network.stages[0].processes if isinstance(process, Work))
    found = parts(work, work.inputs[0])
    assert found.delays == (598, 598) and found.registers == 5
    assert parts(work, work.inputs[0], None).registers == work.inputs[0].length == 1201
    text = VITIS.kernel(network, "k")
    assert text.count("impl=bram") == 2 and "variable=delay0_0 type=inter direction=RAW distance=598" in text
    assert "delay0_0" not in INTEL.kernel(network, "k")  # its compiler finds them in shift registers
    cost = next(one.cost for one in model(network).processes if one.kind == "compute")
    assert cost.bram >= 4
