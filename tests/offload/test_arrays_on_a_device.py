"""Arrays on a device, with its own plans: programs against NumPy, and what is copied when."""

from typing import Any

import numpy as np
import pytest
from devices import DEVICE, needs_device

import dcarray as dc
from conformance.fuzz import program
from conformance.programs import difference, suits_devices
from dcarray.lowering.gpu import devices as table

pytestmark = [needs_device]
N = 20_000


def test_random_programs() -> None:
    run = 0
    for seed in range(45):
        made = program(seed)
        if not suits_devices(made):
            continue
        mode = {"device": DEVICE, "eager_below": 0 if seed % 4 else 6}
        with np.errstate(all="ignore"):
            text = difference(made, **mode)
        assert text is None, f"{text}\n{made.text(**mode)}"
        run += 1
    assert run > 25


def test_a_recording_is_kernels_on_the_device() -> None:
    a = np.linspace(0, 3, N)
    x = dc.asarray(a, device=DEVICE)
    dc.report(reset=True)
    y = dc.evaluate(np.sqrt(x * x + 1) - x)
    z = (y[1:] - y[:-1]) * 0.5
    total = float(z.sum())
    counted = dc.report()
    assert counted.kernels >= 2 and counted.interpreted == 0 and not counted.fallbacks
    want = np.sqrt(a * a + 1) - a
    np.testing.assert_array_equal(np.asarray(y), want)
    np.testing.assert_array_equal(np.asarray(z), (want[1:] - want[:-1]) * 0.5)
    assert abs(total - float(np.sum((want[1:] - want[:-1]) * 0.5))) < 1e-12


def test_errors_of_floating_point_are_raised_by_the_host() -> None:
    x = dc.zeros(N, device=DEVICE)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        dc.evaluate(1 / x)
    assert float((x + 1)[3]) == 1.0


def test_explanations_show_the_devices_kernels() -> None:
    x = dc.asarray(np.ones(N), device=DEVICE)
    shown = str(dc.explain(np.sqrt(x * x + 1)))
    assert "blocks of" in shown and "sqrt(x[i] * x[i] + 1.0)" in shown


def test_elements_that_a_mask_selects_are_gathered_there(monkeypatch: pytest.MonkeyPatch) -> None:
    downloaded: list[int] = []
    kind: Any = type(table.get(DEVICE))
    known = kind.download

    def counted(self: Any, buffer: Any, target: Any, start: int = 0) -> None:
        downloaded.append(target.nbytes)
        known(self, buffer, target, start)

    monkeypatch.setattr(kind, "download", counted)
    a = np.random.default_rng(3).normal(size=(300, 500))
    x = dc.evaluate(dc.asarray(a, device=DEVICE) * 2)
    masks = (lambda v: v > 0.3, lambda v: v > 100, lambda v: v < 100, lambda v: (v > 0) & (v < 1))
    made = [(x[mask(x)], (2 * a)[mask(2 * a)]) for mask in masks]
    made += [(x[x > 1] * 3 - 1, (2 * a)[2 * a > 1] * 3 - 1)]
    made += [(x[1:-1, ::2][x[1:-1, ::2] < 0], (2 * a)[1:-1, ::2][a[1:-1, ::2] < 0])]
    for got, _ in made:
        dc.evaluate(got)
        assert got.device == DEVICE
    assert max(downloaded) == 8  # the numbers of elements
    for got, want in made:
        assert got.shape == want.shape
        np.testing.assert_array_equal(np.asarray(got), want)
