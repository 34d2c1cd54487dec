"""The radar of ``examples/stap``: found with NumPy, on the processor, on a device and on several ranks."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from devices import DEVICE, needs_device
from launching import launch, needs_mpi

import dcarray as dc
from dcarray import comm
from examples.stap import processing, runs, scene
from examples.stap.processing import Processor, Settings, beamform, peaks
from examples.stap.scene import Scene, Target, cube

ROOT = Path(__file__).resolve().parents[2]
SMALL = Scene(4, 16, 240, 33, (Target(100, 5, amplitude=0.7),))
PLACES = [None, "cpu", pytest.param(DEVICE, marks=needs_device)]


@contextmanager
def compiled() -> Iterator[None]:
    """Small arrays are recorded and compiled, too."""
    with dc.options(jit="eager", eager_below=0, distribute_above=None):
        yield


@pytest.mark.parametrize("module", [scene, processing])
def test_the_numerical_code_is_plain_numpy(module: Any) -> None:
    tree = ast.parse(Path(module.__file__).read_text())
    roots = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    froms = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert set(roots) == {"numpy"} and set(froms) <= {"dataclasses", "scene"}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("shape", [(4, 16), (7, 12)])
def test_the_beam_gains_channels_times_pulses(place: str | None, shape: tuple[int, int]) -> None:
    alone = Scene(*shape, 240, 33, (Target(60, 3, amplitude=1.0),), clutter=0, jammer=0, noise=0)
    processor, received = Processor(alone), cube(alone, 0)
    one = processor.compress(received)[0, 0, 60]
    with compiled():
        beam = beamform(processor, received if place is None else dc.asarray(received, device=place), alone)
        power = np.abs(np.asarray(beam))
    assert np.unravel_index(power.argmax(), power.shape) == (3, 60)
    assert power[3, 60] / abs(one) == pytest.approx(shape[0] * shape[1], rel=1e-5)


@pytest.mark.parametrize("place", PLACES)
def test_the_target_is_found_in_its_cell(place: str | None) -> None:
    processor = Processor(SMALL, Settings(false_alarms=1e-5))
    for seed in range(2):
        received = cube(SMALL, seed)
        with compiled():
            power, found = runs.detect(processor, received, place)
        assert [tuple(cell) for cell in peaks(power, found)] == [(5, 100)]
        expected, cells = processor(received)
        # Single precision: sums over gates are added in another order, and the clutter, 30 dB above the
        # noise, is the condition of the covariance matrices.  The noise's power is 1.
        np.testing.assert_allclose(power, expected, rtol=5e-3, atol=5e-3)
        assert np.array_equal(found, cells)
    plain = np.abs(beamform(processor, received, SMALL)) ** 2
    assert np.unravel_index(plain.argmax(), plain.shape) != (5, 100)  # the clutter is louder


def test_false_alarms_come_at_the_designed_rate() -> None:
    settings = Settings(false_alarms=1e-2, neighbours=0)
    found, designed = runs.false_alarms(Scene(4, 16, 1000, 33, ()), settings, 12)
    assert designed == pytest.approx(12 * 16 * 968 * 1e-2)
    # Neighbouring bins overlap by two thirds of their noise: the count varies by some 1.5 times its root.
    assert abs(found - designed) < 6 * designed**0.5


def test_steps_are_what_their_loops_say() -> None:
    """Compression, covariance, weights and threshold, element by element."""
    settings = Settings(training=3, guard=1, false_alarms=1e-3)
    processor = Processor(SMALL, settings)
    received = cube(SMALL, 3)
    compressed, pulse = processor.compress(received), scene.waveform(SMALL)
    for c, p, g in [(0, 0, 0), (3, 15, 207), (2, 7, 100)]:
        expected = np.vdot(pulse, received[c, p, g : g + 33]) / np.linalg.norm(pulse)
        assert compressed[c, p, g] == pytest.approx(expected, rel=1e-4, abs=1e-4)
    x = processor.snapshots(processor.doppler(compressed))
    covariance = processor.covariance(x)
    weights = processor.weights(covariance)
    power = processor.statistic(weights, x)
    threshold = processor.threshold(power)
    factor = 6 * (1e-3 ** (-1 / 6) - 1)
    for d in (0, 5, 15):
        r = np.mean([np.outer(x[d, :, g], x[d, :, g].conj()) for g in range(208)], axis=0)
        np.testing.assert_allclose(covariance[d], r, rtol=1e-3, atol=1e-4 * np.abs(r).max())
        w = np.linalg.inv(covariance[d] + 0.1 * np.eye(12)) @ processor.target
        np.testing.assert_allclose(weights[d], w, rtol=1e-8, atol=1e-8 * np.abs(w).max())
        g = 50
        statistic = abs(np.vdot(w, x[d, :, g])) ** 2 / np.vdot(w, processor.target).real
        assert power[d, g] == pytest.approx(statistic, rel=1e-2)
        near = [power[d, g - k] for k in (2, 3, 4)] + [power[d, g + k] for k in (2, 3, 4)]
        assert threshold[d, g] == pytest.approx(factor * np.mean(near), rel=1e-4)


def test_cubes_are_shared_out_to_ranks_and_those_of_a_lost_rank_run_again() -> None:
    processor = Processor(SMALL, Settings(false_alarms=1e-2))
    cubes = [cube(SMALL, k) for k in range(3)]
    one = [int(processor(cubes[k % 3])[1].sum()) for k in range(8)]
    assert comm.run(2, runs.detect_all, processor, cubes, 8) == [one, one]

    def losing() -> Any:
        calls = []

        def sometimes(received: Any) -> Any:
            calls.append(1)
            if comm.world().rank == 2 and len(calls) == 2:
                raise comm.Killed
            return processor(received)

        return runs.detect_all(sometimes, cubes, 8)

    assert comm.run(3, losing) == [one, one, None]


@needs_mpi
def test_two_ranks_under_mpi() -> None:
    size = ("--seconds", "0.01", "--shape", "4", "16", "240", "33")
    done = launch(2, "-m", "examples.stap.runs", *size)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) > 0


def test_the_command(tmp_path: Path) -> None:
    size = ("--channels", "4", "--pulses", "16", "--samples", "300", "--chirp", "33")
    options = ("--target", "100", "5", "0.7", "--seconds", "0", "--alarm-cubes", "1")
    command = [sys.executable, "-m", "examples.stap", *size, *options]
    done = subprocess.run(
        [*command, "--picture", str(tmp_path / "picture.png")], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert "found:   gate 100, bin 5:" in done.stdout
    assert "noise off: 64.0000, channels x pulses = 64" in done.stdout
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    wrong = subprocess.run([*command, "--ranks", "0"], capture_output=True, text=True, cwd=ROOT)
    assert (wrong.returncode, wrong.stderr) == (2, "--ranks 0: there is one rank at least\n")


@pytest.mark.parametrize(("make", "text"), [
    (lambda: Scene(channels=0), "a cube of 0 x 64 x 960"),
    (lambda: Scene(samples=40), "a pulse of 65 samples does not fit into 40"),
    (lambda: Scene(noise=-1), "a power is negative"),
    (lambda: Scene(2, 1, 4, 4, (Target(0, 0), Target(1, 0))), "2 targets are more than 1 cells"),
    (lambda: replace(SMALL, targets=(Target(208, 0),)), "outside of 208 range gates and 16 Doppler bins"),
    (lambda: replace(SMALL, targets=(Target(3, 1), Target(3, 1))), "two targets are in gate 3, bin 1"),
    (lambda: Settings(false_alarms=0), "must be a probability"),
    (lambda: Settings(training=0), "training cells must be 1 or more"),
    (lambda: Processor(Scene(2, 8, 60, 30, ())), "31 range gates are fewer"),
    (lambda: Processor(Scene(2, 2, 200, 30, ())), "2 pulses are fewer than 3 adjacent bins"),
])  # fmt: skip
def test_what_does_not_fit_is_said(make: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make()
