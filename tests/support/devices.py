"""Marks of tests that need a device."""

from __future__ import annotations

import pytest

from dcarray.lowering.gpu import device

needs_opencl = pytest.mark.skipif("opencl" in device.missing(), reason=device.missing().get("opencl", ""))
