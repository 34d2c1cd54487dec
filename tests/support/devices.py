"""Marks of tests that need a device."""

from __future__ import annotations

import pytest

from dcarray.lowering.gpu import device
from dcarray.lowering.gpu.cuda import nvrtc

needs_opencl = pytest.mark.skipif("opencl" in device.missing(), reason=device.missing().get("opencl", ""))
needs_nvrtc = pytest.mark.skipif(nvrtc.unavailable() is not None, reason=str(nvrtc.unavailable()))
