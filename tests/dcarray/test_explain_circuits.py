"""``dc.explain(..., target=...)``: recordings as streaming circuits."""

import numpy as np
import pytest

import dcarray as dc


def step(u):
    v = u.copy()
    v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    return v


@pytest.fixture
def u():
    return dc.asarray(np.random.default_rng(0).random((300, 200)))


@pytest.mark.parametrize(
    ("target", "text"), [("vitis", "#pragma HLS DATAFLOW"), ("intel", "channel float64x8 ")]
)
def test_a_stencil_as_a_circuit(u, target, text):
    shown = dc.explain(step, u, target=target)
    printed = str(shown)
    circuit = shown.regions[0].circuit
    assert circuit.model.interval == 1 and circuit.model.bytes_read == 300 * 200 * 8 + 8
    assert f"circuit for {target}" in printed and text in printed and "pass fuse" not in printed
    assert "result, version 2" in printed and "float64, 8 at a time, depth 31" in printed
    drawing = shown.svg()
    assert f"Stage 0 for {target}" in drawing and "behind a FIFO of depth 31" in drawing
    assert "read" in drawing and "As it runs" not in drawing


def test_without_a_target_the_kernels_are_shown(u):
    shown = dc.explain(step, u)
    assert shown.regions[0].circuit is None and "circuit for" not in str(shown)


def test_what_is_no_circuit_has_its_reason():
    x = dc.asarray(np.ones(300_000, complex))
    printed = str(dc.explain(lambda a: a * a, x, target="vitis"))
    assert "no circuit for vitis: " in printed and "complex128: use float32" in printed


def test_an_unknown_target_is_an_error(u):
    with pytest.raises(ValueError, match="no target 'quartus'; use 'vitis' or 'intel'"):
        dc.explain(step, u, target="quartus")
