"""Process networks give the interpreter's results with bounded FIFOs, and their depths are the least."""

from dataclasses import replace

import numpy as np
import pytest
from process_cycles import Deadlock, simulate

from dcarray.ir import interp
from dcarray.ir.parse import parse
from dcarray.ir.verify import verify as verify_region
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.hls.network.compose import compose
from dcarray.lowering.hls.network.nodes import NetworkError, Work, verify
from dcarray.lowering.hls.network.text import dump
from tests.support.ir_regions import assert_agree, make_case
from tests.support.stencil_chains import memory_of, stencil_chain, with_depth


def agrees(region, network):
    memory = memory_of(region)
    got = simulate(network, memory).arrays
    want = interp.run(region, {name: array.copy() for name, array in memory.items()})
    for name, array in want.items():
        np.testing.assert_array_equal(got[name], array, err_msg=name)


@pytest.mark.parametrize("first", range(0, 120, 30))
def test_random_regions_agree_with_the_interpreter(first):
    for seed in range(first, first + 30):
        case = make_case(seed, control=False, calls=False, aliases=False, dtypes="ddlli?fB")
        try:
            network = compose(case.region)
        except Unsupported as refused:
            assert "computes with complex" in str(refused)
            continue
        with np.errstate(all="ignore"):
            got = simulate(network, case.memory()).arrays
            want = interp.run(case.region, case.memory())
        assert_agree(got, want, zero_signs=False, rtol=1e-12)


@pytest.mark.parametrize("first", range(0, 60, 15))
def test_chains_of_stencils_stream_in_one_stage_and_agree(first):
    for seed in range(first, first + 15):
        region = stencil_chain(seed)
        verify_region(region)
        network = compose(region)
        assert len(network.stages) <= 1 and not network.reasons, dump(network)
        agrees(region, network)


def test_less_depth_is_a_deadlock_or_stalls():
    """Half of the depth of any FIFO costs cycles, or the network never ends; so does one place less."""
    deadlocks = stalls = 0
    for seed in range(40):
        region = stencil_chain(seed)
        network, memory = compose(region), memory_of(region)
        cycles = simulate(network, memory).cycles
        for fifo in [f for stage in network.stages for f in stage.fifos if f.depth > 1]:
            for depth in {fifo.depth // 2, fifo.depth - 1}:
                try:
                    less = simulate(with_depth(network, fifo.name, depth), memory)
                except Deadlock as found:
                    assert f"fifo {fifo.name} holds" in str(found)
                    deadlocks += 1
                else:
                    assert less.cycles > cycles, (seed, fifo)
                    stalls += 1
    assert deadlocks > 30 and stalls > 30


def test_the_longer_way_round_has_the_depth_of_the_line_buffer():
    """What a stencil reads ahead waits on the other way from its input to where both meet."""
    region = parse(
        """region() {
          in A: f64[20, 30];  out B: f64[18, 28];  temp t: f64[18, 28]
          t[i,j] = add(A[i,j+1], A[i+2,j+1]) for i<18, j<28
          B[i,j] = subtract(t[i,j], A[i+1,j+1]) for i<18, j<28
        }"""
    )
    (stage,) = compose(region).stages
    work = next(process for process in stage.processes if isinstance(process, Work))
    assert work.inputs[0].length == 2 * 30 + 1
    depths = {fifo.name: fifo.depth for fifo in stage.fifos}
    # t[i,j] needs A[i+2,j+1], a row behind A[i+1,j+1]; a tick each for the process and the FIFO between
    assert depths.pop("s_read_A_0_1") == 30 + 2
    assert set(depths.values()) == {1}
    agrees(region, compose(region))


@pytest.mark.parametrize(("statement", "reason"), [
    ("B[i,j] = t[j,i] for i<6, j<6", "axes of the statement are not those of the array in their order"),
    ("B[i,j] = t[-i+5,j] for i<6, j<6", "axis 0 is used with stride -1"),
    ("B[i,j] = t[0,j] for i<6, j<6", "axes of the statement are not those"),
])  # fmt: skip
def test_other_orders_go_through_memory_with_the_reason(statement, reason):
    region = parse(
        f"""region() {{
          in A: i64[6, 6];  out B: i64[6, 6];  temp t: i64[6, 6]
          t[i,j] = negative(A[i,j]) for i<6, j<6
          {statement}
        }}"""
    )
    network = compose(region)
    assert len(network.stages) == 2
    ((number, name, why),) = network.reasons
    assert (number, name) == (1, "t") and reason in why
    agrees(region, network)


@pytest.mark.parametrize(("text", "message"), [
    ("region() { in A: c128[4];  out B: c128[4]\n B[i] = negative(A[i]) for i<4 }", "A is complex128"),
    ("region() { in A: f16[4];  out B: f16[4]\n B[i] = negative(A[i]) for i<4 }", "A is float16"),
    ("region(N: int>=1) { in A: f64[N]; out B: f64[N]\n B[i] = A[i] for i<N }", "N is not known"),
    (
        "region() { in A: i64[4];  out B: i64[4]\n if A[0] {\n call comm.reduce(A) -> B\n } }",
        "calls comm.reduce, which has no process",
    ),
])  # fmt: skip
def test_what_has_no_network_is_an_error_that_names_it(text, message):
    with pytest.raises(Unsupported, match=message):
        compose(parse(text))


def test_what_a_fold_starts_from_is_addressed_though_its_body_streams_it():
    region = parse(
        """region() {
          in A: i64[4];  out s: i64[4]
          s[i] maximum= negative(A[i]) init A[i] for i<4
        }"""
    )
    network = compose(region)
    assert (0, "A", "it is where a fold starts") in network.reasons
    agrees(region, network)


def test_the_verifier_finds_what_is_wrong():
    network = compose(stencil_chain(1))
    stage = network.stages[0]
    with pytest.raises(NetworkError, match="holds nothing"):
        verify(with_depth(network, stage.fifos[0].name, 0))
    with pytest.raises(NetworkError, match="before it is sent"):
        verify(replace(network, stages=(replace(stage, processes=stage.processes[::-1]),)))
    with pytest.raises(NetworkError, match="before it is sent"):
        verify(replace(network, stages=(replace(stage, processes=stage.processes * 2),)))
    with pytest.raises(NetworkError, match="a second time"):
        verify(replace(network, stages=(stage, stage)))
    for process in stage.processes:
        if isinstance(process, Work) and process.inputs:
            short = replace(process, inputs=tuple(replace(i, lead=i.tail - 1) for i in process.inputs))
            changed = tuple(short if p is process else p for p in stage.processes)
            with pytest.raises(NetworkError, match="which it does not hold"):
                verify(replace(network, stages=(replace(stage, processes=changed),)))
