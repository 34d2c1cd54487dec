"""Ranks that compute their blocks on a device each: NumPy's results, messages of windows alone."""

from typing import Any

import numpy as np
import pytest
from devices import needs_opencl
from launching import launch, needs_mpi
from made_up_device import MadeUpDevice

from dcarray import comm
from dcarray.core import device_names
from dcarray.distributed.device_blocks import DeviceBlock
from dcarray.lowering.gpu import devices


@needs_mpi
@needs_opencl
def test_two_ranks_have_a_part_of_a_device_each() -> None:
    given = {"DEVICE": "opencl", "OPENCL_PARTS": "2", "DISTRIBUTE_ABOVE": "0"}
    done = launch(2, "-m", "device_ranks", **{f"DCARRAY_{name}": value for name, value in given.items()})
    if "no device can be divided" in done.stdout:
        pytest.skip("the OpenCL device has one compute unit")
    assert done.returncode == 0 and done.stdout.count("ended") == 2, done.stdout + done.stderr


def test_a_rank_takes_the_device_of_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    known = [MadeUpDevice(f"cuda:{k}") for k in range(2)]
    monkeypatch.setitem(devices._found, "cuda", known)
    found = comm.run(3, lambda: device_names.resolve("cuda"))
    assert found == ["cuda:0", "cuda:1", "cuda:0"]
    assert comm.run(3, lambda: device_names.resolve("cuda:1")) == ["cuda:1"] * 3
    assert device_names.resolve("cuda") == "cuda:0"


def _windows(a: Any) -> list[Any]:
    return [a[1], a[:, 2], a[2:4, 5:7], a[:, ::3], a[-1:, :1]]


@pytest.mark.parametrize("seed", range(20))
def test_windows_of_a_block_are_brought_and_taken(seed: int) -> None:
    rng = np.random.default_rng(seed)
    here = rng.random((6, 8))
    block = DeviceBlock(MadeUpDevice("made:0"), here.shape, here.dtype, here.copy())
    for step in range(30):
        which = rng.permutation(5)[:3]
        match rng.integers(4):
            case 0:  # the device writes
                here = here + 1
                held: Any = block.on_device()
                held[: here.nbytes].view(np.float64)[:] += 1
                block.written()
            case 1:
                block.bring([_windows(block.memory())[k] for k in which])
                for k in which:
                    np.testing.assert_array_equal(_windows(block.memory())[k], _windows(here)[k])
            case 2:
                for k in which:
                    _windows(block.memory())[k][...] = _windows(here)[k][...] = step
                block.take([_windows(block.memory())[k] for k in which])
            case _:
                np.testing.assert_array_equal(block.copy(), here)
                np.testing.assert_array_equal(block.on_host(bool(step % 2)), here)
    np.testing.assert_array_equal(block.copy(), here)
