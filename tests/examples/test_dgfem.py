"""The discontinuous Galerkin methods of ``examples/dgfem``: exact where they must be, convergent, alike."""

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from devices import DEVICE, needs_device

import dcarray as dc
from dcarray import comm
from dcarray.core.counters import settle
from examples.dgfem import gas, mesh, operators, picture, reference, runs, stepping, wave

ROOT = Path(__file__).resolve().parents[2]
NUMERICAL = [reference, mesh, operators, stepping, wave, gas]


@pytest.mark.parametrize("module", NUMERICAL)
def test_the_numerical_code_is_plain_numpy(module: Any) -> None:
    tree = ast.parse(Path(module.__file__).read_text())
    roots = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    froms = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level}
    assert roots == {"numpy"} and froms <= {"dataclasses", "itertools", "math"}


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_polynomials_are_differentiated_and_integrated_exactly(order: int) -> None:
    """Gauss' theorem holds on a bent mesh, for each tetrahedron."""
    element = reference.tetrahedron(order)
    assert len(element.nodes) == (order + 1) * (order + 2) * (order + 3) // 6
    box = mesh.box(order, (2, 3, 2), (1.0, 1.5, 0.7), bend=0.2)
    assert box.jacobian.sum() * 4 / 3 == pytest.approx(1.05, rel=1e-13)
    geometry = operators.geometry_of(box)
    x, y, z = box.x
    f = (x + 2 * y - z + 0.3) ** order
    slope = order * (x + 2 * y - z + 0.3) ** (order - 1)
    found = operators.gradient(geometry, f)
    for one, factor in zip(found, (1, 2, -1), strict=True):
        np.testing.assert_allclose(one, factor * slope, atol=1e-10 * np.abs(f).max())
    integrals = element.mass @ operators.lifted(geometry, geometry[3][0] * f[box.inside])
    np.testing.assert_allclose(integrals.sum(axis=0), (element.mass @ found[0]).sum(axis=0), atol=1e-10)


def test_faces_meet_with_opposite_normals() -> None:
    box = mesh.box(3, (3, 2, 4), (1.0, 1.5, 0.7), bend=0.2)
    _, _, _, normals, scale, inside, node, element = operators.geometry_of(box)
    there = box.x[:, node, element]
    apart = (box.x[:, inside] - there) / np.array(box.sizes)[:, None, None]
    np.testing.assert_allclose(apart, np.round(apart), atol=1e-12)
    count = box.jacobian.size
    m = len(inside) // 4
    middles = box.x[:, inside].reshape(3, 4, m, count).mean(axis=2)
    other = element.reshape(4, m, count)
    assert (other == other[:, :1]).all()  # a face has one neighbour
    area = scale.reshape(4, m, count)[:, 0] * box.jacobian
    for face, k in [(0, 0), (1, 5), (2, 7), (3, count - 1)]:
        beyond = other[face, 0, k]
        gap = (middles[:, :, beyond] - middles[:, face, k][:, None]) / np.array(box.sizes)[:, None]
        match = np.abs(gap - np.round(gap)).sum(axis=0).argmin()
        first = normals.reshape(3, 4, m, count)[:, face, 0, k]
        np.testing.assert_allclose(normals.reshape(3, 4, m, count)[:, match, 0, beyond], -first, atol=1e-12)
        assert area[match, beyond] == pytest.approx(area[face, k], rel=1e-12)


@pytest.mark.parametrize(("equation", "order", "cells", "until", "least"), [
    ("wave", 1, (6, 9), 0.2, 1.8), ("wave", 2, (4, 6), 0.3, 2.4), ("wave", 3, (3, 4), 0.1, 3.3),
    ("wave", 4, (2, 3), 0.1, 3.8), ("euler", 1, (8, 12), 0.3, 1.8), ("euler", 3, (5, 7), 0.3, 2.6),
    ("navier-stokes", 1, (3, 5), 0.1, 1.2), ("navier-stokes", 2, (2, 3), 0.2, 2.1),
])  # fmt: skip
def test_errors_get_smaller_at_a_rate(
    equation: str, order: int, cells: tuple[int, ...], until: float, least: float
) -> None:
    """Meshes are coarse here; the documentation has rates of fine ones."""
    *_, (_, _, error, rate) = runs.convergence(equation, order, cells, until)
    assert rate is not None and least < rate < order + 2
    assert error < 0.5


@pytest.mark.parametrize("order", [1, 3])
def test_a_free_stream_is_kept(order: int) -> None:
    box = mesh.box(order, 3, bend=0.2)
    q = gas.free_stream(box)
    assert np.abs(gas.rhs(q, operators.geometry_of(box))).max() < 1e-12
    after = gas.advance(q, 5, 1e-3, operators.geometry_of(box), stepping.A, stepping.B)
    assert np.abs(after - q).max() < 1e-12


def test_energy_of_waves_does_not_grow_and_mass_is_kept() -> None:
    rng = np.random.default_rng(0)
    box = mesh.box(3, 2, bend=0.2)
    geometry = operators.geometry_of(box)
    q = rng.standard_normal((4, *box.x.shape[1:]))
    assert sum(mesh.integral(box, f * g) for f, g in zip(q, wave.rhs(q, geometry), strict=True)) < 1.0
    weighted = sum(float((f * (box.element.mass @ g) * box.jacobian).sum())
                   for f, g in zip(q, wave.rhs(q, geometry), strict=True))  # fmt: skip
    assert weighted < 0
    flow = gas.conserved(2 + 0.1 * q[0], 0.1 * q[1], 0.1 * q[2], 0.1 * q[3], 3.0)
    change = gas.rhs(flow, geometry)
    source, penalty = np.zeros_like(flow), gas.penalty_of(3)
    for one in (change, gas.viscous_rhs(flow, geometry, source, penalty)):
        for f in one:
            assert abs(mesh.integral(box, f)) < 1e-9


@pytest.mark.parametrize("equation", runs.EQUATIONS)
@pytest.mark.parametrize("place", ["cpu", pytest.param(DEVICE, marks=needs_device)])
def test_the_same_with_dcarray(equation: str, place: str) -> None:
    one = runs.problem(equation, 1, 2, bend=0.1)
    expected = runs.stepper(one)(one.start, 3, one.dt)
    with dc.options(jit="eager", eager_below=0):
        ours = runs.stepper(one, place)
        ours(one.start, 3, one.dt)
        before = settle().loops
        found = ours(one.start, 3, one.dt)
    # Products are added in another order.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    assert place != "cpu" or settle().loops > before  # the steps were one compiled loop


def test_the_same_on_ranks() -> None:
    one = runs.problem("wave", 1, 3)
    expected = runs.stepper(one)(one.start, 3, one.dt)
    for found in comm.run(2, lambda: runs.stepper(one, "cpu")(one.start, 3, one.dt)):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


def test_a_slice_has_the_values_of_the_polynomials() -> None:
    box = mesh.box(2, (2, 3, 2), (1.0, 1.5, 2.0))
    x, y, z = box.x
    found = picture.plane(box, x * x - y * z + 2 * y, 0.7, points=9)
    at, along = (np.arange(9) + 0.5) / 9, 1.5 * (np.arange(9) + 0.5) / 9
    np.testing.assert_allclose(found, at[:, None] ** 2 - along * 0.7 + 2 * along, atol=1e-12)


def test_the_command(tmp_path: Path) -> None:
    image, text = tmp_path / "slice.png", tmp_path / "steps.txt"
    command = [sys.executable, "-m", "examples.dgfem", "--order", "1", "--cells", "3", "4", "--until", "0.05"]
    files = ["--picture", str(image), "--explain", str(text), "--no-speed"]
    done = subprocess.run([*command, *files], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "wave, order 1, until t = 0.05, on cpu" in done.stdout
    assert image.read_bytes().startswith(b"\x89PNG")
    assert "for k in range(0, 5, 1)" in text.read_text()
    wrong = subprocess.run([*command, "--equation", "heat"], capture_output=True, text=True, cwd=ROOT)
    assert (wrong.returncode, wrong.stderr.startswith("equation 'heat': must be one of")) == (2, True)


@pytest.mark.parametrize(("make", "text"), [
    (lambda: mesh.box(5, 3), "order 5: there are orders 1 to 4"),
    (lambda: mesh.box(1, 0), "0 x 0 x 0 cells: a periodic box has 2"),
    (lambda: mesh.box(1, (3, 1, 3)), "3 x 1 x 3 cells"),
    (lambda: mesh.box(1, 3, (1.0, 0.0, 1.0)), "has no tetrahedra"),
    (lambda: mesh.box(1, 3, bend=2.0), "turned inside out"),
    (lambda: runs.problem("heat", 1, 3), "must be one of"),
])  # fmt: skip
def test_what_does_not_fit_is_said(make: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make()
