"""Printers of process networks as kernels: C++ for Vitis HLS, and OpenCL C for Intel's FPGA SDK.

`vitis` and `intel` print whole kernels; their common part is `printer`.  That gets the text of a statement on
streams, such as a stencil with its line buffers, from `statements`, of matrix products from `systolic`, and
of loads and stores from `movers`.
"""
