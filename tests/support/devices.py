"""The device under test, and marks of tests that need one.

Tests "on a device" run on ``opencl:0``, or on the one that the variable DCARRAY_TEST_DEVICE names.
"""

import os

import pytest

from dcarray.lowering.gpu import devices
from dcarray.lowering.gpu.cuda import nvrtc

DEVICE = os.environ.get("DCARRAY_TEST_DEVICE", "opencl:0")
KIND = DEVICE.partition(":")[0]

needs_device = pytest.mark.skipif(
    DEVICE not in [one.name for one in devices.find()],
    reason=devices.missing().get(KIND, f"there is no {DEVICE}"),
)
needs_opencl = pytest.mark.skipif("opencl" in devices.missing(), reason=devices.missing().get("opencl", ""))
needs_nvrtc = pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable()))
