"""The text of kernels in OpenCL for Intel's FPGA SDK, and what the host starts."""

import itertools
import math
import random
import re
from dataclasses import replace

import numpy as np
import pytest

from dcarray.ir.parse import parse
from dcarray.lowering.hls.kernels.intel import emit, kernels, runs_by_itself
from dcarray.lowering.hls.network.compose import compose
from dcarray.lowering.hls.network.folds import LANES
from dcarray.lowering.hls.network.nodes import Buffer
from dcarray.lowering.hls.simulation.csim import INTEL, Simulation, as_cpp
from tests.support.fold_regions import SUMS, TWICE
from tests.support.stencil_chains import stencil_chain


def kernel_of(text, name):
    """The text of a kernel, with its attributes and comment."""
    return next(part for part in text.split("\n\n") if f"__kernel void {name}(" in part)


def test_channels_have_the_depths_of_fifos():
    for seed in range(20):
        network = compose(stencil_chain(seed))
        text = emit(network, "chain")
        fifos = [fifo for stage in network.stages for fifo in stage.fifos]
        assert text.count("\nchannel ") == len(fifos)
        for fifo in fifos:
            assert f"channel int64_t chain_{fifo.name} __attribute__((depth({fifo.depth})));" in text


def test_what_touches_no_memory_is_autorun_and_the_host_starts_the_rest_stage_by_stage():
    network = compose(parse(TWICE))
    text, started = emit(network, "twice"), kernels(network, "twice")
    assert [[kernel.name for kernel in stage] for stage in started] == [
        ["twice_read_A_0", "twice_write_s_1"],
        ["twice_read_A_0_stage_1", "twice_compute_1", "twice_write_B_1"],
    ]
    assert started[1][1].arguments == (Buffer("s", 1), Buffer("a0", 0))
    assert "autorun" in kernel_of(text, "twice_compute_0")
    held = kernel_of(text, "twice_compute_1")  # it reads s
    assert "autorun" not in held and "(__global const double *restrict s_1, " in held
    for stage in network.stages:
        for process in stage.processes:
            kernel = kernel_of(text, f"twice_{process.name}")
            assert "max_global_work_dim(0)" in kernel
            assert ("__attribute__((autorun))" in kernel) == runs_by_itself(process) == ("(void)" in kernel)


def test_a_sum_over_all_goes_round_a_shift_register():
    kernel = kernel_of(emit(compose(parse(SUMS)), "sums"), "sums_compute_0")
    assert f"double acc[{LANES + 1}];" in kernel and "acc[j] = acc[j + 1];" in kernel
    assert "not NumPy's order" in kernel and "lane" not in kernel


def test_the_statement_and_its_line_stand_above_its_kernel():
    region = parse(TWICE)
    located = replace(region, body=tuple(replace(stmt, loc="mine.py:7") for stmt in region.body))
    text = emit(compose(located), "twice")
    assert kernel_of(text, "twice_compute_0").startswith("// mine.py:7: s[] maximum= A[i]")
    assert text == emit(compose(located), "twice")


@pytest.mark.parametrize("start", ["init 2.5", ""])
def test_native_accumulation_adds_in_order(start, tmp_path):
    """A device's own accumulator adds one float32 after the other, from 0 on; float64 has lanes as ever."""
    network = compose(
        parse(
            f"""region() {{
              in A: f32[999];  inout s: f32[];  inout d: f64[]
              s[] add= A[i] {start} for i<999
              d[] add= cast:f64(A[i]) init 0.0 for i<999
            }}"""
        )
    )

    def kernel(network, top):
        return as_cpp(emit(network, top, native_accumulation=True))

    text = emit(network, "s", native_accumulation=True)
    assert "acc += next;" in text and f"double acc[{LANES + 1}];" in text
    assert "float acc[" in emit(network, "s")
    values = np.random.default_rng(0).standard_normal(999).astype("f")
    memory = {"A": values, "s": np.array(2.5, "f"), "d": np.zeros(())}
    got = Simulation([network], tmp_path, replace(INTEL, kernel=kernel)).run(0, memory)
    assert got["s"] == np.cumsum(values)[-1] + np.float32(2.5)
    np.testing.assert_allclose(got["d"], values.sum(dtype="d"), rtol=1e-13)


def test_dependences_are_as_far_apart_as_said():
    """No accumulator is used again before so many iterations have passed, and one is just then."""
    rng, seen = random.Random(0), set()
    for _ in range(60):
        rank = rng.randint(1, 3)
        shape = tuple(rng.randint(1, 5) for _ in range(rank))
        axes = sorted(rng.sample(range(rank), rng.randint(1, rank)))
        kind, init = rng.choice([("f64", "0.0"), ("i64", "0")])
        kept = ", ".join("ijk"[axis] for axis in axes)
        domain = ", ".join(f"{letter}<{n}" for letter, n in zip("ijk", shape, strict=False))
        extents = ", ".join(str(shape[axis]) for axis in axes)
        value = f"iota:{kind}(i)"
        region = parse(
            f"region() {{ out r: {kind}[{extents}]\n r[{kept}] add= {value} init {init} for {domain} }}"
        )
        text = emit(compose(region), "sums")
        said = re.search(r"#pragma ivdep array\(acc\)( safelen\((\d+)\))?", text)
        lanes = LANES if kind == "f64" and "lane" in text else 1
        used, found = {}, []
        for tick, point in enumerate(itertools.product(*map(range, shape))):
            spot = (*(point[axis] for axis in axes), tick % lanes)
            if spot in used:
                found.append(tick - used[spot])
            used[spot] = tick
        if said is None:
            assert math.prod(shape[axis] for axis in axes) == 1 or min(found) == 1
        elif said[1] is None:
            assert not found
        else:
            assert all(gap >= int(said[2]) for gap in found)
            assert lanes > 1 or min(found) == int(said[2])
        seen.add(said and (said[1] is None or int(said[2])))
    assert {None, True, LANES} < seen and len(seen) > 4
