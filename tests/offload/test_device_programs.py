"""The random programs of ``python -m conformance.fuzz`` on a device, against NumPy."""

import numpy as np
import pytest
from made_up_device import MadeUpDevice, make_up

from conformance.fuzz import program
from conformance.programs import difference, suits_devices


@pytest.mark.parametrize("target", ["", "made-up"])
def test_programs(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    device = MadeUpDevice(target=target)
    make_up(monkeypatch, device)
    run = 0
    for seed in range(150):
        made = program(seed)
        if not suits_devices(made):
            continue
        mode = {"device": "made-up:0", "eager_below": 0 if seed % 4 else 6, "debug": True}
        with np.errstate(all="ignore"):
            text = difference(made, **mode)
        assert text is None, f"{text}\n{made.text(**mode)}"
        run += 1
    assert run > 100 and device.uploads > run and (device.runs > run) == bool(target)
