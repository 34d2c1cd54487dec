"""Streams of several elements at a time: right, as deep as needed, and one vector a cycle."""

import numpy as np
import pytest
from process_cycles import simulate

from dcarray.ir import interp
from dcarray.ir.parse import parse
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.hls.model.model import model
from dcarray.lowering.hls.network.compose import compose
from dcarray.lowering.hls.network.text import dump
from dcarray.lowering.hls.simulation.csim import INTEL, VITIS, Simulation
from dcarray.lowering.hls.verilog import emit as verilog
from tests.support.ir_regions import assert_agree, make_case
from tests.support.stencil_chains import memory_of, stencil_chain

FOLDS = """region() {
  in A: f64[6, 16];  in F: f32[32];  in K: i64[6, 16]
  in G: f32[3, 20, 8];  out c: f64[13];  out d: i64[16];  out e: f32[3, 8]
  out s: f64[];  out m: f64[6];  out p: f32[];  out k: i64[6];  out low: f64[]
  s[] add= A[i,j] init 0.5 for i<6, j<16
  m[i] maximum= A[i,j+1] init -9.0 for i<6, j<14
  p[] multiply= F[i+1] init 1.0:f32 for i<30
  k[i] bitwise_and= K[i,j] init 255 for i<6, j<16
  low[] minimum= A[i+1,j+3] init 4.0 for i<4, j<9
  c[j] add= A[i,j+1] init 0.25 for i<6, j<13
  d[j] maximum= K[i,j] init -3 for i<6, j<16
  e[i,k] add= multiply(G[i,j,k], G[i,j,k]) init 0.0 for i<3, j<20, k<8
}"""
INTEGERS = np.dtype("i8"), np.dtype("i4"), np.dtype("u1")


def widths(network):
    return {fifo.width for stage in network.stages for fifo in stage.fifos}


def expected(network, memory):
    return interp.run(network.region, {name: array.copy() for name, array in memory.items()})


@pytest.mark.parametrize("width", [2, 4, 8])
def test_chains_of_stencils_agree_and_take_a_vector_a_cycle(width):
    """Cycles are those of the model, and about as many times fewer as there are elements at a time."""
    wide = 0
    for seed in range(25):
        region = stencil_chain(seed, width=width, dtype=INTEGERS[seed % 3])
        network = compose(region, width=width)
        memory = memory_of(region)
        got = simulate(network, memory)
        for name, array in expected(network, memory).items():
            np.testing.assert_array_equal(got.arrays[name], array, err_msg=f"{seed} {name}\n{dump(network)}")
        if not network.stages or max(widths(network)) < width:
            assert not network.stages or network.stages[0].narrow
            continue
        wide += 1
        (cycles,), (stage,) = got.cycles, model(network).stages
        assert cycles * 0.85 <= stage.cycles <= cycles
        (single,) = simulate(compose(region), memory).cycles
        assert cycles < single / width * 1.35 + 25
    assert wide > 12


@pytest.fixture(scope="module", params=[VITIS, INTEL], ids=["vitis", "intel"])
def compiled(request, tmp_path_factory):
    networks = [compose(stencil_chain(seed, width=4), width=4) for seed in range(14)]
    networks += [compose(parse(FOLDS), width=width) for width in (1, 2, 8)]
    memories = [memory_of(network.region) for network in networks]
    for seed in range(16):
        case = make_case(seed, control=False, calls=False, aliases=False, numpy_bits=False, dtypes="ddlli?fB")
        try:
            network = compose(case.region, width=8)
            request.param.kernel(network, "kernel")
        except Unsupported:
            continue
        networks.append(network)
        memories.append(case.memory())
    return Simulation(networks, tmp_path_factory.mktemp("widths"), request.param), memories


def test_kernels_agree(compiled):
    wide = 0
    simulation, memories = compiled
    for number, (network, memory) in enumerate(zip(simulation.networks, memories, strict=True)):
        with np.errstate(all="ignore"):
            want = expected(network, memory)
        for times in (1, 2):  # autorun kernels begin again as they did
            assert_agree(simulation.run(number, memory, times), want, zero_signs=False, rtol=1e-6)
        wide += max(widths(network), default=1) > 1
    assert wide > 12


def test_folds_join_the_elements_of_a_vector_first():
    network = compose(parse(FOLDS), width=8)
    assert widths(network) == {1, 8}
    memory = memory_of(network.region)
    assert_agree(simulate(network, memory).arrays, expected(network, memory), rtol=1e-6)
    text = VITIS.kernel(network, "k")
    assert "typedef struct { double v[8]; } float64x8;" in text
    assert text.count("float64x8 acc[2][16];") == 1 and "float32x8 acc[3][16];" in text
    assert "int64x8 acc[2][1];" in text and "acc[x0 * 1 + h2][lane].v[j]" in text
    assert "part = -INFINITY;" in text or "part = bits_float64" in text
    assert "v.v[j] = A_0[i * 8 + j];" in text


@pytest.mark.parametrize(("text", "reason"), [
    ("B[i,j] = A[i,j] for i<4, j<16", None),
    ("B[i,j] = add(A[i,j], V[i]) for i<4, j<16", None),
    ("B[i,j] = add(A[i,j], W[j]) for i<4, j<16", None),
    ("V[i] = L[i,-i+7] for i<4", "elements of L come through one port"),
    ("B[-i+3,j] = A[i,j] for i<4, j<16", "elements of B are not stored one after the other"),
    ("N[i] = R[i] for i<14", "rows of R have 14 elements, which is no multiple of 4"),
    ("W[j] add= A[i,j] for i<4, j<16", None),
    ("V[i] fmax= A[i,j] for i<4, j<16", "fmax has no neutral element"),
])  # fmt: skip
def test_why_streams_are_narrow(text, reason):
    region = parse(
        "region() { in A: f64[4, 16];  inout V: f64[4];  inout W: f64[16];  in R: f64[14]\n"
        f"inout N: f64[14];  inout B: f64[4, 16];  in L: f64[4, 5000]\n {text} }}"
    )
    network = compose(region, width=4)
    found = [why for stage in network.stages for why in stage.narrow]
    assert (found == []) if reason is None else any(reason in why for why in found), found
    memory = memory_of(region)
    assert_agree(simulate(network, memory).arrays, expected(network, memory), rtol=1e-12)


def test_a_port_is_512_bits_wide():
    network = compose(parse("region() { in A: f64[64];  out B: f64[64]\n B[i] = A[i] for i<64 }"), width=16)
    assert widths(network) == {8} and not network.stages[0].narrow
    with pytest.raises(Unsupported, match="one element at a time"):
        verilog.emit(
            compose(parse("region() { in A: i64[64];  out B: i64[64]\n B[i] = A[i] for i<64 }"), width=2), "k"
        )
