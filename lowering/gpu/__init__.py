"""Devices with memory of their own: GPUs, and whatever OpenCL has a runtime for."""
